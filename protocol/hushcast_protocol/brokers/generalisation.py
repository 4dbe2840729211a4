"""Augmenting k-filter anonymity: the filter to show in place of one that is not anonymous enough.

Tarkoma and Prehofer §4: a filter that covers the given one, satisfies the condition, and is minimal in
generality; here, one that lets the fewest messages through besides. It is judged as if it stood in the poset
beside all that is there, the given filter included, and were installed by the given filter's subscribers.
Under `source` all that it covers is merged into it, so the sources of these are its own.

A search may take seconds among many filters: whoever has no such time takes it in pieces (`generalising`).
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Iterator
from dataclasses import dataclass
from heapq import heappop, heappush, nsmallest
from itertools import pairwise

from hushcast_protocol.brokers.anonymity_conditions import AnonymityCondition
from hushcast_protocol.brokers.anonymity_levels import Levels, enough
from hushcast_protocol.brokers.bitmaps import slots_in
from hushcast_protocol.brokers.filters import Filter, Merger, Side, Sides, joined, merge, width
from hushcast_protocol.brokers.poset import LookBudget, TopicPoset
from hushcast_protocol.content.attributes import Attribute, Label

MAX_TRIED = 512  # filters tried one by one, narrowest first, where filters are many: at worst 5 s, in pieces
MAX_NEIGHBOURS = 256  # filters around the given one that are looked at for what to merge it with
_MERGED = 48  # of these the nearest, out of whose ends new ranges are made
_SORTED = 4096  # boxes of one size that are put in order: some 5 ms; of more, none is looked at


@dataclass(frozen=True, slots=True)
class Generalisation:
    """What is shown to others in place of a filter; `added` is the share of messages that comes in excess."""

    filter: Filter
    added: float


def merger_shown(levels: Levels, given: Filter, shown: Filter) -> Merger | None:
    """Return the merger of a filter with another one there that is shown in its place, or None if it is none.

    Of several that have the same merger, that which adds the least. Nothing is merged where what is shown is
    subscribed to itself.
    """
    if shown in levels:
        return None
    others = levels.poset.successors(shown) - {given}
    mergers = (merge(given, other) for other in others if joined(given.sides, other.sides) == shown.sides)
    return min(mergers, key=lambda one: one.added, default=None)


Search = Generator[None, None, Generalisation | None]


def generalise(levels: Levels, given: Filter, condition: AnonymityCondition, k: int) -> Generalisation | None:
    """Return what may be shown of a filter so that it is k-anonymous, or None if nothing was found that may.

    That is the filter itself if it satisfies the condition. Otherwise the covering filter of least volume,
    where `MAX_TRIED` tries suffice to find it; else the least that was found by merging with what is near.
    """
    pieces = generalising(levels, given, condition, k)
    while True:
        try:
            next(pieces)
        except StopIteration as end:
            found: Generalisation | None = end.value
            return found


def generalising(levels: Levels, given: Filter, condition: AnonymityCondition, k: int) -> Search:
    """Do what `generalise` does in pieces, between which it yields; none is longer than telling one level."""
    if levels.reaches(given, condition, k):
        return Generalisation(given, 0.0)
    order = levels.poset.order(given.topic)
    if order is None:
        return None

    def satisfies(shown: Filter) -> bool:
        if condition is AnonymityCondition.SOURCE:
            return enough(order.behind(order.boxes.covered(shown.sides)), k)
        return levels.reaches(shown, condition, k, frozenset(levels.poset.sources(given)))

    yield
    found = yield from narrowest(order, given, lambda: order.boxes.all, satisfies)
    return None if found is None else Generalisation(found, max(0.0, found.volume - given.volume))


def narrowest(
    order: TopicPoset, given: Filter, among: Callable[[], int], satisfies: Callable[[Filter], bool]
) -> Generator[None, None, Filter | None]:
    """Search the narrowest filter that satisfies, of the others that cover the given one, in pieces.

    `among` says which filters there are, in slots, and others change nothing. Filters may come and go between
    pieces, the given one excepted: then what is found satisfied once, and is to be asked again.
    """
    return _Search(order, given, among, satisfies).run()


class _Search:
    """One search for a filter to show."""

    def __init__(
        self, order: TopicPoset, given: Filter, among: Callable[[], int], satisfies: Callable[[Filter], bool]
    ) -> None:
        self._order = order
        self._given = given
        self._among = among
        self._satisfies = satisfies
        self._near: list[Sides] = []

    def run(self) -> Generator[None, None, Filter | None]:
        """Return the narrowest filter that was found, in pieces."""
        given, near = self._given.sides, dict[Sides, None]()
        for boxes in self._around():
            near.update(dict.fromkeys(boxes))
            if len(near) > MAX_NEIGHBOURS:
                break
            yield
        near.pop(given, None)
        self._near = nsmallest(
            _MERGED, near, key=lambda other: (self._volume(joined(given, other)), repr(other))
        )
        yield
        known = yield from self._merged()
        return (yield from self._narrowest(known))

    def _merged(self) -> Generator[None, None, Filter | None]:
        """Return the least filter that is found by merging with neighbours, by what is above, by dropping."""
        # To ask whether one satisfies takes long, to tell its volume does not: wider ones need not be asked.
        for one in sorted(map(self._filter, dict.fromkeys(self._simple())), key=width):
            yield
            if one.sides != self._given.sides and self._satisfies(one):
                return one
        return None

    def _narrowest(self, known: Filter | None) -> Generator[None, None, Filter | None]:
        """Return the narrowest filter that satisfies, tried in the order of volume, or what is known."""
        near = list(zip(*self._near, strict=True)) or [()] * len(self._given.sides)
        ladders = list(map(_Ladder, self._given.topic.attributes, self._given.sides, near))
        waiting = [(width(self._given), 0, self._given)]
        seen = {self._given.sides}
        for _ in range(MAX_TRIED):
            if not waiting or (known is not None and waiting[0][0] >= width(known)):
                break
            yield
            tried = heappop(waiting)[2]
            if tried != self._given and self._satisfies(tried):
                return tried
            for sides in _stepped(tried.sides, [ladder.above for ladder in ladders]):
                if sides not in seen:
                    seen.add(sides)
                    wider = self._filter(sides)
                    heappush(waiting, (width(wider), len(seen), wider))
        return known

    def _simple(self) -> Iterator[Sides]:
        """Yield filters that cover the given one: few, but with a good one among them."""
        sides = self._given.sides
        for higher in self._first(self._order.smallest(self._order.predecessors(sides, self._among()))):
            yield higher
            yield from self._a_step_out(higher)
        yield from self._a_step_out(sides)
        grown = sides
        for other in self._near:
            yield joined(sides, other)
            if joined(grown, other) != grown:
                grown = joined(grown, other)
                yield grown
                yield from self._a_step_out(grown)
        yield from self._dropped()

    def _dropped(self) -> Iterator[Sides]:
        """Yield the filter without one of its conditions, then without two, until it has none."""
        sides = self._given.sides
        for at, side in enumerate(self._given.sides):
            if side is not None:
                yield (*self._given.sides[:at], None, *self._given.sides[at + 1 :])
                sides = (*sides[:at], None, *sides[at + 1 :])
                yield sides

    def _a_step_out(self, sides: Sides) -> Iterator[Sides]:
        """Yield the filters that are wider than one by the least on one attribute."""
        ladders = [
            _Ladder(attribute, side, ())
            for attribute, side in zip(self._given.topic.attributes, sides, strict=True)
        ]
        return _stepped(sides, [ladder.above for ladder in ladders])

    def _around(self) -> Iterator[list[Sides]]:
        """Yield boxes around the given filter: all if they are few, otherwise those directly beside it."""
        order, given, among = self._order, self._given.sides, self._among()
        if among.bit_count() <= MAX_NEIGHBOURS:
            yield list(map(order.boxes.sides, slots_in(among)))
            return
        above = self._first(order.lowest(order.predecessors(given, among), LookBudget(_MERGED)))
        yield above
        yield self._first(order.highest(order.successors(given, self._among()), LookBudget(_MERGED)))
        for higher in above:
            yield self._first(order.highest(order.successors(higher, self._among()), LookBudget(_MERGED)))

    def _first(self, groups: Iterator[int]) -> list[Sides]:
        """Return some boxes of those in bitmaps, in an order that no slot plays a part in."""
        found: list[Sides] = []
        for group in groups:
            if len(found) >= _MERGED or group.bit_count() > _SORTED:
                break
            self._order.meter.read += group.bit_count() // 8
            boxes = map(self._order.boxes.sides, slots_in(group))
            found += nsmallest(_MERGED - len(found), boxes, key=repr)
        return found

    def _filter(self, sides: Sides) -> Filter:
        return Filter(self._given.topic, sides)

    def _volume(self, sides: Sides) -> float:
        return self._filter(sides).volume


class _Ladder:
    """What one side may become: only at the ends of others, and just beyond, does anything change."""

    def __init__(self, attribute: Attribute, side: Side, near: Iterable[Side]) -> None:
        self._lower: dict[int, int] = {}
        self._higher: dict[int, int] = {}
        if not isinstance(side, tuple) or isinstance(attribute, Label):
            return
        low, high = side
        ranges = [other for other in near if isinstance(other, tuple)]
        lows = {place for other in ranges for place in (other[0], other[0] - 1)} | {low - 1, 0}
        highs = {place for other in ranges for place in (other[1], other[1] + 1)} | {high + 1, attribute.last}
        lower = sorted({place for place in lows if 0 <= place < low}, reverse=True)
        higher = sorted(place for place in highs if high < place <= attribute.last)
        self._lower.update(pairwise([low, *lower]))
        self._higher.update(pairwise([high, *higher]))

    def above(self, side: Side) -> Iterator[Side]:
        """Yield the sides a step wider than one, and none at all."""
        if isinstance(side, tuple):
            low, high = side
            if low in self._lower:
                yield self._lower[low], high
            if high in self._higher:
                yield low, self._higher[high]
        if side is not None:
            yield None


def _stepped(sides: Sides, above: list[Callable[[Side], Iterator[Side]]]) -> Iterator[Sides]:
    """Yield the boxes that are a step wider than one on one attribute."""
    for at, (wider_than, side) in enumerate(zip(above, sides, strict=True)):
        for wider in wider_than(side):
            yield (*sides[:at], wider, *sides[at + 1 :])
