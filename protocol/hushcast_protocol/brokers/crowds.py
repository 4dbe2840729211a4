"""Crowds: who counts, at an edge broker, for a filter that is to be shown.

Tarkoma and Prehofer §4 count the sources of all filters that are there. But a filter that is held back for
want of a crowd would then show itself by what it does for others, or takes from them: whoever adds filters
beside it, with a smaller k, sees by these where it is. So a filter is judged twice, and one crowd is enough:

- among the filters of those who ask for nothing, by these and those who ask for just the same as it does;
- among the filters of those who ask for nothing or for no larger k than it does, by those of them who ask to
  hide, if these are at least as many as it asks for.

Whoever wants to know whether a filter with k is there has to ask for k, and to be a crowd of k but for one.
What ends early, a look among many neighbours or a search, does so by what is among these alone, too.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Generator, Iterator, Set
from itertools import chain
from typing import NamedTuple

from hushcast_protocol.brokers.anonymity_conditions import AnonymityCondition
from hushcast_protocol.brokers.anonymity_levels import is_own_counted, slots_behind
from hushcast_protocol.brokers.bitmaps import Tallies, slots_in
from hushcast_protocol.brokers.filter_index import Meter
from hushcast_protocol.brokers.filters import Filter, Source, width
from hushcast_protocol.brokers.generalisation import narrowest
from hushcast_protocol.brokers.network_crowd import Demands
from hushcast_protocol.brokers.poset import Poset, TopicPoset
from hushcast_protocol.content.topics import Topic

_READ = 16  # askers that are told apart while the index is looked at once (`Meter`)


def least_crowd(k: int, has_sunk: bool) -> int:
    """Return how many are to stand behind a filter that asks for k; a quarter more once it has sunk."""
    return k + max(1, k // 4) if has_sunk else k


class CrowdSource(NamedTuple):
    """A source of one filter, as the poset holds it."""

    source: Source
    k: int
    """How many it asks to hide among there; 1: it asks for nothing."""


class JudgedFilter(NamedTuple):
    """A filter that is judged, and whose it is."""

    filter: Filter
    asker_k: int
    """The largest k that is asked for it."""
    own: Set[Source]
    """The sources that ask for just the same, and are there."""


class Crowds:
    """Filters with their askers, and whether there are enough for one of them."""

    def __init__(self) -> None:
        self._poset = Poset()
        self._asked: dict[Topic, _Asked] = {}

    @property
    def meter(self) -> Meter:
        """What looking at filters has taken so far."""
        return self._poset.meter

    def insert(self, given: Filter, asker: CrowdSource) -> None:
        """Have a source stand behind a filter."""
        self._poset.insert(given, asker)
        order = self._poset.order(given.topic)
        assert order is not None, "it has a filter"
        if given.topic not in self._asked:
            self._asked[given.topic] = _Asked(order)
        self._asked[given.topic].note_came(order.slots[given.sides], asker)

    def remove(self, given: Filter, asker: CrowdSource) -> None:
        """Take a source, which is there, from behind a filter."""
        asked = self._asked[given.topic]
        slot = asked.order.slots[given.sides]
        self._poset.remove(given, asker)
        asked.note_went(slot, asker)
        if not asked.order.slots:
            del self._asked[given.topic]

    def own(self, judged: JudgedFilter, most: int) -> int:
        """Return how many stand behind the filter itself who ask for nothing or the same; `most` at most."""
        if judged.filter.topic not in self._asked:
            return 0
        return self._open(judged).level(judged.filter, judged.filter, AnonymityCondition.SOURCE, most)

    def may_show(self, judged: JudgedFilter, shown: Filter, condition: AnonymityCondition, k: int) -> bool:
        """Tell whether a filter that covers a judged one, or is it, may be shown for it."""
        if judged.filter.topic not in self._asked:
            return False
        crowds = (crowd_of(judged) for crowd_of in (self._open, self._hiding))
        return any(crowd.reaches(judged, shown, condition, k) for crowd in crowds)

    def wider(self, judged: JudgedFilter, demands: Demands) -> Generator[None, None, Filter | None]:
        """Search the narrowest filter that may be shown instead, by either crowd, in pieces.

        Filters may come and go between these, the judged one excepted: what is found is to be asked again.
        """
        found = []
        for crowd_of in (self._open, self._hiding):
            if (one := (yield from self._wider_by(crowd_of, judged, demands))) is not None:
                found.append(one)
        return min(found, key=width, default=None)

    def _wider_by(
        self, crowd_of: Callable[[JudgedFilter], _Crowd], judged: JudgedFilter, demands: Demands
    ) -> Generator[None, None, Filter | None]:
        def satisfies(shown: Filter) -> bool:
            crowd = crowd_of(judged)
            return all(crowd.reaches(judged, shown, condition, k) for condition, k in demands)

        crowd = crowd_of(judged)
        if crowd.size < max(crowd.least_k, *(k for _, k in demands)):
            return None
        return (yield from narrowest(crowd.order, judged.filter, lambda: crowd_of(judged).among, satisfies))

    def _open(self, judged: JudgedFilter) -> _Crowd:
        """Return those who ask for nothing, and those who ask for just the same."""
        asked = self._asked[judged.filter.topic]
        own = 1 << asked.order.slots[judged.filter.sides] if judged.own else 0
        among = asked.open | own
        size = asked.askers(1, 1) + len(judged.own)
        return _Crowd(asked.order, size, among, among, range(1, 2), own, judged.own)

    def _hiding(self, judged: JudgedFilter) -> _Crowd:
        """Return those who ask to hide among no more, with what stands between them."""
        asked, most = self._asked[judged.filter.topic], judged.asker_k
        hiding = asked.hiding(most)
        size, ks = asked.askers(2, most), range(2, most + 1)
        return _Crowd(asked.order, size, asked.open | hiding, hiding, ks, least_k=most)


class _Asked:
    """Which filters of one topic have somebody who asks for nothing, or for how little."""

    def __init__(self, order: TopicPoset) -> None:
        self.order = order
        self.open = 0
        """Slots with somebody who asks for nothing."""
        self._at: Counter[CrowdSource] = Counter()  # filters that each is at
        self._askers: Counter[int] = Counter()  # by what they ask for
        self._least = Tallies()  # the least k that anybody asks for who asks for more
        self._some = 0

    def note_came(self, slot: int, asker: CrowdSource) -> None:
        """Note that somebody came to a slot."""
        k = asker.k
        self._at[asker] += 1
        self._askers[k] += self._at[asker] == 1
        if k == 1:
            self.open |= 1 << slot
        elif not (least := self._least.of(slot)) or k < least:
            self._set_least(slot, k)

    def note_went(self, slot: int, asker: CrowdSource) -> None:
        """Note that somebody went from a slot."""
        k = asker.k
        self._at[asker] -= 1
        if not self._at[asker]:
            del self._at[asker]
            self._askers -= Counter([k])
        left = self.order.sources[slot]
        if any(isinstance(one, CrowdSource) and one.k == k for one in left):
            return
        if k == 1:
            self.open ^= 1 << slot
        elif k == self._least.of(slot):
            self._set_least(
                slot, min((one.k for one in left if isinstance(one, CrowdSource) and one.k > 1), default=0)
            )

    def _set_least(self, slot: int, k: int) -> None:
        self._least.put(slot, k)
        self._some = self._some & ~(1 << slot) | (k > 0) << slot

    def askers(self, least: int, most: int) -> int:
        """Return how many there are who ask for so much."""
        return sum(count for k, count in self._askers.items() if least <= k <= most)

    def hiding(self, most: int) -> int:
        """Return the slots with somebody who asks for 2 to so many."""
        return self._least.up_to(most, self._some)


class _Crowd(NamedTuple):
    """Some filters, taken to be all there are, and who of those behind them count."""

    order: TopicPoset
    size: int
    """Who counts is no more than so many, wherever on the topic."""
    among: int
    counted: int
    """Slots with somebody who counts."""
    ks: range
    """What whoever counts asks for."""
    own: int = 0
    """The slot of the judged filter, where its own sources count, too."""
    sources: Set[Source] = frozenset()
    """These."""
    least_k: int = 0
    """A smaller crowd is none."""

    def reaches(self, judged: JudgedFilter, shown: Filter, condition: AnonymityCondition, k: int) -> bool:
        """Tell whether so many at least count for a filter that covers a judged one, or is it."""
        least = max(k, self.least_k)
        return self.size >= least and self.level(judged.filter, shown, condition, least) >= least

    def level(self, given: Filter, shown: Filter, condition: AnonymityCondition, most: int) -> int:
        """Count whom a condition counts for a filter, as if the given one's had it, too; `most` at most."""
        found: set[Source] = set()
        for slots in self._behind(given, shown, condition):
            for source in self._sources(slots & self.counted):
                found.add(source)
                if len(found) >= most:
                    return most
        return len(found)

    def _behind(self, given: Filter, shown: Filter, condition: AnonymityCondition) -> Iterator[int]:
        order, sides = self.order, shown.sides
        if shown != given:
            if condition is AnonymityCondition.SOURCE:
                yield order.boxes.covered(sides, self.among)
                return
            if given.sides in order.slots and is_own_counted(order, sides, condition, self.among):
                yield 1 << order.slots[given.sides] & self.among
        yield from slots_behind(order, sides, condition, self.among, is_bounded=True)

    def _sources(self, slots: int) -> Iterator[Source]:
        if self.own & slots:
            yield from self.sources
        askers = chain.from_iterable(map(self.order.sources.__getitem__, slots_in(slots)))
        for at, one in enumerate(askers):
            if at % _READ == 0:
                self.order.meter.read += 1
            if isinstance(one, CrowdSource) and one.k in self.ks:
                yield one.source
