"""The poset of filters under covering: who stands directly above and below whom, and who is behind each.

Tarkoma and Prehofer §3: Pred(f) are the filters that cover f, Succ(f) those that f covers, without f;
ImPred(f) and ImSucc(f) those of them with none in between. Filters of two topics are never comparable, so
each topic has a poset of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Set
from functools import cache

from hushcast_protocol.brokers.bitmaps import bitmap, slots_in
from hushcast_protocol.brokers.filters import Filter, Sides, holds
from hushcast_protocol.brokers.index import Boxes
from hushcast_protocol.brokers.roots import RootChanges, Roots
from hushcast_protocol.brokers.table import Source
from hushcast_protocol.content.topics import Topic

_NOBODY: Set[int] = frozenset()
_MANY = 512  # comparisons that take longer than asking the index once


class Order:
    """The poset of one topic, by slots: what `Poset` shows by filters. `roots` are those of all topics."""

    def __init__(self, topic: Topic, roots: Roots) -> None:
        self.topic = topic
        self._roots = roots
        self.boxes = Boxes(topic.attributes)
        self.slots: dict[Sides, int] = {}
        # By slot, as the boxes are. Most filters have nothing above or below them: they share one empty set.
        self.sources: list[set[Source]] = []
        self.above: list[Set[int]] = []
        self.below: list[Set[int]] = []

    def filter(self, slot: int) -> Filter:
        """Return the filter in a slot."""
        return Filter(self.topic, self.boxes.sides(slot))

    def predecessors(self, sides: Sides) -> int:
        """Return the bitmap of Pred of a box, which may be one that is not here."""
        return self._without(sides, self.boxes.covering(sides))

    def successors(self, sides: Sides) -> int:
        """Return the bitmap of Succ of a box, which may be one that is not here."""
        return self._without(sides, self.boxes.covered(sides))

    def directly_above(self, sides: Sides) -> Set[int]:
        """Return the slots of ImPred of a box, which may be one that is not here."""
        if sides in self.slots:
            return self.above[self.slots[sides]]
        return self._nearest(self.predecessors(sides), self.above)

    def directly_below(self, sides: Sides) -> Set[int]:
        """Return the slots of ImSucc of a box, which may be one that is not here."""
        if sides in self.slots:
            return self.below[self.slots[sides]]
        return self._nearest(self.successors(sides), self.below)

    def insert(self, sides: Sides) -> int:
        """Put in a box that is not here, and return its slot."""
        above, below = self.directly_above(sides), self.directly_below(sides)
        slot = self.boxes.add(sides)
        self.slots[sides] = slot
        if slot == len(self.sources):
            self.sources.append(set())
            self.above.append(_NOBODY)
            self.below.append(_NOBODY)
        self.above[slot], self.below[slot] = above or _NOBODY, below or _NOBODY
        for lower in below:
            if not self.above[lower]:
                self._roots.remove(self.filter(lower))
        if not above:
            self._roots.add(self.filter(slot))
        for higher in above:
            for lower in self.below[higher] & below:
                _unlink(self.above, lower, higher)
                _unlink(self.below, higher, lower)
            _link(self.below, higher, slot)
        for lower in below:
            _link(self.above, lower, slot)
        return slot

    def remove(self, slot: int) -> None:
        """Take out what is in a slot, which has no sources any more."""
        above, below = self.above[slot], self.below[slot]
        self.above[slot] = self.below[slot] = _NOBODY
        for higher in above:
            _unlink(self.below, higher, slot)
        for lower in below:
            _unlink(self.above, lower, slot)
        if above:
            self._close(above, below)
        else:
            self._roots.remove(self.filter(slot))
            for lower in below:
                if not self.above[lower]:
                    self._roots.add(self.filter(lower))
        del self.slots[self.boxes.sides(slot)]
        self.boxes.discard(slot)

    def _close(self, above: Set[int], below: Set[int]) -> None:
        """Link those on both sides of a gap, where no other way leads down from the one to the other."""
        # Another way down to one of them comes in from directly above it.
        ways = {lower: self.above[lower] for lower in below}
        others: Set[int] = set().union(*ways.values())
        for higher in above:
            near, under = self.below[higher], self._under(higher, others)
            for lower, way in ways.items():
                if way.isdisjoint(near) and not any(map(under, way)):
                    _link(self.below, higher, lower)
                    _link(self.above, lower, higher)

    def _under(self, higher: int, others: Set[int]) -> Callable[[int], bool]:
        """Return a function that tells which of some other slots a filter covers."""
        sides, boxes = self.boxes.sides(higher), self.boxes
        if len(others) > _MANY:
            return set(slots_in(boxes.covered(sides, bitmap(others)))).__contains__
        return cache(lambda slot: holds(sides, boxes.sides(slot)))

    def _nearest(self, bits: int, edges: list[Set[int]]) -> set[int]:
        """Return those of Pred, or Succ, of a box that no other of them stands beside nearer to it.

        Whatever is above one of Pred is in Pred itself, and farther.
        """
        slots = list(slots_in(bits))
        nearest = set(slots)
        nearest.difference_update(*map(edges.__getitem__, slots))
        return set(nearest)  # a set keeps the room of what was taken out of it; its copy does not

    def _without(self, sides: Sides, bits: int) -> int:
        return bits ^ 1 << self.slots[sides] if sides in self.slots else bits


class Poset:
    """Filters of any topics, the covering between them, and the sources of each."""

    def __init__(self) -> None:
        self._orders: dict[Topic, Order] = {}
        self._roots = Roots()
        self._count = 0

    def __len__(self) -> int:
        """The number of distinct filters."""
        return self._count

    def __iter__(self) -> Iterator[Filter]:
        return (order.filter(slot) for order in self._orders.values() for slot in order.slots.values())

    def __contains__(self, given: Filter) -> bool:
        order = self._orders.get(given.topic)
        return order is not None and given.sides in order.slots

    def insert(self, given: Filter, source: Source) -> bool:
        """Add a source to a filter; return whether the filter is new."""
        order = self._orders.get(given.topic)
        if order is None:
            order = self._orders[given.topic] = Order(given.topic, self._roots)
        slot = order.slots.get(given.sides)
        is_new = slot is None
        if slot is None:
            slot = order.insert(given.sides)
            self._count += 1
        order.sources[slot].add(source)
        return is_new

    def remove(self, given: Filter, source: Source) -> bool:
        """Take a source from a filter; return whether the filter went with it, its last.

        Raises `KeyError` if the filter does not have the source.
        """
        order = self._orders[given.topic]
        slot = order.slots[given.sides]
        order.sources[slot].remove(source)
        if order.sources[slot]:
            return False
        order.remove(slot)
        self._count -= 1
        if not order.slots:
            del self._orders[given.topic]
        return True

    def order(self, topic: Topic) -> Order | None:
        """Return the poset of one topic, or None if no filter has it."""
        return self._orders.get(topic)

    def sources(self, given: Filter) -> Set[Source]:
        """Return Source(f): the distinct subscribers of a filter, none if it is not here."""
        order = self._orders.get(given.topic)
        if order is None or given.sides not in order.slots:
            return frozenset()
        return order.sources[order.slots[given.sides]]

    def matching(self, topic: Topic, point: Sides) -> list[Filter]:
        """Return the filters that match a message: those that cover its `point`, in no order."""
        order = self._orders.get(topic)
        return [] if order is None else list(map(order.filter, slots_in(order.boxes.covering(point))))

    def interested(self, topic: Topic, point: Sides) -> set[Source]:
        """Return the sources of all filters that match a message, given as its `point`."""
        order = self._orders.get(topic)
        if order is None:
            return set()
        return set().union(*map(order.sources.__getitem__, slots_in(order.boxes.covering(point))))

    def roots(self) -> Set[Filter]:
        """Return the filters that no other covers: not to be kept, as it changes with them."""
        return self._roots.now

    def take_changes(self) -> RootChanges:
        """Return what changed among the roots since this was asked last, or since there was none."""
        return self._roots.take_changes()

    def predecessors(self, given: Filter) -> set[Filter]:
        """Return Pred(f) of any filter, in the poset or not."""
        order = self._orders.get(given.topic)
        return set() if order is None else _filters(order, slots_in(order.predecessors(given.sides)))

    def successors(self, given: Filter) -> set[Filter]:
        """Return Succ(f) of any filter, in the poset or not."""
        order = self._orders.get(given.topic)
        return set() if order is None else _filters(order, slots_in(order.successors(given.sides)))

    def immediate_predecessors(self, given: Filter) -> set[Filter]:
        """Return ImPred(f) of any filter: of one that is not here, as if it were."""
        order = self._orders.get(given.topic)
        return set() if order is None else _filters(order, order.directly_above(given.sides))

    def immediate_successors(self, given: Filter) -> set[Filter]:
        """Return ImSucc(f) of any filter: of one that is not here, as if it were."""
        order = self._orders.get(given.topic)
        return set() if order is None else _filters(order, order.directly_below(given.sides))


def _filters(order: Order, slots: Iterable[int]) -> set[Filter]:
    return {order.filter(slot) for slot in slots}


def _link(edges: list[Set[int]], slot: int, other: int) -> None:
    known = edges[slot]
    if isinstance(known, set):
        known.add(other)
    else:
        edges[slot] = {other}


def _unlink(edges: list[Set[int]], slot: int, other: int) -> None:
    known = edges[slot]
    assert isinstance(known, set)
    known.remove(other)
    if not known:
        edges[slot] = _NOBODY
