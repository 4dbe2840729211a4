"""Adaptive probing: a general filter and a small k first, then more detail and a larger k.

Tarkoma and Prehofer §7. All who probe on a topic pass the same general filters, cells that halve the grids,
and so find each other there; only the last step is the filter itself.
"""

from __future__ import annotations

from typing import NamedTuple

from hushcast_protocol.brokers.filters import Filter, Side
from hushcast_protocol.content.attributes import Attribute, Number

MAX_STEPS = 16  # from the whole topic to one filter; each takes a question and an answer


class ProbeStep(NamedTuple):
    """A filter that covers the one wanted, and the k to ask for."""

    filter: Filter
    k: int


def ladder(given: Filter, k: int, steps: int, least: int = 1) -> list[ProbeStep]:
    """Return what to probe one after the other: from the whole topic and k = 1 to the filter and k.

    `steps` (1 to `MAX_STEPS`) are those after the first; fewer are returned where two would be the same. No k
    is below `least`.
    """
    found: list[ProbeStep] = []
    for at in range(steps + 1):
        filter_ = given if at == steps else _cells(given, at, steps)
        if found and found[-1].filter == filter_:
            found.pop()
        found.append(ProbeStep(filter_, max(least, -(-k * at // steps))))
    return found


class FilterProbe:
    """One filter on its way down the ladder."""

    def __init__(self, given: Filter, k: int, steps: int, least: int = 1) -> None:
        self._ladder = ladder(given, k, steps, least)
        self._reached = -1

    @property
    def shown(self) -> Filter | None:
        """What may be shown now, in place of all that was shown before; nothing at first."""
        return self._ladder[self._reached].filter if self._reached >= 0 else None

    @property
    def next(self) -> ProbeStep | None:
        """What to ask for next; None where the filter itself is shown."""
        return self._ladder[self._reached + 1] if self._reached + 1 < len(self._ladder) else None

    def heard(self, is_anonymous: bool) -> None:
        """Take the answer about the next step: go there or stay."""
        if is_anonymous and self.next is not None:
            self._reached += 1

    def fell(self) -> None:
        """What is shown is anonymous no more: go back a step."""
        self._reached = max(-1, self._reached - 1)


def _cells(given: Filter, at: int, steps: int) -> Filter:
    sides = tuple(
        _cell(attribute, side, at, steps)
        for attribute, side in zip(given.topic.attributes, given.sides, strict=True)
    )
    return Filter(given.topic, sides)


def _cell(attribute: Attribute, side: Side, at: int, steps: int) -> Side:
    """Return the cell of this step that holds a side; none, where no cell does or for the first step."""
    if not isinstance(side, tuple) or not isinstance(attribute, Number) or not at:
        return None
    # Sizes are the same for everybody; who lies across an edge of one takes the smallest that holds all.
    size = max(attribute.bits - attribute.bits * at // steps, (side[0] ^ side[1]).bit_length())
    low = side[0] >> size << size
    return low, min(low + (1 << size) - 1, attribute.last)
