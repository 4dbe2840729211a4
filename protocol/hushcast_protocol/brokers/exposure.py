"""Exposure: which filters an edge broker shows outside for its clients, and which it keeps back.

A filter is shown only while its level reaches k under the subscription's condition, and under the broker's
own (Tarkoma and Prehofer §4); k = 1 asks for nothing. Whatever comes or goes, each filter that is shown is
looked at again, and withdrawn if it has sunk below its k: `AT_ONCE` in the same step, those beyond, which
others made many, in the next ones (`advance`). What waits to be shown is looked at later, and searches for a
wider filter are made in pieces: until one has found what is anonymous then, nothing is shown.

A filter that sank is shown again only at k and a quarter more, so that somebody who comes and goes does not
show it each time; that is remembered for as long as anybody has the filter. Where nothing is shown for a
subscription, a filter that is shown for another one may cover it, and bring its messages.

Where the broker's own clients are too few, those of the whole network may be enough, while it is known that
they are (`beyond`). That is never so of `bogus` sources.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Generator, Iterable, Iterator
from itertools import chain

from hushcast_protocol.brokers.beyond import Beyond, Demands, Group, Wish
from hushcast_protocol.brokers.conditions import Condition, Crowd
from hushcast_protocol.brokers.filters import Filter
from hushcast_protocol.brokers.frames import Terms
from hushcast_protocol.brokers.generalise import generalising, may_show
from hushcast_protocol.brokers.levels import Levels
from hushcast_protocol.brokers.poset import Poset
from hushcast_protocol.brokers.subscribed import Asking, Changes, Name, Standing, Subscription
from hushcast_protocol.brokers.table import Source
from hushcast_protocol.brokers.turns import Turns
from hushcast_protocol.content.topics import Topic

MAX_BOGUS = 64  # bogus sources behind one subscription; each takes the place of one of its client's filters

AT_ONCE = 200  # looks at the index (`Meter`) in one go: some 4 ms

OPEN = Terms(1, Condition.SOURCE, "wait")
"""Terms that ask for nothing."""


def _least(k: int, has_sunk: bool) -> int:
    return k + max(1, k // 4) if has_sunk else k


class Exposure:
    """The subscriptions at one edge broker, and what it shows of them."""

    def __init__(self, minimum: Terms = OPEN, beyond: Beyond | None = None) -> None:
        """`minimum` is what the broker itself asks of every filter, beside what a subscription asks."""
        self._minimum = minimum
        self._beyond = beyond
        self._levels = Levels(is_bounded=True)
        self._subscriptions: dict[Name, Subscription] = {}
        self._of: dict[Source, dict[bytes, Subscription]] = {}
        self._held: dict[tuple[Filter, Source], int] = {}  # subscriptions of one source to one filter
        self._asking: dict[Topic, Asking] = {}
        self._changed: dict[Topic, None] = {}  # where some of them are to be looked at
        self._groups: dict[Group, Counter[Source]] = {}  # whose these are
        self._sunk: dict[Filter, set[Demands]] = {}  # those below it since it was shown
        self._loaded: deque[Subscription] = deque()  # that ask for nothing
        self._leaving: deque[Subscription] = deque()  # of sources that are gone
        self._searches: Turns[Source, bytes] = Turns()  # to come
        self._search: tuple[Subscription, Generator[None, None, Filter | None]] | None = None
        self._shown: dict[Filter, int] = {}  # subscriptions that each is shown for
        self._outside = Poset(self._levels.meter)  # of what is shown
        self._bogus: dict[Name, int] = {}  # that changed since changes were taken last

    def __len__(self) -> int:
        return len(self._subscriptions)

    @property
    def shown(self) -> frozenset[Filter]:
        """All that is shown outside."""
        return frozenset(self._shown)

    def behind_shown(self) -> dict[Filter, tuple[dict[Source, None], int]]:
        """Return for each filter that is shown whose subscriptions it is shown for, and its bogus sources."""
        found: dict[Filter, tuple[dict[Source, None], int]] = {}
        for (source, _), one in self._subscriptions.items():
            if one.shown is not None:
                sources, bogus = found.get(one.shown, ({}, 0))
                sources[source] = None
                found[one.shown] = sources, max(bogus, one.bogus)
        return found

    @property
    def is_waiting(self) -> bool:
        """Whether `advance` has anything to do."""
        return bool(self._loaded or self._leaving or self._changed or self._searches or self._search)

    def filters(self, source: Source) -> int:
        """Return how many filters a source has, bogus ones included."""
        return sum(1 + one.bogus for one in self._of.get(source, {}).values())

    def standing(self, source: Source, name: bytes) -> Standing | None:
        """Return how a subscription stands, or none if it is not here."""
        one = self._subscriptions.get((source, name))
        return None if one is None else self._stands(one)

    def load(self, source: Source, name: bytes, filter_: Filter, terms: Terms) -> None:
        """Take a subscription that was accepted before a restart; `advance` shows what may be shown."""
        self._loaded.append(self._put((source, name), filter_, terms))

    def subscribe(self, source: Source, name: bytes, filter_: Filter, terms: Terms) -> Changes:
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

    def unsubscribe(self, source: Source, name: bytes) -> Changes:
        """Forget a subscription; unknown ones change nothing."""
        self._drop((source, name))
        return self._checked([])

    def forget(self, source: Source) -> Changes:
        """Forget all subscriptions of a source: some at once, the others later, as if it had left then."""
        self._leaving.extend(self._of.get(source, {}).values())
        self._levels.meter.begin(AT_ONCE)
        for one in self._some(self._leaving):
            self._drop(one.name)
        return self._checked([])

    def advance(self) -> Changes:
        """Do some of what waits: what has sunk, what may be shown, and what is searched for; some 15 ms."""
        looked: list[Subscription] = []
        self._levels.meter.begin(AT_ONCE)
        for one in self._some(self._leaving):
            self._drop(one.name)
        for one in self._some(self._loaded):
            self._look(one)
        self._look_at(looked, is_shown=True)
        self._levels.meter.begin(AT_ONCE)
        self._look_at(looked, is_shown=False)
        self._levels.meter.begin(AT_ONCE)
        self._search_on(looked)
        return self._changes(looked)

    def review(self, topics: set[Topic]) -> Changes:
        """Look again at topics of whose crowd in the whole network something else is known."""
        for topic in topics:
            self._note_changed(topic)
        return self._checked([])

    def wishes(self) -> Iterator[Wish]:
        """Yield the groups for which it is worth knowing how many there are in the whole network."""
        found: dict[Group, Subscription] = {}
        for asking in self._asking.values():
            for one in chain(asking.shown.values(), asking.hidden.values()):
                if one.shown != one.filter or one.crowd == "network" or one.bogus:
                    found[one.group] = one
        for group, one in found.items():
            has_sunk = self._has_sunk(one)
            most: dict[Condition, int] = {}
            for condition, k in group.demands:
                most[condition] = max(most.get(condition, 0), _least(k, has_sunk))
            yield Wish(group, frozenset(most.items()), tuple(self._groups[group]), one.shown, one.crowd)

    def _put(self, name: Name, filter_: Filter, terms: Terms) -> Subscription:
        source, inner = name
        one = self._subscriptions[name] = Subscription(name, filter_, terms, self._minimum)
        self._of.setdefault(source, {})[inner] = one
        held = self._held.get((filter_, source), 0)
        self._held[filter_, source] = held + 1
        if not held:
            self._levels.insert(filter_, source)
        self._note_changed(filter_.topic)
        if one.demands:
            self._asking.setdefault(filter_.topic, Asking()).put(one)
            self._groups.setdefault(one.group, Counter())[source] += 1
        return one

    def _drop(self, name: Name) -> Subscription | None:
        one = self._subscriptions.pop(name, None)
        if one is None:
            return None
        source, inner = name
        del self._of[source][inner]
        if not self._of[source]:
            del self._of[source]
        held = self._held.pop((one.filter, source)) - 1
        if held:
            self._held[one.filter, source] = held
        else:
            if self._levels.remove(one.filter, source):
                self._sunk.pop(one.filter, None)
        if one.demands:
            self._drop_asking(one)
        self._note_changed(one.filter.topic)
        is_shown = one.shown == one.filter and not one.bogus
        if is_shown and one.filter in self._levels and not self._may(one, one.filter):
            self._note_sunk(one)
        self._show(one, None)
        if one.bogus:
            self._bogus[name] = 0
        return one

    def _drop_asking(self, one: Subscription) -> None:
        topic, group = one.filter.topic, self._groups[one.group]
        self._asking[topic].take(one)
        if not self._asking[topic]:
            del self._asking[topic]
            self._changed.pop(topic, None)
        group -= Counter([one.name[0]])
        if not group:
            del self._groups[one.group]
        self._searches.discard(*one.name)
        if self._search is not None and self._search[0] is one:
            self._search = None

    def _some(self, waiting: deque[Subscription]) -> Iterator[Subscription]:
        while waiting and not self._levels.meter.is_over:
            one = waiting.popleft()
            if self._subscriptions.get(one.name) is one:
                yield one

    def _note_changed(self, topic: Topic) -> None:
        """Look again at whatever asks for anything on a topic."""
        if topic in self._asking:
            self._asking[topic].changes += 1
            self._changed[topic] = None

    def _checked(self, looked: list[Subscription]) -> Changes:
        """Look at what is shown where somebody came or went; all else there may wait."""
        self._levels.meter.begin(AT_ONCE)
        self._look_at(looked, is_shown=True)
        return self._changes(one for one in looked if self._subscriptions.get(one.name) is one)

    def _look_at(self, looked: list[Subscription], is_shown: bool) -> None:
        """Look at some for which something is shown, or at some of the others."""
        for topic in list(self._changed):
            asking = self._asking[topic]
            while not self._levels.meter.is_over and (one := asking.due(is_shown)) is not None:
                self._look(one)
                looked.append(one)
            if self._levels.meter.is_over:
                self._changed[topic] = self._changed.pop(topic)  # others first, the next time
                return
            if asking.due(not is_shown) is None:
                del self._changed[topic]

    def _search_on(self, looked: list[Subscription]) -> None:
        """Go on with a search, and begin others, each for another client."""
        while not self._levels.meter.is_over:
            if self._search is None:
                if not self._searches:
                    return
                one = self._subscriptions[self._searches.pop()]
                self._search = one, self._wider(one)
            one, pieces = self._search
            try:
                next(pieces)
            except StopIteration as end:
                self._search = None
                self._end_search(one, end.value)
                looked.append(one)

    def _end_search(self, one: Subscription, found: Filter | None) -> None:
        """Show what a search has found just now, or what is known of the whole network."""
        if one.shown is not None:
            return
        if (shown := found or self._known_wider(one)) is not None:
            one.crowd = "network" if found is None else "edge"
            self._show(one, shown)
            self._look(one)

    def _look(self, one: Subscription) -> None:
        """Decide what is shown for a subscription."""
        self._decide(one)
        if one.demands:
            asking = self._asking[one.filter.topic]
            one.looked_at = asking.changes
            asking.put(one)

    def _decide(self, one: Subscription) -> None:
        if (crowd := self._crowd(one, one.filter, self._has_sunk(one))) is not None:
            self._sunk.get(one.filter, set()).discard(one.demands)
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
        if one.otherwise == "generalise":
            self._searches.add(*one.name)

    def _vouch(self, one: Subscription, sources: int) -> None:
        """Stand for so many bogus sources behind a subscription."""
        if one.otherwise == "bogus" and (sources != one.bogus or one.told is None):
            self._bogus[one.name] = sources
        one.bogus = sources

    def _may(self, one: Subscription, shown: Filter, bogus: int = 0) -> bool:
        """Tell whether a filter may be shown for a subscription, with so many bogus sources behind it."""
        return self._crowd(one, shown, bogus=bogus) is not None

    def _crowd(
        self, one: Subscription, shown: Filter, has_sunk: bool = False, bogus: int = 0
    ) -> Crowd | None:
        """Return whose sources are enough for a filter to be shown for a subscription; None: nobody's."""
        crowd: Crowd = "edge"
        for condition, k in one.demands:
            least = _least(k, has_sunk)
            if may_show(self._levels, one.filter, shown, condition, least - bogus):
                continue
            own = self._groups.get(one.group)
            if self._beyond is None or not own or not self._beyond.says(shown, condition, least, own.keys()):
                return None
            crowd = "network"
        return crowd

    def _has_sunk(self, one: Subscription) -> bool:
        """Tell whether the level of a filter has to be above k by a quarter for it to be shown."""
        return one.demands in self._sunk.get(one.filter, ()) and one.otherwise != "bogus"

    def _note_sunk(self, one: Subscription) -> None:
        """Remember that a filter which was shown as it is has too few behind it now.

        Where the whole network's crowd was enough, and it is not known how large that is now, it is not sunk.
        """
        if one.crowd == "network" and self._beyond is not None and not self._beyond.has_sunk(one.group):
            return
        self._sunk.setdefault(one.filter, set()).add(one.demands)

    def _missing(self, one: Subscription) -> int:
        """Return how many bogus sources it takes to show a filter as it is; 0 where they are too many."""
        missing = max(k - self._levels.level(one.filter, condition) for condition, k in one.demands)
        return missing if missing <= MAX_BOGUS else 0

    def _wider(self, one: Subscription) -> Generator[None, None, Filter | None]:
        """Return a filter that may be shown instead, by this broker's own clients; in pieces."""
        for condition, k in one.demands:
            least = _least(k, self._has_sunk(one))
            found = yield from generalising(self._levels, one.filter, condition, least)
            if found is not None and self._crowd(one, found.filter) == "edge":
                return found.filter
        return None

    def _known_wider(self, one: Subscription) -> Filter | None:
        """Return a filter that may be shown instead, by what is known of the whole network."""
        if self._beyond is None or one.otherwise != "generalise":
            return None
        found = self._beyond.wider(one.group, self._groups[one.group].keys())
        return found if found is not None and self._may(one, found) else None

    def _show(self, one: Subscription, shown: Filter | None) -> None:
        if one.shown == shown:
            return
        if one.shown is not None:
            self._shown[one.shown] -= 1
            if not self._shown[one.shown]:
                del self._shown[one.shown]
                self._outside.remove(one.shown, None)
        if shown is not None:
            if shown not in self._shown:
                self._outside.insert(shown, None)
            self._shown[shown] = self._shown.get(shown, 0) + 1
        one.shown = shown

    def _changes(self, looked: Iterable[Subscription]) -> Changes:
        bogus, self._bogus = self._bogus, {}
        told = {}
        for one in looked:
            if one.demands and (standing := self._stands(one)) != one.told:
                told[one.name] = one.told = standing
        return Changes(self._outside.take_changes(), told, bogus)

    def _brings(self, one: Subscription) -> Filter | None:
        """Return what is shown outside that brings a subscription's messages; nothing under it does."""
        if one.shown is not None:
            return one.shown
        return one.filter if one.filter in self._outside else self._outside.nearest(one.filter)

    def _stands(self, one: Subscription) -> Standing:
        condition = (one.terms if one.terms.k > 1 else self._minimum).condition
        shown = self._brings(one)
        added = 0.0 if shown is None else max(0.0, shown.volume - one.filter.volume)
        level = self._levels.level(one.filter, condition)
        if one.crowd == "network":
            level = max([level, *(k for asked, k in one.demands if asked is condition)])
        return Standing(level, shown, added, one.bogus, one.crowd)
