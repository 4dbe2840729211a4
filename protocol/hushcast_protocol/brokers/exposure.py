"""Exposure: which filters an edge broker shows outside for its clients, and which it keeps back.

A filter is shown only while enough sources count for it (`crowds`), by the subscription's condition and by
the broker's own (Tarkoma and Prehofer §4); k = 1 asks for nothing. Whatever comes or goes, each filter that
is shown is looked at again, and withdrawn if it has sunk below its k: `AT_ONCE` in the same step, those
beyond, which others made many, in the next ones (`advance`). What waits to be shown is looked at later, and
searches for a wider filter are made in pieces: until one has found what may be shown then, nothing is.

Where nothing is shown for a subscription, a filter that is shown for another one may cover it, and bring its
messages.

Under `bogus` a filter is shown at once, whoever is there, with what stands for nobody beside it
(`bogus_filters.py`); only how many bogus sources are vouched for follows from who is there.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator

from hushcast_protocol.base.round_robin import RoundRobin
from hushcast_protocol.brokers.anonymity_conditions import AnonymityCondition
from hushcast_protocol.brokers.edge_subscriptions import (
    BogusMeans,
    EdgeSubscription,
    ExposureChanges,
    ExposureState,
    SubscriptionKey,
    deceiving,
)
from hushcast_protocol.brokers.filters import Filter, Source
from hushcast_protocol.brokers.frames import AnonymityTerms
from hushcast_protocol.brokers.group_crowds import GroupCrowds
from hushcast_protocol.brokers.network_crowd import CrowdWish, NetworkCrowd, SubscriptionGroup
from hushcast_protocol.brokers.rings import Rings
from hushcast_protocol.brokers.roots import RootChanges
from hushcast_protocol.brokers.shown_filters import ShownFilters
from hushcast_protocol.content.topics import Topic

AT_ONCE = 200  # looks at the index (`Meter`) in one go: some 4 ms

OPEN = AnonymityTerms(1, AnonymityCondition.SOURCE, "wait")  # terms that ask for nothing


class Exposure:
    """The subscriptions at one edge broker, and what it shows of them."""

    def __init__(
        self,
        minimum: AnonymityTerms = OPEN,
        beyond: NetworkCrowd | None = None,
        means: BogusMeans | None = None,
    ) -> None:
        """`minimum` is what the broker itself asks of every filter, beside what a subscription asks.

        `means` tells whom bogus filters deceive: unless given, who is above, and a service that is known.
        """
        self._minimum = minimum
        self._means = means or BogusMeans(sources=beyond is not None)
        self._crowds = GroupCrowds(beyond)
        self._subscriptions: dict[SubscriptionKey, EdgeSubscription] = {}
        self._of: dict[Source, dict[bytes, EdgeSubscription]] = {}
        self._away: set[Source] = set()
        self._rings = Rings()
        self._later: deque[tuple[Callable[[EdgeSubscription], None], EdgeSubscription]] = deque()
        self._searches: RoundRobin[Source, bytes] = RoundRobin()  # to come
        self._search: tuple[EdgeSubscription, Generator[None, None, Filter | None]] | None = None
        self._kinds = deque((self._look_at_shown, self._look_at_hidden, self._search_on))
        self._outside = ShownFilters(self._crowds.meter)
        self._bogus: dict[SubscriptionKey, int] = {}  # that changed since changes were taken last

    def __len__(self) -> int:
        return len(self._subscriptions)

    @property
    def shown(self) -> frozenset[Filter]:
        """All that is shown outside."""
        return self._outside.filters

    def behind_shown(self) -> dict[Filter, tuple[dict[Source, None], int]]:
        """Return for each filter that is shown whose subscriptions it is shown for, and its bogus sources."""
        sources: dict[Filter, dict[Source, None]] = {}
        bogus: dict[Filter, int] = {}
        for (source, _), one in self._subscriptions.items():
            if one.shown is not None:
                behind = sources.setdefault(one.shown, {})
                if one.is_counted:
                    behind[source] = None
            for given, number in one.bogus_behind() if one.otherwise == "bogus" else ():
                bogus[given] = max(bogus.get(given, 0), number)
        return {given: (sources.get(given, {}), bogus.get(given, 0)) for given in (*sources, *bogus)}

    @property
    def is_waiting(self) -> bool:
        """Whether `advance` has anything to do."""
        return bool(self._later or self._rings or self._searches or self._search)

    def filters(self, source: Source) -> int:
        """Return how many filters a source has, bogus ones included."""
        return sum(one.places for one in self._of.get(source, {}).values())

    def deceives(self, filter_: Filter, terms: AnonymityTerms) -> bool:
        """Tell whether `bogus` would deceive anybody, if terms ask for it."""
        is_bogus = terms.k > 1 and terms.otherwise == "bogus"
        return not is_bogus or deceiving(filter_, terms, self._minimum, self._means) is not None

    def standing(self, source: Source, name: bytes) -> ExposureState | None:
        """Return how a subscription stands, or none if it is not here."""
        one = self._subscriptions.get((source, name))
        return None if one is None else ExposureState(self._brings(one), one.bogus, one.crowd)

    def is_shown(self, source: Source, name: bytes) -> bool | None:
        """Return whether anything is shown that brings a subscription's messages; none if it is not here."""
        one = self._subscriptions.get((source, name))
        return None if one is None else self._brings(one) is not None

    def load(self, source: Source, name: bytes, filter_: Filter, terms: AnonymityTerms) -> None:
        """Take a subscription that was accepted before a restart; `advance` shows what may be shown."""
        self._later.append((self._look, self._put((source, name), filter_, terms)))

    def subscribe(
        self, source: Source, name: bytes, filter_: Filter, terms: AnonymityTerms
    ) -> ExposureChanges:
        """Add a subscription, or replace the one of that name.

        It is not here afterwards if its level is too low, nothing else brings its messages, and it was rather
        to be refused than to wait.
        """
        self._drop((source, name))
        one = self._put((source, name), filter_, terms)
        self._look(one)
        if one.otherwise == "refuse" and self._brings(one) is None:
            self._drop(one.name)
        return self._checked([one])

    def unsubscribe(self, source: Source, name: bytes) -> ExposureChanges:
        """Forget a subscription; unknown ones change nothing."""
        self._drop((source, name))
        return self._checked([])

    def forget(self, source: Source) -> ExposureChanges:
        """Forget all subscriptions of a source: some at once, the others later, as if it had left then."""
        self._away.discard(source)
        return self._of_all(source, lambda one: self._drop(one.name))

    def note_there(self, source: Source, is_there: bool) -> ExposureChanges:
        """Count a source, or, while it is away, do not: some of its subscriptions, which stay, at once."""
        if is_there is (source not in self._away):
            return self._changes([])
        self._away ^= {source}
        return self._of_all(source, self._count)

    def _of_all(self, source: Source, do: Callable[[EdgeSubscription], None]) -> ExposureChanges:
        self._later.extendleft((do, one) for one in self._of.get(source, {}).values())
        self._crowds.meter.begin(AT_ONCE)
        self._do_some()
        return self._checked([])

    def rest(self) -> RootChanges:
        """Return more of what changed among what is shown, where there was no time for all of it."""
        return self._outside.take_changes()

    def advance(self) -> ExposureChanges:
        """Do some of what waits: what has sunk, what may be shown, and what is searched for; some 5 ms."""
        looked: list[EdgeSubscription] = []
        self._crowds.meter.begin(AT_ONCE)
        self._do_some()
        self._kinds.rotate()  # each is the first in its turn
        for do_some in self._kinds:
            do_some(looked)
        return self._changes(looked)

    def review(self, topics: set[Topic]) -> ExposureChanges:
        """Look again at topics of whose crowd elsewhere something else is known."""
        for topic in topics:
            self._rings.note_changed(topic)
        return self._checked([])

    def wishes(self) -> Iterator[CrowdWish]:
        """Yield the groups for which it is worth knowing how many there are at other edge brokers."""
        found: dict[SubscriptionGroup, EdgeSubscription] = {}
        for one in self._rings:
            is_enough = one.shown == one.filter and one.crowd == "edge" and not one.bogus
            if not is_enough and self._crowds.of(one.group):
                found[one.group] = one
        for group, one in found.items():
            most: dict[AnonymityCondition, int] = {}
            for condition, k in self._crowds.demands(group):
                most[condition] = max(most.get(condition, 0), k)
            sources = tuple(self._crowds.of(group))
            yield CrowdWish(group, frozenset(most.items()), sources, one.shown, one.crowd)

    def _put(self, name: SubscriptionKey, filter_: Filter, terms: AnonymityTerms) -> EdgeSubscription:
        source, inner = name
        one = self._subscriptions[name] = EdgeSubscription(name, filter_, terms, self._minimum, self._means)
        self._of.setdefault(source, {})[inner] = one
        if one.demands:
            self._rings.put(one)
        self._count(one)
        return one

    def _count(self, one: EdgeSubscription) -> None:
        """Have a subscription's source stand behind its filter if it is there, and not if it is away."""
        if one.is_counted is (one.name[0] not in self._away):
            return
        self._rings.note_changed(one.filter.topic)
        if one.is_counted:
            self._uncount(one)
            return
        one.is_counted = True
        self._crowds.insert(one)

    def _uncount(self, one: EdgeSubscription) -> None:
        """Take a subscription's source from behind its filter; nobody searches for who is away."""
        one.is_counted = False
        self._crowds.remove(one)
        if one.demands:
            self._searches.discard(*one.name)
            if self._search is not None and self._search[0] is one:
                self._search = None

    def _drop(self, name: SubscriptionKey) -> None:
        one = self._subscriptions.pop(name, None)
        if one is None:
            return
        source, inner = name
        del self._of[source][inner]
        if not self._of[source]:
            del self._of[source]
        if one.is_counted:
            self._uncount(one)
        if one.demands:
            self._rings.take(one)
        self._rings.note_changed(one.filter.topic)
        is_shown = one.shown == one.filter and one.otherwise != "bogus"
        if is_shown and self._crowds.of(one.group) and self._crowds.scope(one, one.filter) is None:
            self._crowds.note_sunk(one)
        self._show(one, None)
        if one.bogus:
            self._bogus[name] = 0

    def _do_some(self) -> None:
        """Do some of what is to be done with subscriptions, those still here."""
        while self._later and not self._crowds.meter.is_over:
            do, one = self._later.popleft()
            if self._subscriptions.get(one.name) is one:
                do(one)

    def _checked(self, looked: list[EdgeSubscription]) -> ExposureChanges:
        """Look at what is shown where somebody came or went; all else there may wait."""
        self._crowds.meter.begin(AT_ONCE)
        self._look_at_shown(looked)
        return self._changes(one for one in looked if self._subscriptions.get(one.name) is one)

    def _look_at_shown(self, looked: list[EdgeSubscription]) -> None:
        for one in self._rings.due(True, self._crowds.meter):
            self._look(one)
            looked.append(one)

    def _look_at_hidden(self, looked: list[EdgeSubscription]) -> None:
        for one in self._rings.due(False, self._crowds.meter):
            self._look(one)
            looked.append(one)

    def _search_on(self, looked: list[EdgeSubscription]) -> None:
        """Go on with a search, and begin others, each for another client."""
        while not self._crowds.meter.is_over:
            if self._search is None:
                if not self._searches:
                    return
                one = self._subscriptions[self._searches.pop()]
                self._search = one, self._crowds.wider(one)
            one, pieces = self._search
            try:
                next(pieces)
            except StopIteration as end:
                self._search = None
                self._end_search(one, end.value)
                looked.append(one)

    def _end_search(self, one: EdgeSubscription, found: Filter | None) -> None:
        """Show what a search has found just now, or what is known of other edge brokers."""
        if one.shown is not None:
            return
        if (shown := found or self._crowds.known_wider(one)) is not None:
            one.crowd = "network" if found is None else "edge"
            self._show(one, shown)
            self._look(one)

    def _look(self, one: EdgeSubscription) -> None:
        """Decide what is shown for a subscription."""
        self._decide(one)
        if one.demands:
            self._rings.note_looked(one)

    def _decide(self, one: EdgeSubscription) -> None:
        if one.otherwise == "bogus":
            self._make_up(one)
            return
        if (crowd := self._crowds.scope_anew(one)) is not None:
            one.crowd = crowd
            self._show(one, one.filter)
            return
        if one.shown not in (None, one.filter) and (crowd := self._crowds.scope(one, one.shown)) is not None:
            # What was shown instead may stay, though there may be a narrower one by now.
            narrower = self._crowds.known_wider(one)
            if narrower is not None and narrower.volume < one.shown.volume:
                crowd = "network"
                self._show(one, narrower)
            one.crowd = crowd
            return
        if one.shown == one.filter:
            self._crowds.note_sunk(one)
        one.crowd = "edge"
        self._show(one, None)
        if one.otherwise == "generalise" and one.is_counted:
            self._searches.add(*one.name)

    def _make_up(self, one: EdgeSubscription) -> None:
        """Show a filter with what stands for nobody beside it, and vouch for as many as are missing."""
        missing = self._crowds.missing(one)
        if missing != one.bogus or one.told is None:
            self._bogus[one.name] = missing
        one.bogus = missing
        self._show(one, one.filter)

    def _show(self, one: EdgeSubscription, shown: Filter | None) -> None:
        before, one.shown = one.shown, shown
        if shown == before:
            return
        if shown is not None:
            self._outside.show(shown)
        is_gone = before is not None and self._outside.withdraw(before)
        if one.otherwise == "bogus":
            is_gone |= self._outside.stand_beside(one.filter, one.beside, is_shown=shown is not None)
        if is_gone:
            self._rings.note_withdrawn(one.filter.topic)

    def _changes(self, looked: Iterable[EdgeSubscription]) -> ExposureChanges:
        bogus, self._bogus = self._bogus, {}
        told = {}
        for one in looked:
            if one.demands and (is_shown := self._brings(one) is not None) is not one.told:
                told[one.name] = one.told = is_shown
        return ExposureChanges(self._outside.take_changes(), told, bogus)

    def _brings(self, one: EdgeSubscription) -> Filter | None:
        """Return what is shown outside that brings a subscription's messages; nothing under it does."""
        if one.shown is not None:
            return one.shown
        return self._outside.bringing(one.filter)
