"""Bogus filters: the fewest sources that stand for nobody, and where, for a filter to be anonymous.

Tarkoma and Prehofer §7: they let filters propagate where nobody may be the first. Who is behind them can
tell nobody's interests; what they cost is routing state, and with a wider one messages that nobody wants.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Set
from typing import NamedTuple

from hushcast_protocol.brokers.anonymity_conditions import AnonymityCondition
from hushcast_protocol.brokers.anonymity_levels import Levels
from hushcast_protocol.brokers.filters import Filter, Side, Source, covers
from hushcast_protocol.content.attributes import Attribute, Number

_Steps = Callable[[Attribute, Side], Iterator[Side]]


class Placed(NamedTuple):
    """So many sources that stand for nobody are put behind a filter."""

    filter: Filter
    number: int


def placing(
    levels: Levels, given: Filter, condition: AnonymityCondition, k: int, also: Set[Source]
) -> tuple[Placed, ...] | None:
    """Return what makes a filter k-anonymous among others, or None where nothing can.

    Nothing is to be placed where it is so already; `also` are sources that come with the filter. Definitions
    1 and 2 count what the filter covers, so a filter of one message cannot be helped; 3 and 4 need something
    that covers it, which what matches the whole topic has not.
    """
    missing = k - len(set().union(*levels.behind(given, condition, also)))
    if missing <= 0:
        return ()
    if condition is AnonymityCondition.SOURCE:
        return (Placed(given, missing),)
    if condition is AnonymityCondition.SUCCESSOR:
        narrow = next(_narrower(given), None)
        return (Placed(narrow, missing),) if narrow is not None else None
    if condition is AnonymityCondition.IMMEDIATE_SUCCESSOR:
        found = (Placed(narrow, _left(levels, given, narrow, k)) for narrow in _narrower(given))
        best = min(found, key=lambda placed: placed.number, default=None)
        return (best,) if best is not None else None
    if levels.poset.immediate_predecessors(given):
        return (Placed(given, missing),)
    wide = min(_wider(given), key=lambda one: one.volume, default=None)
    if wide is None:
        return None
    missing = k - len(levels.poset.sources(given) | also)
    return Placed(wide, 1), *((Placed(given, missing),) if missing > 0 else ())


def _left(levels: Levels, given: Filter, narrow: Filter, k: int) -> int:
    """Return how many sources a filter directly below another needs, given those that it hides there."""
    beside = {one for one in levels.poset.immediate_successors(given) if not covers(narrow, one)}
    sources = set().union(*map(levels.poset.sources, {*beside, narrow}))
    return max(1, k - len(sources))


def _narrower(given: Filter) -> Iterator[Filter]:
    """Yield filters that one covers, with nothing in between."""
    return _stepped(given, _steps_in)


def _wider(given: Filter) -> Iterator[Filter]:
    """Yield filters that cover one, with nothing in between."""
    return _stepped(given, _steps_out)


def _stepped(given: Filter, steps: _Steps) -> Iterator[Filter]:
    for at, (attribute, side) in enumerate(zip(given.topic.attributes, given.sides, strict=True)):
        for other in steps(attribute, side):
            yield Filter(given.topic, (*given.sides[:at], other, *given.sides[at + 1 :]))


def _steps_in(attribute: Attribute, side: Side) -> Iterator[Side]:
    if side is None and isinstance(attribute, Number):
        yield 0, attribute.last
    elif isinstance(side, tuple) and side[0] < side[1]:
        yield side[0], side[1] - 1
        yield side[0] + 1, side[1]


def _steps_out(attribute: Attribute, side: Side) -> Iterator[Side]:
    if side is None:
        return
    if isinstance(side, tuple) and isinstance(attribute, Number):
        if side[0] > 0:
            yield side[0] - 1, side[1]
        if side[1] < attribute.last:
            yield side[0], side[1] + 1
        if side != (0, attribute.last):
            return
    yield None
