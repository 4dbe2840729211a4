"""Exposure: which filters an edge broker shows outside for its clients, and which it keeps back.

A filter is shown only while its level reaches k under the subscription's condition, and under the broker's
own (Tarkoma and Prehofer §4); k = 1 asks for nothing. Whatever comes or goes, each filter that is shown is
checked before anything is said outside, so none stays that has sunk below its k. What waits to be shown is
looked at later (`advance`), a few at a time: a search for a wider filter may take long.

A filter that sank is shown again only at k and a quarter more, so that somebody who comes and goes does not
show it each time; that is remembered for as long as anybody has the filter. Where nothing is shown for a
subscription, a filter that is shown for another one may cover it, and bring its messages.

Where the broker's own clients are too few, those of the whole network may be enough, while it is known that
they are (`beyond`). That is never so of `bogus` sources.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from hushcast_protocol.brokers.beyond import Beyond, Demands, Group, Wish
from hushcast_protocol.brokers.conditions import Condition, Crowd, Otherwise
from hushcast_protocol.brokers.filters import Filter
from hushcast_protocol.brokers.forest import Forest
from hushcast_protocol.brokers.frames import Terms
from hushcast_protocol.brokers.generalise import generalise, may_show
from hushcast_protocol.brokers.levels import Levels
from hushcast_protocol.brokers.roots import RootChanges
from hushcast_protocol.brokers.table import Source
from hushcast_protocol.content.topics import Topic

MAX_BOGUS = 64  # bogus sources behind one subscription; each takes the place of one of its client's filters

OPEN = Terms(1, Condition.SOURCE, "wait")
"""Terms that ask for nothing."""

Name = tuple[Source, bytes]
"""A subscription: whose it is, and its name there."""


@dataclass(frozen=True, slots=True)
class Standing:
    """How a subscription stands."""

    level: int
    """Of its filter, under its condition; bogus sources not counted. The network's is so large at least."""
    shown: Filter | None
    """What is shown outside that brings its messages, if anything is: its own, a wider one, or another's."""
    added: float
    """The share (0 to 1) of the topic's messages that `shown` lets through besides."""
    bogus: int = 0
    """Bogus sources that its client pays for."""
    crowd: Crowd = "edge"
    """Whose sources the level counts."""


@dataclass(frozen=True, slots=True)
class Changes:
    """What is to be told: to whoever is above, how the roots of what is shown changed; to clients.

    `bogus` are bogus sources by subscription, where their number changed, or is said for the first time.
    """

    roots: RootChanges
    told: dict[Name, Standing]
    bogus: dict[Name, int]


def _none(k: int) -> int:
    return 0


