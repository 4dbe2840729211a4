"""Exposure: which filters an edge broker shows outside for its clients, and which it keeps back.

A filter is shown only while enough sources count for it (`crowds`), by the subscription's condition and by
the broker's own (Tarkoma and Prehofer §4); k = 1 asks for nothing. Whatever comes or goes, each filter that
is shown is looked at again, and withdrawn if it has sunk below its k: `AT_ONCE` in the same step, those
beyond, which others made many, in the next ones (`advance`). What waits to be shown is looked at later, and
searches for a wider filter are made in pieces: until one has found what may be shown then, nothing is.

A filter that sank is shown again only at k and a quarter more, so that somebody who comes and goes does not
show it each time; that is remembered for as long as anybody asks for the same. Where nothing is shown for a
subscription, a filter that is shown for another one may cover it, and bring its messages.

Where the broker's own clients are too few, those of the whole network may be enough, while that is known
(`network_crowd.py`). It is never so of `bogus` sources.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Generator, Iterable, Iterator

from hushcast_protocol.brokers.anonymity_conditions import AnonymityCondition, CrowdScope
from hushcast_protocol.brokers.crowds import Crowds, CrowdSource, JudgedFilter, least_crowd
from hushcast_protocol.brokers.edge_subscriptions import (
    EdgeSubscription,
    ExposureChanges,
    ExposureState,
    SubscriptionKey,
)
from hushcast_protocol.brokers.filters import Filter, Source
from hushcast_protocol.brokers.frames import AnonymityTerms
from hushcast_protocol.brokers.network_crowd import CrowdWish, Demands, NetworkCrowd, SubscriptionGroup
from hushcast_protocol.brokers.rings import Rings
from hushcast_protocol.brokers.roots import RootChanges
from hushcast_protocol.brokers.round_robin import RoundRobin
from hushcast_protocol.brokers.shown_filters import ShownFilters
from hushcast_protocol.content.topics import Topic

AT_ONCE = 200  # looks at the index (`Meter`) in one go: some 4 ms

OPEN = AnonymityTerms(1, AnonymityCondition.SOURCE, "wait")  # terms that ask for nothing


class Exposure:
    """The subscriptions at one edge broker, and what it shows of them."""

    def __init__(self, minimum: AnonymityTerms = OPEN, beyond: NetworkCrowd | None = None) -> None:
        """`minimum` is what the broker itself asks of every filter, beside what a subscription asks."""
        self._minimum = minimum
        self._beyond = beyond
        self._crowds = Crowds()
        self._subscriptions: dict[SubscriptionKey, EdgeSubscription] = {}
        self._of: dict[Source, dict[bytes, EdgeSubscription]] = {}
        self._held: Counter[tuple[Filter, CrowdSource]] = Counter()  # subscriptions of who is there
        self._away: set[Source] = set()
        self._rings = Rings()
        self._groups: dict[SubscriptionGroup, Counter[Source]] = {}  # whose these are
        self._sunk: set[SubscriptionGroup] = set()  # shown once, and too few behind it since
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
        found: dict[Filter, tuple[dict[Source, None], int]] = {}
        for (source, _), one in self._subscriptions.items():
            if one.shown is not None:
                sources, bogus = found.get(one.shown, ({}, 0))
                if one.is_counted:
                    sources[source] = None
                found[one.shown] = sources, max(bogus, one.bogus)
        return found

    @property
    def is_waiting(self) -> bool:
        """Whether `advance` has anything to do."""
        return bool(self._later or self._rings or self._searches or self._search)

    def filters(self, source: Source) -> int:
        """Return how many filters a source has; with `bogus`, k for one, however many are made up now."""
        return sum(
            one.asker.k if one.otherwise == "bogus" else 1 for one in self._of.get(source, {}).values()
        )

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
        """Look again at topics of whose crowd in the whole network something else is known."""
        for topic in topics:
            self._rings.note_changed(topic)
        return self._checked([])

    def wishes(self) -> Iterator[CrowdWish]:
        """Yield the groups for which it is worth knowing how many there are in the whole network."""
        found: dict[SubscriptionGroup, EdgeSubscription] = {}
        for one in self._rings:
            is_enough = one.shown == one.filter and one.crowd == "edge" and not one.bogus
            if not is_enough and one.group in self._groups:
                found[one.group] = one
        for group, one in found.items():
            has_sunk = self._has_sunk(one)
            most: dict[AnonymityCondition, int] = {}
            for condition, k in group.demands:
                most[condition] = max(most.get(condition, 0), least_crowd(k, has_sunk))
            yield CrowdWish(group, frozenset(most.items()), tuple(self._groups[group]), one.shown, one.crowd)

    def _put(self, name: SubscriptionKey, filter_: Filter, terms: AnonymityTerms) -> EdgeSubscription:
        source, inner = name
        one = self._subscriptions[name] = EdgeSubscription(name, filter_, terms, self._minimum)
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
        self._held[one.filter, one.asker] += 1
        if self._held[one.filter, one.asker] == 1:
            self._crowds.insert(one.filter, one.asker)
        if one.demands:
            self._groups.setdefault(one.group, Counter())[one.name[0]] += 1

    def _uncount(self, one: EdgeSubscription) -> None:
        """Take a subscription's source from behind its filter; nobody searches for who is away."""
        one.is_counted = False
        self._held[one.filter, one.asker] -= 1
        if not self._held[one.filter, one.asker]:
            del self._held[one.filter, one.asker]
            self._crowds.remove(one.filter, one.asker)
        if one.demands:
            group = self._groups[one.group]
            group -= Counter([one.name[0]])
            if not group:
                del self._groups[one.group]
                self._sunk.discard(one.group)
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
        is_shown = one.shown == one.filter and not one.bogus
        if is_shown and one.group in self._groups and not self._may(one, one.filter):
            self._note_sunk(one)
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
                has_sunk = self._has_sunk(one)
                demands: Demands = frozenset((each, least_crowd(k, has_sunk)) for each, k in one.demands)
                self._search = one, self._crowds.wider(self._judged(one), demands)
            one, pieces = self._search
            try:
                next(pieces)
            except StopIteration as end:
                self._search = None
                self._end_search(one, end.value)
                looked.append(one)

    def _end_search(self, one: EdgeSubscription, found: Filter | None) -> None:
        """Show what a search has found just now, or what is known of the whole network."""
        if one.shown is not None:
            return
        if (shown := found or self._known_wider(one)) is not None:
            one.crowd = "network" if found is None else "edge"
            self._show(one, shown)
            self._look(one)

    def _look(self, one: EdgeSubscription) -> None:
        """Decide what is shown for a subscription."""
        self._decide(one)
        if one.demands:
            self._rings.note_looked(one)

    def _decide(self, one: EdgeSubscription) -> None:
        if (crowd := self._crowd(one, one.filter, self._has_sunk(one))) is not None:
            self._sunk.discard(one.group)
            one.crowd = crowd
            self._vouch(one, 0)
            self._show(one, one.filter)
            return
        if one.shown not in (None, one.filter) and (crowd := self._crowd(one, one.shown)) is not None:
            # What was shown instead may stay, though there may be a narrower one by now.
            narrower = self._known_wider(one)
            if narrower is not None and narrower.volume < one.shown.volume:
                crowd = "network"
                self._show(one, narrower)
            one.crowd = crowd
            return
        if one.shown == one.filter and not one.bogus:
            self._note_sunk(one)
        one.crowd = "edge"
        self._vouch(one, self._missing(one) if one.otherwise == "bogus" else 0)
        self._show(one, one.filter if one.bogus else None)
        if one.otherwise == "generalise" and one.is_counted:
            self._searches.add(*one.name)

    def _vouch(self, one: EdgeSubscription, sources: int) -> None:
        """Stand for so many bogus sources behind a subscription."""
        if one.otherwise == "bogus" and (sources != one.bogus or one.told is None):
            self._bogus[one.name] = sources
        one.bogus = sources

    def _may(self, one: EdgeSubscription, shown: Filter) -> bool:
        """Tell whether a filter may be shown for a subscription, without bogus sources."""
        return self._crowd(one, shown) is not None

    def _crowd(self, one: EdgeSubscription, shown: Filter, has_sunk: bool = False) -> CrowdScope | None:
        """Return whose sources are enough for a filter to be shown for a subscription; None: nobody's."""
        crowd: CrowdScope = "edge"
        judged = self._judged(one)
        for condition, k in one.demands:
            least = least_crowd(k, has_sunk)
            if one.otherwise == "bogus":  # it is shown whoever is there, so it tells of nobody
                is_enough = self._crowds.level(shown, condition, least) >= least
            else:
                is_enough = self._crowds.may_show(judged, shown, condition, least)
            if is_enough:
                continue
            own = judged.own
            if self._beyond is None or not own or not self._beyond.says(shown, condition, least, own):
                return None
            crowd = "network"
        return crowd

    def _judged(self, one: EdgeSubscription) -> JudgedFilter:
        return JudgedFilter(one.filter, one.asker.k, self._groups.get(one.group, Counter[Source]()).keys())

    def _has_sunk(self, one: EdgeSubscription) -> bool:
        """Tell whether the level of a filter has to be above k by a quarter for it to be shown."""
        return one.group in self._sunk and one.otherwise != "bogus"

    def _note_sunk(self, one: EdgeSubscription) -> None:
        """Remember that a filter which was shown as it is has too few behind it now.

        Where the whole network's crowd was enough, and it is not known how large that is now, it is not sunk.
        """
        if one.crowd == "network" and self._beyond is not None and not self._beyond.has_sunk(one.group):
            return
        if one.group in self._groups:
            self._sunk.add(one.group)

    def _missing(self, one: EdgeSubscription) -> int:
        """Return how many bogus sources it takes to show a filter as it is."""
        return max(0, *(k - self._crowds.level(one.filter, condition, k) for condition, k in one.demands))

    def _known_wider(self, one: EdgeSubscription) -> Filter | None:
        """Return a filter that may be shown instead, by what is known of the whole network."""
        if self._beyond is None or one.otherwise != "generalise":
            return None
        found = self._beyond.wider(one.group, self._judged(one).own)
        return found if found is not None and self._may(one, found) else None

    def _show(self, one: EdgeSubscription, shown: Filter | None) -> None:
        before, one.shown = one.shown, shown
        if shown == before:
            return
        if shown is not None:
            self._outside.show(shown)
        if before is not None and self._outside.withdraw(before):
            self._rings.note_withdrawn(before.topic)

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
