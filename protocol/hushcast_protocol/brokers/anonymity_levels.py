"""Levels of k-filter anonymity: how many distinct subscribers a filter is hidden among.

Tarkoma and Prehofer §4: a filter is k-anonymous under a condition if its level is at least k. It is counted
when it is asked for, and remembered until a filter of its topic comes or goes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Set
from itertools import islice
from sys import maxsize

from hushcast_protocol.brokers.anonymity_conditions import AnonymityCondition
from hushcast_protocol.brokers.bitmaps import slots_in
from hushcast_protocol.brokers.filter_index import Meter
from hushcast_protocol.brokers.filters import Filter, Sides, Source
from hushcast_protocol.brokers.poset import LookBudget, Poset, TopicPoset
from hushcast_protocol.brokers.roots import RootChanges
from hushcast_protocol.content.topics import Topic

MAX_NEIGHBOURS = 128  # filters directly above or below others that are looked at for one level: some 3 ms
_AMONG = 300_000  # where a topic has more than 2,300, and a look takes longer, this by their number
_LEAST = 16


class Levels:
    """A poset, and the levels of its filters and of any other filter as if it were in there."""

    def __init__(self, is_bounded: bool = False) -> None:
        """`is_bounded`: no more than `MAX_NEIGHBOURS` filters are looked at for one level.

        Who is behind those beyond counts for nobody: then levels are told lower than they are, never higher.
        """
        self.poset = Poset()
        self._is_bounded = is_bounded
        # By topic and slot: the level of the two conditions below a filter.
        self._near: dict[Topic, dict[int, int]] = {}
        self._below: dict[Topic, dict[int, int]] = {}

    def __len__(self) -> int:
        """The number of distinct filters."""
        return len(self.poset)

    @property
    def meter(self) -> Meter:
        """What looking at filters has taken so far."""
        return self.poset.meter

    def __contains__(self, given: Filter) -> bool:
        return given in self.poset

    def insert(self, given: Filter, source: Source) -> bool:
        """Add a source to a filter; return whether the filter is new."""
        if source in self.poset.sources(given):
            return False
        self._forget(given.topic)
        return self.poset.insert(given, source)

    def remove(self, given: Filter, source: Source) -> bool:
        """Take a source from a filter; return whether the filter went with it, its last.

        Raises `KeyError` if the filter does not have the source.
        """
        if source not in self.poset.sources(given):
            raise KeyError("the filter does not have this source")
        self._forget(given.topic)
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
        """Return the filters that no other covers."""
        return self.poset.roots()

    def take_changes(self, most: int = maxsize) -> RootChanges:
        """Return what changed among the roots since this was asked last, so many filters at most."""
        return self.poset.take_changes(most)

    def level(self, given: Filter, condition: AnonymityCondition) -> int:
        """Return the level of any filter under a condition: of one that is not here, as if it were."""
        order = self.poset.order(given.topic)
        if order is None:
            return 0
        slot = order.slots.get(given.sides)
        if slot is not None and condition is AnonymityCondition.IMMEDIATE_SUCCESSOR:
            return self._near_level(order, slot)
        if slot is not None and condition is AnonymityCondition.SUCCESSOR:
            return self._below_level(order, slot)
        if slot is not None and condition is not AnonymityCondition.SOURCE:
            above = list(islice(order.lowest(order.predecessors(given.sides), LookBudget()), 2))
            if len(above) == 1 and above[0].bit_count() == 1:
                # What is below the one filter directly above is most often asked for many times.
                is_near = condition is AnonymityCondition.IMMEDIATE_PREDECESSOR_SUCCESSOR
                return (self._near_level if is_near else self._below_level)(order, above[0].bit_length() - 1)
        return len(set().union(*self.behind(given, condition)))

    def reaches(
        self, given: Filter, condition: AnonymityCondition, k: int, also: Set[Source] = frozenset()
    ) -> bool:
        """Tell whether a filter's level is at least k; `also` are sources to be counted as the filter's own.

        Looks at no more sources than it takes to tell.
        """
        return enough(self.behind(given, condition, also), k)

    def behind(
        self, given: Filter, condition: AnonymityCondition, also: Set[Source] = frozenset()
    ) -> Iterator[Set[Source]]:
        """Yield, group by group, the sources that a condition counts for a filter; `also` as above."""
        order = self.poset.order(given.topic)
        if order is None:
            order = TopicPoset(given.topic, Meter())
        sides = given.sides
        if is_own_counted(order, sides, condition, order.boxes.all):
            yield also
        for slots in slots_behind(order, sides, condition, order.boxes.all, self._is_bounded):
            yield from order.behind(slots)

    def _near_level(self, order: TopicPoset, slot: int) -> int:
        near = self._near.setdefault(order.topic, {})
        if slot not in near:
            groups = self.behind(order.filter(slot), AnonymityCondition.IMMEDIATE_SUCCESSOR)
            near[slot] = len(set().union(*groups))
        return near[slot]

    def _below_level(self, order: TopicPoset, slot: int) -> int:
        below = self._below.setdefault(order.topic, {})
        if slot not in below:
            groups = order.behind(order.successors(order.boxes.sides(slot)))
            below[slot] = len(set().union(*groups))
        return below[slot]

    def _forget(self, topic: Topic) -> None:
        self._near.pop(topic, None)
        self._below.pop(topic, None)


def is_own_counted(order: TopicPoset, sides: Sides, condition: AnonymityCondition, among: int) -> bool:
    """Tell whether a condition counts the sources of a box itself, `among` some filters."""
    if condition in (AnonymityCondition.IMMEDIATE_SUCCESSOR, AnonymityCondition.SUCCESSOR):
        return False
    return condition is AnonymityCondition.SOURCE or bool(order.predecessors(sides, among))


def slots_behind(
    order: TopicPoset, sides: Sides, condition: AnonymityCondition, among: int, is_bounded: bool
) -> Iterator[int]:
    """Yield bitmaps of the filters whose sources a condition counts for a box, if `among` were all there are.

    `is_bounded`: no more than `MAX_NEIGHBOURS` filters are looked at. Which are, depends on these alone.
    """
    looks = LookBudget()
    if is_bounded:
        looks = LookBudget(max(_LEAST, min(MAX_NEIGHBOURS, _AMONG // max(1, among.bit_count()))))
    if condition is AnonymityCondition.SOURCE:
        yield 1 << order.slots[sides] & among if sides in order.slots else 0
    elif condition is AnonymityCondition.IMMEDIATE_SUCCESSOR:
        yield from order.highest(order.successors(sides, among), looks)
    elif condition is AnonymityCondition.SUCCESSOR:
        yield order.successors(sides, among)
    else:
        yield from _beside(order, sides, condition, among, looks)


def _beside(
    order: TopicPoset, sides: Sides, condition: AnonymityCondition, among: int, looks: LookBudget
) -> Iterator[int]:
    """Yield what stands (directly) below those directly above a box, which stands there, too."""
    above = order.predecessors(sides, among)
    if not above:
        return
    # The box stands between those above it and all that it covers.
    hidden = order.boxes.covered(sides, among)
    if sides in order.slots:
        yield 1 << order.slots[sides] & among
    seen = 0
    for group in order.lowest(above, looks):
        if not looks.take(count := group.bit_count()):
            return
        # Each has a share of its own, so that it does not matter which of them comes first.
        share = looks.left // count
        for higher in map(order.boxes.sides, slots_in(group)):
            below = order.successors(higher, among)
            if condition is AnonymityCondition.IMMEDIATE_PREDECESSOR:
                yield below & ~seen
                seen |= below
                continue
            own = LookBudget(share)
            for highest in order.highest(below & ~hidden, own):
                yield highest & ~seen
                seen |= highest
            looks.left -= share - own.left


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
