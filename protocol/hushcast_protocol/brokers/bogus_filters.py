"""Bogus filters: what an edge broker shows beside a filter, so that it seems to stand in a crowd.

Tarkoma and Prehofer §7: they let a filter propagate where nobody may be the first. Under Definitions 1 and 2
one stands a step below the filter, under 3 and 4 one a step above it; under `source` there is none, and bogus
sources stand behind the filter itself. Which it is follows from the filter and its condition alone, so it
tells nobody of others' filters. One of the two covers the other, and both have to be seen: the one that is
covered travels as such (`covered_filters.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

from hushcast_protocol.brokers.anonymity_conditions import AnonymityCondition, Fallback
from hushcast_protocol.brokers.filters import Filter, Side
from hushcast_protocol.content.attributes import Attribute, Number

BELOW = frozenset((AnonymityCondition.IMMEDIATE_SUCCESSOR, AnonymityCondition.SUCCESSOR))
"""Conditions that count who is behind what a filter covers, and not who is behind the filter."""

_Steps = Callable[[Attribute, Side], Iterator[Side]]


class BogusFilters(NamedTuple):
    """What stands beside one filter, and stands for nobody."""

    narrower: Filter | None = None
    wider: Filter | None = None

    def covered(self, given: Filter) -> tuple[Filter, ...]:
        """Return those that are to travel though another covers them: the filter itself may be one."""
        return (*((given,) if self.wider is not None else ()), *((self.narrower,) if self.narrower else ()))


class TermsPrice(NamedTuple):
    """What a subscription's terms cost at most, whoever else is there."""

    rows: int
    """Filters that brokers hold for it beside its own."""
    excess: float
    """The share of the topic's messages that comes though it does not want them."""


def bogus_beside(given: Filter, conditions: Iterable[AnonymityCondition]) -> BogusFilters | None:
    """Return what has to stand beside a filter under each condition, or None where there is no such filter.

    Nothing is narrower than a filter of one message, and nothing wider than one of the whole topic.
    """
    found = BogusFilters()
    for condition in conditions:
        if condition in BELOW:
            found = found._replace(narrower=next(_stepped(given, _steps_in), None))
            if found.narrower is None:
                return None
        elif condition is not AnonymityCondition.SOURCE:
            wider = min(_stepped(given, _steps_out), key=lambda one: one.volume, default=None)
            found = found._replace(wider=wider)
            if wider is None:
                return None
    return found


def price(given: Filter, condition: AnonymityCondition, otherwise: Fallback) -> TermsPrice:
    """Return what it costs at most to have a filter shown under these terms.

    How wide a filter is that is shown instead (`generalise`) is not known to whom it is shown for: it has the
    ends of others' filters.
    """
    if otherwise == "generalise":
        return TermsPrice(0, 1.0 - given.volume)
    beside = bogus_beside(given, [condition]) if otherwise == "bogus" else None
    if beside is None:
        return TermsPrice(0, 0.0)
    added = max(0.0, beside.wider.volume - given.volume) if beside.wider is not None else 0.0
    return TermsPrice(sum(one is not None for one in beside), added)


def _stepped(given: Filter, steps: _Steps) -> Iterator[Filter]:
    """Yield filters with one side a step in or out: nothing stands between these and the one given."""
    for at, (attribute, side) in enumerate(zip(given.topic.attributes, given.sides, strict=True)):
        for other in steps(attribute, side):
            yield Filter(given.topic, (*given.sides[:at], other, *given.sides[at + 1 :]))


def _steps_in(attribute: Attribute, side: Side) -> Iterator[Side]:
    if side is None and isinstance(attribute, Number):
        yield 0, attribute.last
    elif isinstance(side, tuple) and side[0] < side[1]:
        yield side[0], side[1] - 1


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
