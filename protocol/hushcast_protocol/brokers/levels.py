"""Levels of k-filter anonymity: how many distinct subscribers a filter is hidden among.

Tarkoma and Prehofer §4: a filter is k-anonymous under a condition if its level is at least k. What levels
rest on changes as filters come and go; it is counted again where it did and when it is asked for, never for
the whole poset.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Set

from hushcast_protocol.brokers.bitmaps import slots_in
from hushcast_protocol.brokers.conditions import Condition
from hushcast_protocol.brokers.filters import Filter, Sides
from hushcast_protocol.brokers.poset import Order, Poset
from hushcast_protocol.brokers.roots import RootChanges, Roots
from hushcast_protocol.brokers.table import Source
from hushcast_protocol.content.topics import Topic


class Levels:
    """A poset, and the levels of its filters and of any other filter as if it were in there."""

    def __init__(self) -> None:
        self.poset = Poset()
        # By topic and slot: the level of the two conditions below a filter, until something below it changes.
        self._near: dict[Topic, dict[int, int]] = {}
        self._below: dict[Topic, dict[int, int]] = {}

    def __len__(self) -> int:
        """The number of distinct filters."""
        return len(self.poset)

    def __contains__(self, given: Filter) -> bool:
        return given in self.poset

    def insert(self, given: Filter, source: Source) -> bool:
        """Add a source to a filter; return whether the filter is new."""
        if source in self.poset.sources(given):
            return False
        is_new = self.poset.insert(given, source)
        self._forget(given)
        return is_new

    def remove(self, given: Filter, source: Source) -> bool:
        """Take a source from a filter; return whether the filter went with it, its last.

        Raises `KeyError` if the filter does not have the source.
        """
        if source not in self.poset.sources(given):
            raise KeyError("the filter does not have this source")
        self._forget(given)  # while it is still there to tell what is above it
        return self.poset.remove(given, source)

    def sources(self, given: Filter) -> Set[Source]:
        """Return Source(f): the distinct subscribers of a filter, none if it is not here."""
        return self.poset.sources(given)

    def matching(self, topic: Topic, point: Sides) -> list[Filter]:
        """Return the filters that match a message: those that cover its `point`, in no order."""
        return self.poset.matching(topic, point)

    def interested(self, topic: Topic, point: Sides) -> set[Source]:
        """Return the sources of all filters that match a message, given as its `point`."""
        return self.poset.interested(topic, point)

    def roots(self) -> Set[Filter]:
        """Return the filters that no other covers: not to be kept, as it changes with them."""
        return self.poset.roots()

    def take_changes(self) -> RootChanges:
        """Return what changed among the roots since this was asked last, or since there was none."""
        return self.poset.take_changes()

    def level(self, given: Filter, condition: Condition) -> int:
        """Return the level of any filter under a condition: of one that is not here, as if it were."""
        order = self.poset.order(given.topic)
        if order is None:
            return 0
        slot = order.slots.get(given.sides)
        if slot is None:
            return len(set().union(*_behind(order, given.sides, condition, frozenset())))
        if condition is Condition.IMMEDIATE_SUCCESSOR:
            return self._near_level(order, slot)
        if condition is Condition.SUCCESSOR:
            return self._below_level(order, slot)
        above = order.above[slot]
        if len(above) == 1 and condition is not Condition.SOURCE:
            # What is below the one filter directly above is most often asked for many times.
            (parent,) = above
            if condition is Condition.IMMEDIATE_PREDECESSOR:
                return self._below_level(order, parent)
            return self._near_level(order, parent)
        return len(set().union(*_behind(order, given.sides, condition, frozenset())))

    def reaches(self, given: Filter, condition: Condition, k: int, also: Set[Source] = frozenset()) -> bool:
        """Tell whether a filter's level is at least k; `also` are sources to be counted as the filter's own.

        Looks at no more sources than it takes to tell.
        """
        return enough(self.behind(given, condition, also), k)

    def behind(
        self, given: Filter, condition: Condition, also: Set[Source] = frozenset()
    ) -> Iterator[Set[Source]]:
        """Yield, group by group, the sources that a condition counts for a filter; `also` as above."""
        order = self.poset.order(given.topic)
        if order is None:
            order = Order(given.topic, Roots())
        return _behind(order, given.sides, condition, also)

    def _near_level(self, order: Order, slot: int) -> int:
        near = self._near.setdefault(order.topic, {})
        if slot not in near:
            near[slot] = len(set().union(*map(order.sources.__getitem__, order.below[slot])))
        return near[slot]

    def _below_level(self, order: Order, slot: int) -> int:
        below = self._below.setdefault(order.topic, {})
        if slot not in below:
            slots = slots_in(order.successors(order.boxes.sides(slot)))
            below[slot] = len(set().union(*map(order.sources.__getitem__, slots)))
        return below[slot]

    def _forget(self, given: Filter) -> None:
        """Forget the levels that rest on a filter whose sources or neighbours change."""
        order = self.poset.order(given.topic)
        assert order is not None
        slot = order.slots[given.sides]
        if near := self._near.get(given.topic):
            for other in (slot, *order.above[slot]):
                near.pop(other, None)
        if below := self._below.get(given.topic):
            below.pop(slot, None)
            for other in slots_in(order.predecessors(given.sides)):
                below.pop(other, None)
        if len(order.slots) == 1:  # perhaps the topic's last
            self._near.pop(given.topic, None)
            self._below.pop(given.topic, None)


def enough(groups: Iterable[Set[Source]], k: int) -> bool:
    """Tell whether groups of sources have at least k distinct ones between them."""
    found: set[Source] = set()
    if k <= 0:
        return True
    for group in groups:
        found |= group
        if len(found) >= k:
            return True
    return False


def _behind(order: Order, sides: Sides, condition: Condition, also: Set[Source]) -> Iterator[Set[Source]]:
    """Yield the sources that a condition counts for a box, group by group."""
    sources = order.sources
    slot = order.slots.get(sides)
    own = also if slot is None else sources[slot] | also
    if condition is Condition.SOURCE:
        yield own
    elif condition is Condition.IMMEDIATE_SUCCESSOR:
        yield from map(sources.__getitem__, order.directly_below(sides))
    elif condition is Condition.SUCCESSOR:
        yield from map(sources.__getitem__, slots_in(order.successors(sides)))
    else:
        above = order.directly_above(sides)
        if above:
            yield own
        if condition is Condition.IMMEDIATE_PREDECESSOR:
            bits = 0
            for higher in above:
                bits |= order.successors(order.boxes.sides(higher))
            yield from map(sources.__getitem__, slots_in(bits))
        else:
            # A box that were here would stand between those above and those directly below it.
            hidden = order.directly_below(sides)
            for higher in above:
                yield from map(sources.__getitem__, order.below[higher] - hidden)
