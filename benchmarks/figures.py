"""A figure: what was measured, beside what, and whether the target is met."""

from __future__ import annotations

import statistics
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass


class PeerMissing(Exception):
    """A peer cannot be measured here; the text says why."""


@dataclass(frozen=True)
class Figure:
    """One line of the table; `target` bounds `ratio` from the side that the figure's text names.

    A figure without a target is information. Without `peer_value` the peer is missing, and `peer` says why.
    """

    figure: str
    ours: float | None
    peer: str
    peer_value: float | None
    ratio: float | None
    target: float | None
    met: bool | None


@dataclass(frozen=True)
class Effort:
    """How long to measure: `runs` of each side, alternating, and a share of the full amount of work."""

    runs: int
    share: float

    def amount(self, full: int) -> int:
        """Return that share of an amount."""
        return max(1, int(full * self.share))


def at_least(figure: str, ours: float, peer: str, peer_value: float, target: float | None) -> Figure:
    """Compare rates: `ours` is to be at least `target` times the peer's."""
    ratio = ours / peer_value
    return Figure(figure, ours, peer, peer_value, ratio, target, None if target is None else ratio >= target)


def times_faster(figure: str, ours: float, peer: str, peer_value: float, target: float | None) -> Figure:
    """Compare costs: the peer's is to be at least `target` times ours."""
    ratio = peer_value / ours
    return Figure(figure, ours, peer, peer_value, ratio, target, None if target is None else ratio >= target)


def at_most(figure: str, ours: float, peer: str, peer_value: float, target: float | None) -> Figure:
    """Compare costs: ours is to be at most `target` times the peer's."""
    ratio = ours / peer_value
    return Figure(figure, ours, peer, peer_value, ratio, target, None if target is None else ratio <= target)


def missing(figure: str, ours: float | None, peer: str, why: object, target: float | None) -> Figure:
    """Say that a peer could not be measured."""
    reason = " ".join(str(why).split())[-300:]
    return Figure(figure, ours, f"{peer} (missing: {reason})", None, None, target, None)


def alternate(runs: int, sides: Mapping[str, Callable[[], float]]) -> dict[str, float]:
    """Measure every side in turn, `runs` times over; return the medians."""
    taken: dict[str, list[float]] = {name: [] for name in sides}
    for _ in range(runs):
        for name, side in sides.items():
            taken[name].append(side())
    return {name: statistics.median(values) for name, values in taken.items()}


async def alternate_async(
    runs: int, sides: Mapping[str, Callable[[], Awaitable[float]]]
) -> dict[str, float | PeerMissing]:
    """Measure as `alternate` does; a side that raises `PeerMissing` is measured no more."""
    taken: dict[str, list[float]] = {name: [] for name in sides}
    gone: dict[str, PeerMissing] = {}
    for _ in range(runs):
        for name, side in sides.items():
            if name in gone:
                continue
            try:
                taken[name].append(await side())
            except PeerMissing as reason:
                gone[name] = reason
    return {name: gone.get(name) or statistics.median(values) for name, values in taken.items()}