def _quarter(k: int) -> int:
    return max(1, k // 4)


class _Subscription:
    """One subscription and what is shown for it."""

    __slots__ = ("bogus", "crowd", "demands", "filter", "name", "otherwise", "shown", "terms", "told")

    def __init__(self, name: Name, filter_: Filter, terms: Terms, minimum: Terms) -> None:
        self.name = name
        self.filter = filter_
        self.terms = terms
        strict = terms if terms.k > 1 else minimum
        self.otherwise: Otherwise = strict.otherwise
        self.demands: Demands = frozenset((one.condition, one.k) for one in (terms, minimum) if one.k > 1)
        self.shown: Filter | None = None
        self.crowd: Crowd = "edge"
        """Who suffices for what is shown."""
        self.bogus = 0
        self.told: Standing | None = None

    @property
    def group(self) -> Group:
        return Group(self.filter, self.demands, self.otherwise)


class Exposure:
    """The subscriptions at one edge broker, and what it shows of them."""

    def __init__(self, minimum: Terms = OPEN, beyond: Beyond | None = None) -> None:
        """`minimum` is what the broker itself asks of every filter, beside what a subscription asks."""
        self._minimum = minimum
        self._beyond = beyond
        self._levels = Levels()
        self._subscriptions: dict[Name, _Subscription] = {}
        self._of: dict[Source, dict[bytes, _Subscription]] = {}
        self._held: dict[tuple[Filter, Source], int] = {}  # subscriptions of one source to one filter
        self._strict: dict[Topic, dict[Name, _Subscription]] = {}  # those that ask for anything
        self._groups: dict[Group, Counter[Source]] = {}  # whose these are
        self._sunk: dict[Filter, set[Demands]] = {}  # those below it since it was shown
        self._waiting: dict[Name, None] = {}  # to be looked at by `advance`
        self._shown: dict[Filter, int] = {}  # subscriptions that each is shown for
        self._tree = Forest()  # of what is shown
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
        """Whether `advance` has anything to look at."""
        return bool(self._waiting)

    def filters(self, source: Source) -> int:
        """Return how many filters a source has, bogus ones included."""
        return sum(1 + one.bogus for one in self._of.get(source, {}).values())

    def standing(self, source: Source, name: bytes) -> Standing | None:
        """Return how a subscription stands, or none if it is not here."""
        one = self._subscriptions.get((source, name))
        return None if one is None else self._stands(one)

    def load(self, source: Source, name: bytes, filter_: Filter, terms: Terms) -> None:
        """Take a subscription that was accepted before a restart; `advance` shows what may be shown."""
        one = self._put((source, name), filter_, terms)
        self._waiting[one.name] = None

    def subscribe(self, source: Source, name: bytes, filter_: Filter, terms: Terms) -> Changes:
        """Add a subscription, or replace the one of that name.

        It is not here afterwards if its level is too low, nothing else brings its messages, and it was rather
        to be refused than to wait.
        """
        former = self._drop((source, name))
        one = self._put((source, name), filter_, terms)
        self._look(one)
        if one.otherwise == "refuse" and self._brings(one) is None:
            self._drop(one.name)
        topics = {filter_.topic} if former is None else {filter_.topic, former.filter.topic}
        return self._checked(topics, one)

    def unsubscribe(self, source: Source, name: bytes) -> Changes:
        """Forget a subscription; unknown ones change nothing."""
        one = self._drop((source, name))
        return self._checked(set() if one is None else {one.filter.topic})

    def forget(self, source: Source) -> Changes:
        """Forget all subscriptions of a source."""
        gone = [self._drop((source, name)) for name in list(self._of.get(source, ()))]
        return self._checked({one.filter.topic for one in gone if one is not None})

    def advance(self, most: int) -> Changes:
        """Look at so many of those that wait: what may be shown of them, and how they stand."""
        looked: list[_Subscription] = []
        while self._waiting and len(looked) < most:
            name = next(iter(self._waiting))
            del self._waiting[name]
            one = self._subscriptions[name]
            self._look(one)
            looked.append(one)
        return self._changes(looked)

    def review(self, topics: set[Topic]) -> Changes:
        """Look again at topics of whose crowd in the whole network something else is known."""
        return self._checked(topics)

    def wishes(self) -> Iterator[Wish]:
        """Yield the groups for which it is worth knowing how many there are in the whole network."""
        found: dict[Group, _Subscription] = {}
        for subscriptions in self._strict.values():
            for one in subscriptions.values():
                if one.shown != one.filter or one.crowd == "network" or one.bogus:
                    found[one.group] = one
        for group, one in found.items():
            margin = self._margin(one)
            most: dict[Condition, int] = {}
            for condition, k in group.demands:
                most[condition] = max(most.get(condition, 0), k + margin(k))
            yield Wish(group, frozenset(most.items()), tuple(self._groups[group]), one.shown, one.crowd)

    def _put(self, name: Name, filter_: Filter, terms: Terms) -> _Subscription:
        source, inner = name
        one = self._subscriptions[name] = _Subscription(name, filter_, terms, self._minimum)
        self._of.setdefault(source, {})[inner] = one
        held = self._held.get((filter_, source), 0)
        self._held[filter_, source] = held + 1
        if not held:
            self._levels.insert(filter_, source)
        if one.demands:
            self._strict.setdefault(filter_.topic, {})[name] = one
            self._groups.setdefault(one.group, Counter())[source] += 1
        return one

    def _drop(self, name: Name) -> _Subscription | None:
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
            self._drop_strict(one)
        self._waiting.pop(name, None)
        is_shown = one.shown == one.filter and not one.bogus
        if is_shown and one.filter in self._levels and not self._may(one, one.filter):
            self._note_sunk(one)
        self._show(one, None)
        if one.bogus:
            self._bogus[name] = 0
        return one

    def _drop_strict(self, one: _Subscription) -> None:
        strict, group = self._strict[one.filter.topic], self._groups[one.group]
        del strict[one.name]
        if not strict:
            del self._strict[one.filter.topic]
        group -= Counter([one.name[0]])
        if not group:
            del self._groups[one.group]

    def _checked(self, topics: set[Topic], new: _Subscription | None = None) -> Changes:
        """Look at whatever is shown on topics on which somebody came or went; all else there may wait."""
        looked = [] if new is None or new.name not in self._subscriptions else [new]
        for topic in topics:
            for one in self._strict.get(topic, {}).values():
                self._waiting[one.name] = None
                if one.shown is not None and not self._may(one, one.shown, one.bogus):
                    self._look(one)
                    looked.append(one)
        return self._changes(looked)

    def _look(self, one: _Subscription) -> None:
        """Decide what is shown for a subscription."""
        if (crowd := self._crowd(one, one.filter, self._margin(one))) is not None:
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
        shown = one.filter if one.bogus else self._wider(one)
        if shown is None and (shown := self._known_wider(one)) is not None:
            one.crowd = "network"
        self._show(one, shown)

    def _vouch(self, one: _Subscription, sources: int) -> None:
        """Stand for so many bogus sources behind a subscription."""
        if one.otherwise == "bogus" and (sources != one.bogus or one.told is None):
            self._bogus[one.name] = sources
        one.bogus = sources

    def _may(self, one: _Subscription, shown: Filter, bogus: int = 0) -> bool:
        """Tell whether a filter may be shown for a subscription, with so many bogus sources behind it."""
        return self._crowd(one, shown, bogus=bogus) is not None

    def _crowd(
        self, one: _Subscription, shown: Filter, margin: Callable[[int], int] = _none, bogus: int = 0
    ) -> Crowd | None:
        """Return whose sources are enough for a filter to be shown for a subscription; None: nobody's."""
        crowd: Crowd = "edge"
        for condition, k in one.demands:
            least = k + margin(k)
            if may_show(self._levels, one.filter, shown, condition, least - bogus):
                continue
            own = self._groups.get(one.group)
            if self._beyond is None or not own or not self._beyond.says(shown, condition, least, own.keys()):
                return None
            crowd = "network"
        return crowd

    def _margin(self, one: _Subscription) -> Callable[[int], int]:
        """Return how far above k the level of a filter has to be for it to be shown."""
        has_sunk = one.demands in self._sunk.get(one.filter, ()) and one.otherwise != "bogus"
        return _quarter if has_sunk else _none

    def _note_sunk(self, one: _Subscription) -> None:
        """Remember that a filter which was shown as it is has too few behind it now.

        Where the whole network's crowd was enough, and it is not known how large that is now, it is not sunk.
        """
        if one.crowd == "network" and self._beyond is not None and not self._beyond.has_sunk(one.group):
            return
        self._sunk.setdefault(one.filter, set()).add(one.demands)

    def _missing(self, one: _Subscription) -> int:
        """Return how many bogus sources it takes to show a filter as it is; 0 where they are too many."""
        missing = max(k - self._levels.level(one.filter, condition) for condition, k in one.demands)
        return missing if missing <= MAX_BOGUS else 0

    def _wider(self, one: _Subscription) -> Filter | None:
        """Return a filter that may be shown instead, by this broker's own clients."""
        for condition, k in one.demands if one.otherwise == "generalise" else ():
            found = generalise(self._levels, one.filter, condition, k + self._margin(one)(k))
            if found is not None and self._crowd(one, found.filter) == "edge":
                return found.filter
        return None

    def _known_wider(self, one: _Subscription) -> Filter | None:
        """Return a filter that may be shown instead, by what is known of the whole network."""
        if self._beyond is None or one.otherwise != "generalise":
            return None
        found = self._beyond.wider(one.group, self._groups[one.group].keys())
        return found if found is not None and self._may(one, found) else None

    def _show(self, one: _Subscription, shown: Filter | None) -> None:
        if one.shown == shown:
            return
        if one.shown is not None:
            self._shown[one.shown] -= 1
            if not self._shown[one.shown]:
                del self._shown[one.shown]
                self._tree.remove(one.shown, None)
        if shown is not None:
            if shown not in self._shown:
                self._tree.insert(shown, None)
            self._shown[shown] = self._shown.get(shown, 0) + 1
        one.shown = shown

    def _changes(self, looked: list[_Subscription]) -> Changes:
        bogus, self._bogus = self._bogus, {}
        told = {}
        for one in looked:
            if one.demands and (standing := self._stands(one)) != one.told:
                told[one.name] = one.told = standing
        return Changes(self._tree.take_changes(), told, bogus)

    def _brings(self, one: _Subscription) -> Filter | None:
        """Return what is shown outside that brings a subscription's messages, the narrowest of it."""
        if one.shown is not None:
            return one.shown
        return min(self._tree.matching(one.filter.topic, one.filter.sides), key=_volume, default=None)

    def _stands(self, one: _Subscription) -> Standing:
        condition = (one.terms if one.terms.k > 1 else self._minimum).condition
        shown = self._brings(one)
        added = 0.0 if shown is None else max(0.0, shown.volume - one.filter.volume)
        level = self._levels.level(one.filter, condition)
        if one.crowd == "network":
            level = max([level, *(k for asked, k in one.demands if asked is condition)])
        return Standing(level, shown, added, one.bogus, one.crowd)


def _volume(one: Filter) -> float:
    return one.volume
