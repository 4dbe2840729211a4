"""The subscriber: the subscriptions of one daemon, and their routes at the carrier."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import trio

from hushcast.handles import handle_of
from hushcast_local.inbox import Inbox
from hushcast_local.inbox_records import NAME_SIZE, erase_others
from hushcast_local.prober import Prober
from hushcast_local.settings import InboxSection
from hushcast_local.subscription import LocalSubscription, forget, keep, kept
from hushcast_local.subscription_start import SubscriptionStart
from hushcast_local.topic_keys import TopicKeys
from hushcast_protocol.base.errors import Refusal
from hushcast_protocol.base.keeping_rule import MAX_DAYS_KEPT
from hushcast_protocol.content.predicates import Predicate
from hushcast_protocol.content.topics import Interest, Topic
from hushcast_runtime.carriers.carrier import Carrier
from hushcast_runtime.context import Context

MAX_SUBSCRIPTIONS = 256  # of one daemon: each has a route, which on the overlay is a box and a tree
WITHDRAW_WITHIN = 30.0  # seconds that unsubscribing waits for the network; the rest is done in the background


class Subscriber:
    """All subscriptions of one daemon."""

    def __init__(
        self, carrier: Carrier, keys: TopicKeys, prober: Prober, retention: InboxSection, context: Context
    ) -> None:
        self._carrier = carrier
        self._calendar = carrier.calendar
        self._keys = keys
        self._prober = prober
        self._retention = retention
        self._context = context
        self._env = context.env
        self._store = context.store
        self._by_interest: dict[Interest, LocalSubscription] = {}
        self.on_read: Callable[[Topic, bytes], None] = lambda topic, message_id: None
        """Hears of each message that an application was shown or is done with: its topic and id."""

    @property
    def subscriptions(self) -> list[LocalSubscription]:
        """The subscriptions held, oldest first."""
        return list(self._by_interest.values())

    def find(self, topic: Topic, predicate: Predicate | None) -> list[LocalSubscription]:
        """Return the subscription to a topic with a condition or, without one, all to the topic."""
        return [
            held
            for interest, held in self._by_interest.items()
            if interest.topic == topic and predicate in (None, interest.predicate)
        ]

    async def load(self) -> None:
        """Take up the subscriptions that a restart interrupted."""
        held = [self._made(*one) for one in await kept(self._store)]
        await erase_others(self._store, {subscription.name for subscription in held})
        for subscription in held:
            await subscription.load()
            await subscription.lapse(self._first_known())  # before anything comes
        routes = await self._carrier.resume(held)
        for subscription in held:
            subscription.route = routes[subscription.name]
            self._start(subscription)

    async def subscribe(
        self,
        interest: Interest,
        terms: Mapping[str, Any] | None = None,
        since: int = 0,
        name: bytes | None = None,
        past: float | None = None,
    ) -> LocalSubscription:
        """Return the subscription for an interest, new or held; its route tells when messages reach it.

        `terms` are the carrier's business; without any, those of a subscription that is held will do. A new
        one gets the `name`, 16 bytes, unless another's handle comes of that. With `past` (Unix seconds) it
        brings all that was published from that day on. Raises `Refusal` where the carrier cannot keep it
        routed, or not to these terms, or does not have what is past, where there are too many, or where it
        has not come to the cursor `since`. Then none is begun.
        """
        first_day = None if past is None else self._calendar.day(min(past, self._env.now()))
        if (held := self._by_interest.get(interest)) is not None:
            if terms not in (None, held.terms):
                raise Refusal("this subscription is held to other terms: unsubscribe from it first")
            held.inbox.check_cursor(since)
            await self._look_back(held, first_day)
            return held
        if len(self._by_interest) >= MAX_SUBSCRIPTIONS:
            raise Refusal(f"this daemon has {MAX_SUBSCRIPTIONS} subscriptions: unsubscribe from one first")
        if first_day is not None:
            self._carrier.check_past(first_day)
        subscription = self._made(self._new_name(name), interest, self._env.now(), terms, first_day)
        subscription.inbox.check_cursor(since)
        subscription.route = self._carrier.keep(subscription)
        self._start(subscription)
        await keep(self._store, subscription)
        return subscription

    async def _look_back(self, held: LocalSubscription, first_day: int | None) -> None:
        """Have a subscription bring what was published from a day on, unless it does already."""
        if first_day is None or held.beginning.is_since(first_day):
            return
        self._carrier.check_past(first_day)
        held.beginning.since = first_day
        await keep(self._store, held)
        held.route.look_back()

    async def unsubscribe(self, topic: Topic, predicate: Predicate | None) -> bool:
        """End the subscription for an interest, or, without a predicate, all to a topic.

        Nothing is delivered from now on, and the network is told to forget it, first in this call and then in
        the background. Returns whether there was one.
        """
        ending = self.find(topic, predicate)
        # All before anything is waited for, and by tasks of the daemon's: the application may leave, and must
        # not leave a part of it.
        for ended in [self._begin_end(subscription) for subscription in ending]:
            await ended.wait()
        with trio.move_on_after(WITHDRAW_WITHIN):
            async with trio.open_nursery() as nursery:
                for subscription in ending:
                    nursery.start_soon(subscription.route.forgotten)
        return bool(ending)

    async def durable(self) -> None:
        """Return once all that was shown and acknowledged is on disk."""
        await self._store.write()

    async def _drop_if_refused(self, subscription: LocalSubscription) -> None:
        """Have nothing left of what the network did not take; whoever waits for it hears why."""
        await subscription.route.ready.wait()
        if subscription.refusal is None or self._by_interest.get(subscription.interest) is not subscription:
            return
        self._begin_end(subscription)

    def _begin_end(self, subscription: LocalSubscription) -> trio.Event:
        """End a subscription that is held; what is returned is set once it has ended."""
        del self._by_interest[subscription.interest]
        ended = trio.Event()
        self._context.spawn(self._end, subscription, ended)
        return ended

    async def _end(self, subscription: LocalSubscription, ended: trio.Event) -> None:
        subscription.scope.cancel()
        subscription.inbox.close()
        await forget(self._store, subscription)
        await subscription.route.end()
        await subscription.inbox.erase()
        ended.set()

    def _new_name(self, name: bytes | None) -> bytes:
        """Return this name, or draw one, whose handle no other subscription has."""
        taken = {held.handle for held in self.subscriptions}
        while name is None or handle_of(name) in taken:
            name = self._env.randomness(NAME_SIZE)
        return name

    def _made(
        self,
        name: bytes,
        interest: Interest,
        created: float,
        terms: Mapping[str, Any] | None,
        since: int | None = None,
    ) -> LocalSubscription:
        inbox = Inbox(name, self._env, self._store, self._context.counters, self._retention)
        inbox.on_read = lambda message_id: self.on_read(interest.topic, message_id)
        beginning = SubscriptionStart(created, self._calendar, since)
        return LocalSubscription(name, interest, beginning, terms, inbox, self._keys, self._context)

    def _start(self, subscription: LocalSubscription) -> None:
        self._by_interest[subscription.interest] = subscription
        self._context.spawn(self._live, subscription)

    async def _live(self, subscription: LocalSubscription) -> None:
        with subscription.scope:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(self._forget_days, subscription)
                nursery.start_soon(self._prober.run, subscription)
                nursery.start_soon(self._drop_if_refused, subscription)

    async def _forget_days(self, subscription: LocalSubscription) -> None:
        """Forget in the inbox the ids of days gone by."""
        while True:
            await subscription.lapse(self._first_known())
            await trio.sleep(self._calendar.lead * self._env.uniform(0.5, 1.0))

    def _first_known(self) -> int:
        """Return the first day whose ids inboxes know: where it was kept a message may come once again."""
        return self._calendar.day(self._env.now() - self._calendar.grace) - MAX_DAYS_KEPT
