"""What measurements of all systems say: means, lines of least squares, where lines cross. Pure."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from statistics import correlation, fmean, linear_regression
from typing import Any

SYSTEMS = ("central", "tree", "brokers")
CLEAR = "clear"
"""What brokers are measured under: they have no profiles, and are drawn beside the others under each."""
FIGURES = (3, 4, 5)
STEADY = 50  # subscribers in figure 5, while more and more publish at once


@dataclass(frozen=True)
class Measurement:
    """One measurement, one line of `measurements.csv`."""

    profile: str
    figure: int
    system: str
    x: int
    seed: int
    seconds: float


@dataclass(frozen=True)
class CurvePoint:
    """A point of a curve: the mean of its seeds, and the least and the largest of them."""

    x: int
    seconds: float
    low: float
    high: float


Curve = tuple[CurvePoint, ...]


@dataclass(frozen=True)
class Fit:
    """The line of least squares through a curve."""

    start: float
    """Seconds at x = 0."""
    slope: float
    """Seconds for each more of x."""
    r2: float
    """How much of what the curve varies the line explains, 0 to 1."""

    def describe(self) -> dict[str, float]:
        """Return the fields for JSON."""
        return {"start": round(self.start, 6), "slope": round(self.slope, 8), "r2": round(self.r2, 4)}


def curve(measurements: Iterable[Measurement], profile: str, figure: int, system: str) -> Curve:
    """Return the curve of a system in a figure, in the order of x."""
    profile = CLEAR if system == "brokers" else profile
    seeds: dict[int, dict[int, list[float]]] = {}
    for one in measurements:
        if (one.profile, one.figure, one.system) == (profile, figure, system):
            seeds.setdefault(one.x, {}).setdefault(one.seed, []).append(one.seconds)
    places = []
    for x, each in sorted(seeds.items()):
        means = [fmean(seconds) for seconds in each.values()]
        places.append(CurvePoint(x, fmean(means), min(means), max(means)))
    return tuple(places)


def curves_of(measurements: Sequence[Measurement], profile: str, figure: int) -> dict[str, Curve]:
    """Return the curve of each system in a figure; that of brokers only where they were measured."""
    found = {system: curve(measurements, profile, figure, system) for system in SYSTEMS}
    return {system: each for system, each in found.items() if each or system != "brokers"}


def fit(places: Sequence[CurvePoint]) -> Fit | None:
    """Return the line through a curve; none through fewer than three points."""
    if len(places) < 3:
        return None
    x, y = [place.x for place in places], [place.seconds for place in places]
    slope, start = linear_regression(x, y)
    r2 = correlation(x, y) ** 2 if min(y) < max(y) else 1.0  # a level line leaves nothing to explain
    return Fit(start, slope, r2)


def crossing(one: Curve, other: Curve) -> float | None:
    """Return the x at which one curve comes to lie above the other for good; none where it does not."""
    above = {place.x: place.seconds for place in other}
    ahead = [(place.x, place.seconds - above[place.x]) for place in one if place.x in above]
    found = None
    for (x, before), (later, after) in itertools.pairwise(ahead):
        if before <= 0 < after:
            found = x + (later - x) * -before / (after - before)
    return found if ahead and ahead[-1][1] > 0 else None


def tabulated(measurements: Sequence[Measurement]) -> dict[str, Any]:
    """Return the means, as `compare.json` has them: by profile, figure and system, [x, seconds] each."""
    return {
        profile: {
            f"figure{figure}": {
                system: [[place.x, round(place.seconds, 6)] for place in each]
                for system, each in curves_of(measurements, profile, figure).items()
            }
            for figure in FIGURES
        }
        for profile in profiles_of(measurements)
    }


def profiles_of(measurements: Iterable[Measurement]) -> list[str]:
    """Return the profiles that anything was measured under, in their order."""
    return list(dict.fromkeys(one.profile for one in measurements if one.profile != CLEAR))
