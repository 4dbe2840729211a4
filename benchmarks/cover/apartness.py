"""How well what is measured of rounds tells one kind from another, and how sure that is."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from hushcast_testnet.cover.line_watcher import area

_INTERVAL = 1.96  # standard errors to each side: 95 %

RoundMeasures = Mapping[str, float]
"""What is measured of one round, by names that all rounds have."""

RoundKinds = tuple[Sequence[RoundMeasures], Sequence[RoundMeasures]]
"""Idle rounds and busy ones."""


@dataclass(frozen=True, slots=True)
class Apartness:
    """The area under the curve (AUC): 0.5 not at all, 1 always; below 0.5 busy rounds have less."""

    area: float
    error: float
    """Its standard error."""

    @property
    def interval(self) -> tuple[float, float]:
        """The interval of 95 %."""
        return self.area - _INTERVAL * self.error, self.area + _INTERVAL * self.error


def apart_by(measure: str, rounds: RoundKinds) -> Apartness:
    """Return how well one measure tells rounds apart, with the error of Hanley & McNeil (1982)."""
    idle, busy = ([one[measure] for one in kind] for kind in rounds)
    found = area(idle, busy)
    both = found / (2 - found) - found**2, 2 * found**2 / (1 + found) - found**2
    variance = found * (1 - found) + (len(busy) - 1) * both[0] + (len(idle) - 1) * both[1]
    return Apartness(found, math.sqrt(max(0.0, variance) / (len(idle) * len(busy))))


def apart_by_best(known: RoundKinds, judged: RoundKinds) -> Apartness:
    """Return how well the measure that is best on `known` rounds tells `judged` ones apart.

    The best of many measures is above 0.5 by chance; on rounds that it was not chosen by, it is not.
    """
    found = {measure: apart_by(measure, known).area for measure in known[0][0]}
    best = max(found, key=lambda measure: abs(found[measure] - 0.5))
    apart = apart_by(best, judged)
    return apart if found[best] >= 0.5 else Apartness(1 - apart.area, apart.error)
