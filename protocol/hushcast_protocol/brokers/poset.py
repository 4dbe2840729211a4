"""The poset of filters under covering: who stands directly above and below whom, and who is behind each.

Tarkoma and Prehofer §3: Pred(f) are the filters that cover f, Succ(f) those that f covers, without f;
ImPred(f) and ImSucc(f) those of them with none in between. Filters of two topics are never comparable, so
each topic has a poset of its own. Of each filter it is known how many it has above and below it, not which:
pairs are as many as the square of the filters. Which, is asked of the index.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Set
from itertools import islice
from sys import maxsize

from hushcast_protocol.brokers.bitmaps import Tallies, bitmap, slots_in
from hushcast_protocol.brokers.filter_index import BoxIndex, Meter
from hushcast_protocol.brokers.filters import Filter, Sides, Source, size
from hushcast_protocol.brokers.roots import RootChanges
from hushcast_protocol.content.topics import Topic


class LookBudget:
    """How many filters may still be looked at for what stands directly beside another."""

    def __init__(self, left: int = maxsize) -> None:
        self.left = left

    def take(self, count: int) -> bool:
        """Take so many, or all that is left where that is less; return whether there were so many."""
        is_enough = count <= self.left
        self.left = self.left - count if is_enough else 0
        return is_enough


class TopicPoset:
    """The poset of one topic, by slots: what `Poset` shows by filters."""

    def __init__(self, topic: Topic, meter: Meter) -> None:
        self.topic = topic
        self.meter = meter
        self.boxes = BoxIndex(topic.attributes, meter)
        self.slots: dict[Sides, int] = {}
        self.sources: list[set[Source]] = []  # by slot, as the boxes are
        self.roots = 0
        """The bitmap of those that no other covers: one filter may make all others none in one operation."""
        self._taken = 0  # roots as they were taken, of what is here
        self._gone: dict[Sides, None] = {}  # what was taken as a root, and is not here any more
        self._wide = 0
        """The bitmap of those that cover others or did: few do, and what never did leaves without a look."""
        # Free slots keep their numbers until they are used again, and what they are in `_wide`.
        self._above = Tallies()
        self._sizes = Tallies()  # what covers another is larger

    def filter(self, slot: int) -> Filter:
        """Return the filter in a slot."""
        return Filter(self.topic, self.boxes.sides(slot))

    def predecessors(self, sides: Sides, among: int | None = None) -> int:
        """Return the bitmap of Pred of a box, which may be one that is not here; of those `among` some."""
        return self._without(sides, self.boxes.covering(sides, among))

    def successors(self, sides: Sides, among: int | None = None) -> int:
        """Return the bitmap of Succ of a box, which may be one that is not here; of those `among` some."""
        return self._without(sides, self.boxes.covered(sides, among))

    def highest(self, slots: int, looks: LookBudget) -> Iterator[int]:
        """Yield those of some slots that no other of them covers, as far as looks go.

        They come in bitmaps of those of one size, the largest first. So what comes before looks are over
        depends on no other filter, nor on the slots that these have.
        """
        while slots:
            largest = self._sizes.greatest(slots)
            slots ^= largest
            yield largest
            if slots and not looks.take(largest.bit_count()):
                return
            for slot in slots_in(largest & self._wide):
                slots &= ~self.boxes.covered(self.boxes.sides(slot), slots)
                if not slots:
                    break

    def lowest(self, slots: int, looks: LookBudget) -> Iterator[int]:
        """Yield those of some slots that cover no other of them, in the same way, the smallest first."""
        while slots:
            smallest = self._sizes.least(slots)
            slots ^= smallest
            yield smallest
            if slots and not looks.take(smallest.bit_count()):
                return
            for slot in slots_in(smallest & ~self.roots):
                slots &= ~self.boxes.covering(self.boxes.sides(slot), slots)
                if not slots:
                    break

    def smallest(self, slots: int) -> Iterator[int]:
        """Yield some slots in bitmaps of those of one size, the smallest first."""
        while slots:
            smallest = self._sizes.least(slots)
            slots ^= smallest
            yield smallest

    def behind(self, slots: int) -> Iterator[Set[Source]]:
        """Yield the sources of the filters in some slots, filter by filter."""
        self.meter.read += slots.bit_count() // 64
        return map(self.sources.__getitem__, slots_in(slots))

    def insert(self, sides: Sides) -> int:
        """Put in a box that is not here, and return its slot."""
        above, below = self.boxes.covering(sides), self.boxes.covered(sides)
        slot = self.boxes.add(sides)
        self.slots[sides] = slot
        if slot == len(self.sources):
            self.sources.append(set())
        bit = 1 << slot
        if not above:
            self.roots = self.roots & ~self._above.zero(below) | bit
        self._wide |= above
        if bool(self._wide & bit) != bool(below):
            self._wide ^= bit
        if sides in self._gone:
            del self._gone[sides]
            self._taken |= bit
        self._above.put(slot, above.bit_count())
        self._sizes.put(slot, size(self.topic, sides))
        self._above.add(below)
        return slot

    def remove(self, slot: int) -> None:
        """Take out what is in a slot, which has no sources any more."""
        sides = self.boxes.sides(slot)
        bit = 1 << slot
        below = self.boxes.covered(sides) ^ bit if self._wide & bit else 0
        self._above.subtract(below)
        if self.roots & bit:
            self.roots = self.roots ^ bit | self._above.zero(below)
        if self._taken & bit:
            self._taken ^= bit
            self._gone[sides] = None
        del self.slots[sides]
        self.boxes.discard(slot)

    @property
    def is_taken(self) -> bool:
        """Whether all changes of the roots were taken."""
        return self.roots == self._taken and not self._gone

    def take_shown(self, most: int) -> list[Filter]:
        """Return so many roots that were not taken yet."""
        slots = list(islice(slots_in(self.roots & ~self._taken), most))
        self._taken |= bitmap(slots)
        return list(map(self.filter, slots))

    def take_withdrawn(self, most: int) -> list[Filter]:
        """Return so many of those that were taken as roots, and are none any more."""
        gone = list(islice(self._gone, most))
        for sides in gone:
            del self._gone[sides]
        slots = list(islice(slots_in(self._taken & ~self.roots), most - len(gone)))
        self._taken &= ~bitmap(slots)
        return [*(Filter(self.topic, sides) for sides in gone), *map(self.filter, slots)]

    def _without(self, sides: Sides, bits: int) -> int:
        return bits & ~(1 << self.slots[sides]) if sides in self.slots else bits


class Poset:
    """Filters of any topics, the covering between them, and the sources of each."""

    def __init__(self, meter: Meter | None = None) -> None:
        """`meter` counts looks at filters, those of this poset alone unless given."""
        self._orders: dict[Topic, TopicPoset] = {}
        self._unshown: dict[Topic, TopicPoset] = {}  # where roots may have come that were not taken yet
        self._unwithdrawn: dict[
            Topic, TopicPoset
        ] = {}  # where some may have gone; no filter need be left there
        self._count = 0
        self.meter = meter or Meter()

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
            order = self._unwithdrawn.get(given.topic) or TopicPoset(given.topic, self.meter)
            self._orders[given.topic] = order
        slot = order.slots.get(given.sides)
        is_new = slot is None
        if slot is None:
            slot = order.insert(given.sides)
            self._unshown[given.topic] = self._unwithdrawn[given.topic] = order
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
        self._unshown[given.topic] = self._unwithdrawn[given.topic] = order
        self._count -= 1
        if not order.slots:
            del self._orders[given.topic], self._unshown[given.topic]
            if order.is_taken:
                del self._unwithdrawn[given.topic]
        return True

    def order(self, topic: Topic) -> TopicPoset | None:
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
        return set().union(*order.behind(order.boxes.covering(point)))

    def roots(self) -> Set[Filter]:
        """Return the filters that no other covers."""
        return {order.filter(slot) for order in self._orders.values() for slot in slots_in(order.roots)}

    def take_changes(self, most: int = maxsize) -> RootChanges:
        """Return what changed among the roots since this was asked last, so many filters at most."""
        shown = _some_of(self._unshown, TopicPoset.take_shown, most)
        is_all_shown = not self._unshown
        withdrawn = (
            _some_of(self._unwithdrawn, TopicPoset.take_withdrawn, most - len(shown)) if is_all_shown else []
        )
        has_more = bool(self._unshown or self._unwithdrawn)
        return RootChanges(frozenset(shown), frozenset(withdrawn), is_all_shown, has_more)

    def nearest(self, given: Filter) -> Filter | None:
        """Return one of ImPred(f) of any filter, or None if nothing covers it."""
        order = self._orders.get(given.topic)
        if order is None or not (above := order.predecessors(given.sides)):
            return None
        return order.filter(next(slots_in(next(order.smallest(above)))))

    def predecessors(self, given: Filter) -> set[Filter]:
        """Return Pred(f) of any filter, in the poset or not."""
        order = self._orders.get(given.topic)
        return set() if order is None else _filters(order, [order.predecessors(given.sides)])

    def successors(self, given: Filter) -> set[Filter]:
        """Return Succ(f) of any filter, in the poset or not."""
        order = self._orders.get(given.topic)
        return set() if order is None else _filters(order, [order.successors(given.sides)])

    def immediate_predecessors(self, given: Filter) -> set[Filter]:
        """Return ImPred(f) of any filter: of one that is not here, as if it were."""
        order = self._orders.get(given.topic)
        return (
            set()
            if order is None
            else _filters(order, order.lowest(order.predecessors(given.sides), LookBudget()))
        )

    def immediate_successors(self, given: Filter) -> set[Filter]:
        """Return ImSucc(f) of any filter: of one that is not here, as if it were."""
        order = self._orders.get(given.topic)
        return (
            set()
            if order is None
            else _filters(order, order.highest(order.successors(given.sides), LookBudget()))
        )


def _filters(order: TopicPoset, groups: Iterable[int]) -> set[Filter]:
    return {order.filter(slot) for group in groups for slot in slots_in(group)}


def _some_of(
    orders: dict[Topic, TopicPoset], take: Callable[[TopicPoset, int], list[Filter]], most: int
) -> list[Filter]:
    """Return so many changes at most of some topics, and drop the topics that have no more of them."""
    found: list[Filter] = []
    for topic, order in list(islice(orders.items(), most)):
        found += take(order, most - len(found))
        if len(found) >= most:
            break
        del orders[topic]
    return found
