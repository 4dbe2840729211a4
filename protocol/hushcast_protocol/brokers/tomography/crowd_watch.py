"""The watch: what an edge broker asks of all edge brokers' clients, and knows of it (`NetworkCrowd`).

Each question is put once and watched: the service says when its answer changes, and again before it is over.
An answer counts while it is watched and valid, and while those whom the broker named are there; names are
drawn by `BrokerStatements`, so that who was named in a question and is stated later is one. Bogus sources
never count.

Who is named in a question is counted for others, too (`joint_judgement.py`). So a group is named for what
will be shown for it if the answer is yes, and for nothing else: for one filter at a time, and only where one
answer decides.

Who would take a wider filter probes (`filter_probe.py`), at its full k in every step: a probe shows no filter
to anybody before it is known to be k-anonymous, and the steps that others take as well are asked about first.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence, Set
from dataclasses import dataclass
from typing import NamedTuple

import msgspec

from hushcast_protocol.base.errors import PeerError
from hushcast_protocol.base.wire import PublicKey
from hushcast_protocol.brokers.anonymity_conditions import AnonymityCondition
from hushcast_protocol.brokers.clear_words import from_outside
from hushcast_protocol.brokers.filters import Filter, Source
from hushcast_protocol.brokers.network_crowd import CrowdWish, SubscriptionGroup
from hushcast_protocol.brokers.tomography.answer_cache import AnswerCache
from hushcast_protocol.brokers.tomography.broker_statements import BrokerStatements
from hushcast_protocol.brokers.tomography.filter_probe import FilterProbe
from hushcast_protocol.brokers.tomography.frames import Ask, AskReply, Unwatch
from hushcast_protocol.brokers.tomography.inference import ComparableQuestion
from hushcast_protocol.brokers.tomography.questions import TomographyQuestion, read_answer
from hushcast_protocol.brokers.tomography.statements import MAX_CROWD
from hushcast_protocol.brokers.tomography.tomography_service import MAX_WATCHES_EACH
from hushcast_protocol.content.topics import Topic

PROBE_STEPS = 4  # after the first, which is the whole topic; each takes the service half a minute to grant
MAX_WATCHED = MAX_WATCHES_EACH // 2  # questions at once; each may be put anew before it is taken back
AGAIN_AFTER = 60.0  # seconds after which a question is put again that was refused
_NEVER = float("inf")


class _Key(NamedTuple):
    group: SubscriptionGroup
    filter: Filter
    condition: AnonymityCondition
    k: int


@dataclass(slots=True)
class _Watch:
    number: int
    question: TomographyQuestion
    """As the service has it."""
    asked: ComparableQuestion
    """As the cache has it: the sources are the clients themselves, whatever they are called."""
    offered: frozenset[Source]
    """Whose subscriptions these were; not all are named where they are many."""
    epoch: int
    is_anonymous: bool | None = None
    is_answered: bool = False
    """Since it was put last."""
    has_sunk: bool = False
    until: float = 0.0
    again_at: float = _NEVER


class CrowdWatch:
    """What one edge broker asks, and knows. `now` is Unix time."""

    def __init__(self, service: PublicKey, spread: int) -> None:
        """`spread` is how many edge brokers a crowd is to come from at least."""
        self._service = service
        self._spread = spread
        self._way: tuple[PublicKey, ...] = ()
        self._cache = AnswerCache()
        self._watches: dict[_Key, _Watch] = {}
        self._keys: dict[int, _Key] = {}
        self._probes: dict[SubscriptionGroup, FilterProbe] = {}
        self._over: list[int] = []  # numbers that the service is to hear are watched no more
        self._unnamed: list[int] = []  # numbers under which nobody is to be named any more
        self._number = 0
        self._has_moved = False  # what is known has changed since questions were put

    def __len__(self) -> int:
        """The number of questions that are watched."""
        return len(self._watches)

    def use(self, way: Sequence[PublicKey]) -> set[Topic]:
        """Go by this way from the broker to the root, empty if it has none.

        Returns topics of which less is known: answers are about a way, and on another one say nothing.
        """
        if tuple(way) == self._way:
            return set()
        topics = {key.filter.topic for key, watch in self._watches.items() if watch.is_anonymous}
        self._way, self._cache = tuple(way), AnswerCache()
        self._over += self._keys
        self._unnamed += [watch.number for watch in self._watches.values()]
        self._watches.clear()
        self._keys.clear()
        self._probes.clear()
        return topics

    def reopened(self) -> None:
        """The link to the service has opened anew: it watches nothing, and what it said is valid still."""
        self._over.clear()
        self._keys.clear()

    def ask(
        self, wishes: Iterable[CrowdWish], stating: BrokerStatements, epoch: int, now: float
    ) -> tuple[list[Ask | Unwatch], set[Topic]]:
        """Return what is to be said to the service, and topics of which less is known than before.

        New questions come first, so that nobody who is named in the old ones is missed in between.
        """
        self._has_moved = False
        wanted = self._wanted(wishes, now)
        topics: set[Topic] = set()
        for key in self._watches.keys() - wanted.keys():
            if not self._bridges(key, wanted):
                topics |= self._end(key)
        put: list[Ask | Unwatch] = []
        known = {key[:2] for key in self._watches}
        for key, clients in wanted.items():
            watch = self._watches.get(key)
            if watch is None and key[:2] not in known and self._knows(key, clients, now):
                continue  # it follows from another answer
            if watch is not None:
                if self._stands(watch, clients, epoch, now):
                    continue
                if watch.is_anonymous and self._is_unwatched(watch) and watch.offered <= set(clients):
                    clients = tuple(one for one in clients if one in watch.offered)  # who came is stated
                else:
                    topics |= self._end(key)
            put.append(self._put(key, clients, stating, epoch))
        for number in self._unnamed:
            stating.forget(number)
        self._unnamed.clear()
        over, self._over = self._over, []
        return [*put, *map(Unwatch, over)], topics

    def hear(self, answered: AskReply, now: float) -> set[Topic]:
        """Take an answer; return topics of which something else is known than before.

        Raises `PeerError` if it does not hold: then it is as if there were none.
        """
        key = self._keys.get(answered.number)
        if key is None:
            return set()  # to a question put no more
        watch = self._watches[key]
        was, watch.is_anonymous, self._has_moved = watch.is_anonymous, None, True
        try:
            if answered.answer is None:
                watch.again_at = now + AGAIN_AFTER
                self._cache.drop(watch.asked)
                return {key.filter.topic} if was else set()
            answer = read_answer(answered.answer, self._service, watch.question, now)
        except PeerError:
            watch.again_at = now + AGAIN_AFTER
            self._cache.drop(watch.asked)
            raise
        has_sunk = watch.has_sunk or (watch.is_answered and was is True)
        watch.has_sunk, watch.is_answered = has_sunk and not answer.is_anonymous, True
        watch.is_anonymous, watch.until, watch.again_at = answer.is_anonymous, answer.until, _NEVER
        self._cache.put(watch.asked, answer.is_anonymous, answer.until)
        return {key.filter.topic} if watch.is_anonymous is not was else set()

    def expire(self, now: float) -> set[Topic]:
        """Return topics on which an answer is over that has not been given anew."""
        topics = set()
        for key, watch in self._watches.items():
            if watch.is_anonymous and watch.until <= now:
                watch.is_anonymous, watch.again_at = None, now
                topics.add(key.filter.topic)
        return topics

    def deadline(self) -> float:
        """Return when `expire` has something to say next; infinity if never."""
        ends = (watch.until for watch in self._watches.values() if watch.is_anonymous)
        return min(ends, default=_NEVER)

    def is_due(self, now: float) -> bool:
        """Tell whether `ask` has something to put again, or a probe may be on another step."""
        again = any(self._is_unwatched(watch) or now >= watch.again_at for watch in self._watches.values())
        return again or self._has_moved

    def says(
        self, shown: Filter, condition: AnonymityCondition, k: int, own: Set[Source], now: float
    ) -> bool:
        """Tell whether a filter is known to be k-anonymous (`NetworkCrowd.says`)."""
        if not self._way or k > MAX_CROWD:
            return False
        found = self._cache.find(self._asked(shown, condition, k, tuple(own)), now)
        return found is not None and found.is_anonymous

    def has_sunk(self, group: SubscriptionGroup) -> bool:
        """Tell whether a group's filter was anonymous and is no more (`NetworkCrowd.has_sunk`)."""
        watches = (self._watches.get(_Key(group, group.filter, *demand)) for demand in group.demands)
        return any(watch is not None and watch.has_sunk for watch in watches)

    def wider(self, group: SubscriptionGroup, own: Set[Source], now: float) -> Filter | None:
        """Return what a probe has found for a group (`NetworkCrowd.wider`)."""
        probe = self._probes.get(group)
        if probe is None:
            return None
        self._move(probe, group, own, now)
        return probe.shown

    def _wanted(self, wishes: Iterable[CrowdWish], now: float) -> dict[_Key, tuple[Source, ...]]:
        wanted: dict[_Key, tuple[Source, ...]] = {}
        probes: dict[SubscriptionGroup, FilterProbe] = {}
        for wish in wishes if self._way else ():
            filters = {wish.group.filter: wish.demands}
            if _may_probe(wish):
                probe = probes[wish.group] = self._probes.get(wish.group) or _probe(wish.group)
                self._move(probe, wish.group, set(wish.sources), now)
                steps = [probe.shown, probe.next.filter if probe.next is not None else None]
                filters = {step: wish.group.demands for step in steps if step is not None} | {
                    step: wish.demands for step in steps if step == wish.group.filter
                }
            named = wish.sources if len(wish.demands) == 1 else ()
            for filter_, demands in filters.items():
                for condition, k in sorted(demands):
                    if len(wanted) < MAX_WATCHED and k <= MAX_CROWD:
                        wanted[_Key(wish.group, filter_, condition, k)] = named
        self._probes = probes
        return wanted

    def _move(self, probe: FilterProbe, group: SubscriptionGroup, own: Set[Source], now: float) -> None:
        """Have a probe stand where what is known lets it."""

        def holds(filter_: Filter) -> bool:
            return all(self.says(filter_, condition, k, own, now) for condition, k in group.demands)

        while probe.shown is not None and not holds(probe.shown):
            probe.fell()
        while probe.next is not None and probe.next.filter != group.filter and holds(probe.next.filter):
            probe.heard(is_anonymous=True)

    def _bridges(self, key: _Key, wanted: dict[_Key, tuple[Source, ...]]) -> bool:
        """Tell whether a yes that is not asked for any more is all there is until another is there."""
        if not self._watches[key].is_anonymous:
            return False
        others = [self._watches.get(other) for other in wanted if other[:3] == key[:3] and other.k < key.k]
        return any(other is None or other.is_anonymous is None for other in others)

    def _knows(self, key: _Key, clients: Sequence[Source], now: float) -> bool:
        return self.says(key.filter, key.condition, key.k, set(clients), now)

    def _stands(self, watch: _Watch, clients: Sequence[Source], epoch: int, now: float) -> bool:
        """Tell whether what is asked is what is to be asked."""
        there = frozenset(clients)
        if self._is_unwatched(watch) or now >= watch.again_at or not watch.offered <= there:
            return False
        if watch.is_anonymous:
            return True  # who came besides is stated, and counts
        return watch.epoch == epoch and watch.offered == there

    def _is_unwatched(self, watch: _Watch) -> bool:
        """Tell whether the service does not watch it: the link over which it was put has ended."""
        return watch.number not in self._keys

    def _put(self, key: _Key, clients: Sequence[Source], stating: BrokerStatements, epoch: int) -> Ask:
        self._number += 1
        named = stating.ask(self._number, key.filter, clients)
        asked = self._asked(key.filter, key.condition, key.k, tuple(named))
        question = msgspec.structs.replace(asked.question, sources=tuple(named.values()))
        watch = _Watch(self._number, question, asked, frozenset(clients), epoch)
        former = self._watches.get(key)
        if former is not None:
            self._unnamed.append(former.number)
            if former.asked.question == asked.question:
                watch.is_anonymous, watch.until = former.is_anonymous, former.until
            else:
                self._cache.drop(former.asked)
        self._watches[key], self._keys[self._number] = watch, key
        return Ask(self._number, question, is_watch=True, stamp=None)

    def _end(self, key: _Key) -> set[Topic]:
        watch = self._watches.pop(key)
        self._unnamed.append(watch.number)
        self._cache.drop(watch.asked)
        if self._keys.pop(watch.number, None) is not None:
            self._over.append(watch.number)
        return {key.filter.topic} if watch.is_anonymous else set()

    def _asked(
        self, shown: Filter, condition: AnonymityCondition, k: int, sources: tuple[Source, ...]
    ) -> ComparableQuestion:
        question = TomographyQuestion(
            from_outside(shown),
            self._way[0],
            self._way[-1],
            k,
            condition,
            self._spread,
            True,
            sources,  # type: ignore[arg-type]  # here the clients, of whom the service has names
        )
        return ComparableQuestion(question, shown, self._way)


def _may_probe(wish: CrowdWish) -> bool:
    """Tell whether a step would be shown: not where its own filter is, or one that its own clients allow."""
    is_by_own = wish.shown is not None and wish.crowd == "edge"
    return wish.group.otherwise == "generalise" and wish.shown != wish.group.filter and not is_by_own


def _probe(group: SubscriptionGroup) -> FilterProbe:
    k = max(k for _, k in group.demands)
    return FilterProbe(group.filter, k, PROBE_STEPS, least=k)
