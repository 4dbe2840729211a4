"""The plan: subscriptions that are to begin, or end, at drawn moments, so that none is tied to another.

Several subscriptions that appear at one moment belong to one daemon, for whoever sees them; and two daemons,
one of which begins what the other began a moment ago belong together. So what comes of an import, or of
another device, is written down and begun later, each at a moment of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import msgspec
import trio

from hushcast_local.subscriber import Subscriber
from hushcast_protocol.base.epochs import Calendar
from hushcast_protocol.base.errors import Refusal
from hushcast_protocol.base.record_kinds import RecordKind, StateOwner
from hushcast_protocol.base.wire import encode
from hushcast_protocol.content.predicates import Predicate, parse_where, write_where
from hushcast_protocol.content.topics import Interest, Topic, parse_topic, write_link
from hushcast_runtime.context import Context
from hushcast_runtime.logs import log
from hushcast_runtime.storage.changes import Change
from hushcast_runtime.storage.recovery import restore
from hushcast_runtime.storage.store import record_reader

MAX_PLANNED = 256  # subscriptions: as many as a daemon may have at all
SPREAD = 12  # epochs within which they begin unless it is said: what others begin lies in between
FOLLOWED_WITHIN = 48
"""Epochs within which a device begins, or ends, what another one did.

Where others begin that topic within W epochs, who sees the moments ties the two 1 + W/48 times as often as by
chance: over a day half as often again.
"""
AGAIN = 24  # epochs until one that was refused is tried again: an unsubscription may have made room

_KIND = RecordKind(
    "planned-subscription",
    StateOwner.DAEMON,
    holds="subscriptions that are to begin or end at a drawn moment: topic, condition, terms",
    lifetime="until they begin or end, or are taken back",
    bound=f"{MAX_PLANNED}, and an end for each subscription",
)
_KEY = 16  # bytes, random


class _Stored(msgspec.Struct, frozen=True, array_like=True):
    link: str
    where: str
    begins: float
    terms: dict[str, Any] | None = None
    name: bytes | None = None
    is_end: bool = False


_decode = record_reader(_Stored, "planned subscription")


class _Planned:
    def __init__(self, key: bytes, stored: _Stored) -> None:
        topic = parse_topic(stored.link)
        self.key = key
        self.interest = Interest(topic, parse_where(stored.where, topic.attributes))
        self.stored = stored
        self.scope = trio.CancelScope()


class SubscriptionPlan:
    """The subscriptions that one daemon will begin, and those that it will end."""

    def __init__(self, subscriber: Subscriber, calendar: Calendar, context: Context) -> None:
        self._subscriber = subscriber
        self._calendar = calendar
        self._context = context
        self._env = context.env
        self._store = context.store
        self._planned: dict[Interest, _Planned] = {}
        self.is_ended: Callable[[Interest], bool] = lambda interest: False
        """Tells at the moment for which an end is planned whether it still is to end."""

    def __len__(self) -> int:
        return len(self.interests)

    @property
    def interests(self) -> list[Interest]:
        """What is to begin."""
        return [one.interest for one in self._planned.values() if not one.stored.is_end]

    async def load(self) -> None:
        """Take up what was planned before a restart."""
        await restore(self._store, _KIND, lambda key, value: self._begin(_Planned(key, _decode(value))))

    @property
    def usual(self) -> float:
        """Seconds within which subscriptions begin unless it is said."""
        return float(SPREAD * self._calendar.epoch_seconds)

    @property
    def followed(self) -> float:
        """Seconds within which this device does what another one did."""
        return float(FOLLOWED_WITHIN * self._calendar.epoch_seconds)

    def holds(self, interest: Interest) -> bool:
        """Tell whether it is subscribed to, or will be."""
        return interest in self.interests or bool(self._subscriber.find(interest.topic, interest.predicate))

    async def add(
        self,
        interest: Interest,
        terms: Mapping[str, Any] | None = None,
        within: float | None = None,
        name: bytes | None = None,
    ) -> None:
        """Plan a subscription that is not held, within so many seconds; durable on return.

        `name` is the one that its handle comes from, if that is free. Raises `Refusal` where too many are
        planned.
        """
        if len(self) >= MAX_PLANNED:
            raise Refusal(f"{MAX_PLANNED} subscriptions are planned already: wait until some have begun")
        kept = None if terms is None else dict(terms)
        moment = self._drawn(self.usual if within is None else within)
        stored = _Stored(write_link(interest.topic), write_where(interest.predicate), moment, kept, name)
        await self._plan(stored)

    async def add_end(self, interest: Interest) -> None:
        """Plan the end of a subscription that another device has ended; durable on return.

        One that has not begun is taken back at once.
        """
        if interest in self.interests:
            await self.take_back(interest.topic, interest.predicate)
        elif interest not in self._planned:
            link, where = write_link(interest.topic), write_where(interest.predicate)
            await self._plan(_Stored(link, where, self._drawn(self.followed), is_end=True))

    async def take_back(self, topic: Topic, predicate: Predicate | None) -> bool:
        """Begin those to a topic no more, with this condition or all; durable on return. Tell of any."""
        ended = [
            planned
            for interest, planned in self._planned.items()
            if interest.topic == topic and predicate in (None, interest.predicate)
        ]
        for planned in ended:
            planned.scope.cancel()
            await self._forget(planned)
        return bool(ended)

    def _drawn(self, within: float) -> float:
        return self._env.now() + self._env.uniform(0.0, within)

    async def _plan(self, stored: _Stored) -> None:
        planned = _Planned(self._env.randomness(_KEY), stored)
        self._begin(planned)
        await self._store.write(Change(_KIND, planned.key, encode(stored)))

    async def _forget(self, planned: _Planned) -> None:
        if self._planned.get(planned.interest) is planned:
            del self._planned[planned.interest]
        await self._store.write(Change(_KIND, planned.key, None))

    def _begin(self, planned: _Planned) -> None:
        self._planned[planned.interest] = planned
        self._context.spawn(self._keep, planned)

    async def _keep(self, planned: _Planned) -> None:
        moment, stored = planned.stored.begins, planned.stored
        with planned.scope:
            while True:
                await self._env.sleep_until(moment)
                if stored.is_end:
                    if self.is_ended(planned.interest):
                        await self._subscriber.unsubscribe(planned.interest.topic, planned.interest.predicate)
                    break
                try:
                    held = await self._subscriber.subscribe(planned.interest, stored.terms, name=stored.name)
                    await held.route.ready.wait()
                    if held.refusal is None:
                        break
                except Refusal:
                    pass
                log.warning("a planned subscription was refused, and is tried again")
                moment = self._env.now() + AGAIN * self._calendar.epoch_seconds
            await self._forget(planned)
