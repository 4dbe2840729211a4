"""How well what is measured of rounds tells one kind from another, and how sure that is.

Rounds are compared within a stratum, a series of one daemon. Rounds of a turn share their moment, rounds of a
daemon its way through Tor, and two daemons have a series in opposite orders against a drift of their machine:
so they are not independent. What is drawn anew are pairs of daemons, and of each its series.
"""

from __future__ import annotations

import math
import operator
import random
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from hushcast_testnet.cover.line_watcher import area

DRAWS = 1_000  # of the bootstrap, and of orders of turns
_EDGE = 0.025  # of the draws to each side: 95 % are within
_ROUNDING = 1e-9

RoundMeasures = Mapping[str, float]
"""What is measured of one round, by names that all rounds have."""


@dataclass(frozen=True)
class Stratum:
    """Rounds of one series of one daemon, of two kinds."""

    pair: int
    """Of daemons that have their series in opposite orders."""
    series: int
    one: Sequence[RoundMeasures]
    other: Sequence[RoundMeasures]


@dataclass(frozen=True, slots=True)
class Apartness:
    """The area under the curve (AUC): 0.5 not at all, 1 always, below 0.5 the other kind has less."""

    area: float
    low: float
    """The interval of 95 %."""
    high: float


@dataclass(frozen=True, slots=True)
class Telling:
    """What tells most, and in which share of all orders of turns as much would be told by chance."""

    measure: str
    by_chance: float


@dataclass(frozen=True, slots=True)
class _Compared:
    """Of one stratum or two, how often rounds of the other kind have more, of how many pairs, by measure."""

    pairs: int
    above: Mapping[str, float]


def apart(strata: Sequence[Stratum], chance: random.Random) -> Mapping[str, Apartness]:
    """Return how far apart the two kinds are by each measure.

    The interval is of a bootstrap: pairs of daemons are drawn anew, and of each its series. Raises
    `ValueError` where no stratum has both kinds.
    """
    by_pair = _by_pair(strata)
    found = _areas([one for own in by_pair for one in own])
    drawn: dict[str, list[float]] = defaultdict(list)
    for _ in range(DRAWS):
        pairs = chance.choices(by_pair, k=len(by_pair))
        for measure, value in _areas(
            [one for own in pairs for one in chance.choices(own, k=len(own))]
        ).items():
            drawn[measure].append(value)
    return {measure: _with_interval(value, drawn[measure]) for measure, value in found.items()}


def telling(strata: Sequence[Stratum], chance: random.Random) -> Telling:
    """Return what tells most of all measures, and how often chance alone tells as much by any.

    Which turn of a series was of which kind was drawn. Where the kinds are alike, all would be as it is with
    the two changed for each other: so that is done in drawn series of pairs, and the most that any measure
    tells is compared, each in its own standard errors. Raises `ValueError` where no stratum has both kinds.
    """
    compared = [one for own in _by_pair(strata) for one in own]
    above = {
        measure: [one.above[measure] - one.pairs / 2 for one in compared] for measure in compared[0].above
    }
    scales = {measure: math.hypot(*values) for measure, values in above.items()}

    def most(turned: Sequence[int]) -> tuple[float, str]:
        return max(
            (abs(sum(map(operator.mul, values, turned))) / (scales[measure] or 1.0), measure)
            for measure, values in above.items()
        )

    found, measure = most([1] * len(compared))
    as_much = sum(
        most(chance.choices((-1, 1), k=len(compared)))[0] >= found - _ROUNDING for _ in range(DRAWS)
    )
    return Telling(measure, (1 + as_much) / (1 + DRAWS))


def _by_pair(strata: Sequence[Stratum]) -> list[list[_Compared]]:
    """Return what is compared of each series of each pair: of its two daemons together."""
    found: dict[int, dict[int, list[_Compared]]] = defaultdict(lambda: defaultdict(list))
    for each in strata:
        if each.one and each.other:
            found[each.pair][each.series].append(_compared(each))
    if not found:
        raise ValueError("no series of a daemon has rounds of both kinds")
    return [[_together(both) for both in series.values()] for series in found.values()]


def _together(compared: Sequence[_Compared]) -> _Compared:
    above = {measure: sum(one.above[measure] for one in compared) for measure in compared[0].above}
    return _Compared(sum(one.pairs for one in compared), above)


def _compared(each: Stratum) -> _Compared:
    pairs = len(each.one) * len(each.other)
    kinds = {
        measure: ([one[measure] for one in each.one], [one[measure] for one in each.other])
        for measure in each.one[0]
    }
    return _Compared(pairs, {measure: pairs * area(*values) for measure, values in kinds.items()})


def _areas(compared: Sequence[_Compared]) -> dict[str, float]:
    everything = _together(compared)
    return {measure: count / everything.pairs for measure, count in everything.above.items()}


def _with_interval(value: float, drawn: list[float]) -> Apartness:
    ordered = sorted(drawn)
    edge = math.floor(_EDGE * len(ordered))
    return Apartness(value, ordered[edge], ordered[-1 - edge])
