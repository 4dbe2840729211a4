"""Who watches daemons' lines: can rounds of one that publishes be told from rounds of one that does not?"""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Sequence

from hushcast_testnet.cover.covered_network import LetterSight


def told_apart(idle: Sequence[LetterSight], busy: Sequence[LetterSight]) -> float:
    """Return by how much the best measure of a round tells the two apart: 0.5 not at all, 1 always.

    It is the area under the curve (AUC) of one measure: letters of a round, their bytes, their latest moment,
    and the longest gap between two of them. Where the measure is lower for who publishes, that tells as much.
    """
    measures = zip(_measures(idle), _measures(busy), strict=True)
    areas = [area(one, other) for one, other in measures]
    return max(*areas, *(1 - each for each in areas))


def area(one: Sequence[float], other: Sequence[float]) -> float:
    """Return the area under the curve (AUC) by which values of two kinds are told apart.

    0.5 is not at all, 1 where all of the other kind are higher, 0 where all are lower.
    """
    above = sum(1.0 if b > a else 0.5 if b == a else 0.0 for a in one for b in other)
    return above / (len(one) * len(other))


def _measures(seen: Sequence[LetterSight]) -> list[list[float]]:
    rounds: dict[int, list[LetterSight]] = defaultdict(list)
    for one in seen:
        rounds[one.round].append(one)
    found: list[list[float]] = [[], [], [], []]
    for letters in rounds.values():
        moments = sorted(one.at for one in letters)
        gaps = [later - earlier for earlier, later in itertools.pairwise(moments)]
        values = len(letters), sum(one.size for one in letters), moments[-1], max(gaps, default=0.0)
        for measure, value in zip(found, values, strict=True):
            measure.append(float(value))
    return found
