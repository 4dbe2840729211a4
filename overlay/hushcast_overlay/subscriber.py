"""The subscriber: opens mailboxes, plans and installs trees in time, withdraws, delivers to inboxes."""

from __future__ import annotations

from collections.abc import Iterable

import trio

from hushcast_local.inbox import Inbox
from hushcast_local.topic_keys import TopicKeys
from hushcast_overlay.admission import Admission
from hushcast_overlay.connector import Connector
from hushcast_overlay.installing import Installer
from hushcast_overlay.mailbox import MAX_CONNECTIONS, Mailbox, until_published
from hushcast_overlay.probing import Prober
from hushcast_overlay.rosters import RosterKeeper
from hushcast_overlay.subscription import (
    ID_SIZE,
    Planned,
    Subscription,
    SubscriptionRecords,
    interest_of,
)
from hushcast_overlay.trees import Trees
from hushcast_overlay.withdrawals import Withdrawals
from hushcast_protocol.base.addresses import Address
from hushcast_protocol.base.errors import AuthenticationError, DecodeError, Refusal
from hushcast_protocol.base.secrets import Seed
from hushcast_protocol.base.wire import RelayId
from hushcast_protocol.content.bodies import Content, open_body
from hushcast_protocol.content.messages import Message, check_message
from hushcast_protocol.content.predicates import Predicate
from hushcast_protocol.content.tokens import check_predicate
from hushcast_protocol.content.topics import Interest, Topic, check_values
from hushcast_protocol.overlay.profile import Profile, Root
from hushcast_runtime.backoff import Backoff
from hushcast_runtime.config import InboxSection
from hushcast_runtime.counters import Counters
from hushcast_runtime.environment import Environment
from hushcast_runtime.store import Store
from hushcast_runtime.tracing import Tracer
from hushcast_runtime.transports.base import Transport

MAX_SUBSCRIPTIONS = 256  # of one daemon: each needs an onion service, and a parcel for every relay a day
EARLIEST_RENEWAL, LATEST_RENEWAL = 0.5, 0.25  # shares of a day before its end
WITHDRAW_WITHIN = 30.0  # seconds that unsubscribing waits for relays; what is left is done afterwards
FIRST_PAUSE, LONGEST_PAUSE = 2.0, 60.0  # seconds before the next attempt where no relay confirmed
ASK_WITHIN = 30.0  # seconds after a restart that old trees wait for the rosters missed
RESUME_WITHIN = 10.0  # seconds after a restart in which relays are told what is missing, each at its moment


class Subscriber:
    """All subscriptions of one daemon."""

    def __init__(
        self,
        relay: RelayId | None,
        profile: Profile,
        rosters: RosterKeeper,
        transport: Transport,
        connector: Connector,
        keys: TopicKeys,
        prober: Prober,
        retention: InboxSection,
        env: Environment,
        store: Store,
        counters: Counters,
        tracer: Tracer,
        nursery: trio.Nursery,
    ) -> None:
        """`relay` is this daemon's own relay, if it runs one."""
        self._relay = relay
        self._profile = profile
        self._rosters = rosters
        self._calendar = rosters.calendar
        self._transport = transport
        self._connector = connector
        self._keys = keys
        self._env = env
        self._store = store
        self._counters = counters
        self._tracer = tracer
        self._nursery = nursery
        self._records = SubscriptionRecords(store)
        self._installer = Installer(rosters, connector, env)
        self._trees = Trees(relay, profile, rosters, keys, env)
        self._withdrawals = Withdrawals(self._installer, self._records, self._calendar, env, nursery)
        self._prober = prober
        self._retention = retention
        self._by_interest: dict[Interest, Subscription] = {}

    @property
    def subscriptions(self) -> list[Subscription]:
        """The subscriptions held, oldest first."""
        return list(self._by_interest.values())

    async def load(self) -> None:
        """Take up the subscriptions, and the withdrawals, that a restart interrupted."""
        held: dict[bytes, Subscription] = {}
        for name, stored in sorted(
            await self._records.load_subscriptions(), key=lambda kept: kept[1].created
        ):
            subscription = Subscription(
                name,
                interest_of(stored),
                Seed(stored.seed),
                stored.created,
                stored.renewal,
                Inbox(name, self._env, self._store, self._counters, self._retention),
                Address(stored.address) if stored.address is not None else None,
            )
            await subscription.inbox.load()
            held[name] = subscription
        for planned in await self._records.load_installations():
            owner = held.get(planned.subscription)
            if owner is not None and not planned.withdrawing:
                owner.planned[planned.key] = planned
            else:
                self._withdrawals.begin(planned)
        for subscription in held.values():
            self._start(subscription, resumed=True)

    async def subscribe(self, interest: Interest) -> Subscription:
        """Return the subscription for an interest, new or held; its `ready` tells when messages reach it.

        Raises `Refusal` where there is no roster, or too many subscriptions; `UsageError` if no tokens can
        cover what is wanted.
        """
        if (held := self._by_interest.get(interest)) is not None:
            return held
        check_predicate(interest.predicate)
        self._rosters.current()
        if self._profile.root is Root.LISTED and self._relay is None:
            raise Refusal("under the profile paper only relays can subscribe: this daemon is a client")
        if len(self._by_interest) >= MAX_SUBSCRIPTIONS:
            raise Refusal(f"this daemon has {MAX_SUBSCRIPTIONS} subscriptions: unsubscribe from one first")
        name = self._env.randomness(ID_SIZE)
        subscription = Subscription(
            name,
            interest,
            Seed.draw(self._env.randomness),
            self._env.now(),
            self._env.uniform(LATEST_RENEWAL, EARLIEST_RENEWAL),
            Inbox(name, self._env, self._store, self._counters, self._retention),
        )
        self._start(subscription)
        await self._records.keep(subscription)
        self._tracer.tell("subscribed", topic=interest.topic.name, mailbox=subscription.seed.public())
        return subscription

    async def unsubscribe(self, topic: Topic, predicate: Predicate | None) -> bool:
        """End the subscription for an interest, or, without a predicate, all to a topic.

        Nothing is delivered from now on, and relays are told to forget it. Returns whether there was one.
        What relays do not confirm soon is repeated in the background.
        """
        ending = [
            held
            for interest, held in self._by_interest.items()
            if interest.topic == topic and predicate in (None, interest.predicate)
        ]
        ended: list[Planned] = []
        for subscription in ending:
            if self._by_interest.get(subscription.interest) is subscription:  # nobody else ended it meanwhile
                ended += await self._end(subscription)
        with trio.move_on_after(WITHDRAW_WITHIN):
            async with trio.open_nursery() as nursery:
                for planned in ended:
                    nursery.start_soon(self._withdrawals.withdraw, planned)
        return bool(ending)

    async def _end(self, subscription: Subscription) -> list[Planned]:
        """Deliver no more, forget the subscription durably; return the installations to be withdrawn."""
        del self._by_interest[subscription.interest]
        subscription.scope.cancel()
        subscription.ready.set()  # who still waits for it hears from the closed inbox that it ended
        subscription.inbox.close()
        await self._records.end(subscription)
        await subscription.inbox.erase()
        topic = subscription.interest.topic.name
        self._tracer.tell("unsubscribed", topic=topic, mailbox=subscription.seed.public())
        ended = list(subscription.planned.values())
        for planned in ended:
            self._withdrawals.begin(planned)
        return ended

    async def take_listed(self, message: Message) -> None:
        """Where subscribers are listed roots: take a message that passes this daemon's own relay."""
        if self._profile.root is not Root.LISTED:
            return
        for subscription in self.subscriptions:
            if any(held.installation.trunk == message.tokens[0] for held in subscription.on(message.day)):
                if self._relay is not None:
                    subscription.coverage.arrived(message.id, self._relay)
                await self._deliver(subscription, message)
                await subscription.inbox.durable()

    def _start(self, subscription: Subscription, resumed: bool = False) -> None:
        self._by_interest[subscription.interest] = subscription
        self._nursery.start_soon(self._keep, subscription, resumed)

    async def _keep(self, subscription: Subscription, resumed: bool) -> None:
        with subscription.scope:
            async with trio.open_nursery() as nursery:
                if self._profile.root is Root.MAILBOX:
                    nursery.start_soon(self._serve_mailbox, subscription)
                else:
                    subscription.opened.set()
                    subscription.published.set()
                nursery.start_soon(self._forget_days, subscription)
                nursery.start_soon(self._install_in_time, subscription, resumed)
                nursery.start_soon(self._prober.run, subscription)

    async def _forget_days(self, subscription: Subscription) -> None:
        """Forget in the inbox the ids of days gone by."""
        while True:
            subscription.inbox.lapse(self._calendar.day(self._env.now() - self._calendar.grace))
            await trio.sleep(self._calendar.lead * self._env.uniform(0.5, 1.0))

    async def _serve_mailbox(self, subscription: Subscription) -> None:
        async def deliver(messages: list[Message], top: RelayId) -> None:
            for message in messages:
                check_message(message)
                subscription.coverage.arrived(message.id, top)  # repeats, too: each copy tells of its way
                if subscription.inbox.knows(message.id) or self._takes(subscription, message.day):
                    await self._deliver(subscription, message)
                else:
                    self._counters.add("refused_day")
            await subscription.inbox.durable()  # of repeats, too: they may not be on disk yet

        mailbox = Mailbox(
            subscription.seed,
            self._transport,
            self._connector,
            subscription.is_top,
            deliver,
        )
        listener = await mailbox.open(subscription.address)
        try:
            if subscription.address != listener.address:
                subscription.address = listener.address
                await self._records.keep(subscription)
            subscription.opened.set()
            async with trio.open_nursery() as nursery:
                admission = Admission(
                    mailbox.accept, mailbox.serve, MAX_CONNECTIONS, self._env, self._counters
                )
                nursery.start_soon(listener.serve, admission.admit)
                await until_published(listener)
                subscription.published.set()
        finally:
            with trio.CancelScope(shield=True), trio.move_on_after(5):
                await listener.aclose()

    def _takes(self, subscription: Subscription, day: int) -> bool:
        """Tell whether messages of a day are taken: by an uncertain clock, those of all days with a tree.

        To refuse them would lose them, and not to confirm them would show top relays that the time is wrong.
        """
        if day in self._calendar.open_days(self._env.now()):
            return True
        return not self._env.is_certain() and bool(subscription.on(day))

    async def _deliver(self, subscription: Subscription, message: Message) -> None:
        if subscription.inbox.knows(message.id):
            return
        topic = subscription.interest.topic
        key = await self._keys.get(topic, message.day)
        try:
            content = open_body(key, message)
            check_values(topic, content.values)
        except (AuthenticationError, DecodeError):
            self._counters.add("messages_not_ours")
            return
        self._tracer.observe("delivered", message=message.id, tokens=message.tokens, size=len(message.body))
        if content.probe:
            self._take_probe(subscription, message, content)
            return
        # Wanted or not: what is told to others must not show what is wanted.
        subscription.coverage.received(message.id, self._env.now(), content.values)
        if not subscription.interest.predicate.matches(content.values):
            if subscription.inbox.pass_over(message.id, message.day):
                self._counters.add("messages_excess")
            return
        if subscription.inbox.put(message.id, message.day, content):
            self._tracer.tell("delivered", topic=topic.name, message=message.id)

    def _take_probe(self, subscription: Subscription, message: Message, content: Content) -> None:
        if not subscription.inbox.pass_over(message.id, message.day):
            return
        for gap in self._prober.take(subscription, message.id, content):
            subscription.inbox.note_gap(gap)
            self._tracer.tell("gap", topic=subscription.interest.topic.name, message=gap)

    async def _install_in_time(self, subscription: Subscription, resumed: bool) -> None:
        """Plan, tell, mend and renew at moments of this subscription's own, never because a roster came."""
        await subscription.opened.wait()
        # A relay that dialled earlier would not find the mailbox, and wait before it dials again.
        await subscription.published.wait()
        if resumed:
            await self._resume(subscription)
        mending = self._next_mending()
        longest = min(LONGEST_PAUSE, self._calendar.lead)
        backoff = Backoff(min(FIRST_PAUSE, longest), longest, self._env.randomness)
        while True:
            mends = self._env.now() >= mending
            if mends:
                mending = self._next_mending()
            for day in self._days_wanted(subscription):
                for number in range(self._profile.trees):
                    if (day, number) not in subscription.planned:
                        await self._plan(subscription, day, number)
                    await self._complete(subscription, subscription.planned[day, number], mends)
            self._forget_lapsed(subscription)
            if not self._is_told(subscription):
                await trio.sleep(backoff.next())
                continue
            backoff.reset()
            subscription.ready.set()
            await trio.sleep(self._until_next_look(subscription, mending))

    async def _resume(self, subscription: Subscription) -> None:
        """Take up what a restart interrupted, with rosters of now if the directory has any."""
        if self._is_told(subscription):
            subscription.ready.set()
        with trio.move_on_after(ASK_WITHIN):
            await self._rosters.fresh()
        while self._rosters.newest is None:
            await self._rosters.changed()
        await trio.sleep(self._env.uniform(0.0, RESUME_WITHIN))

    def _is_told(self, subscription: Subscription) -> bool:
        today = subscription.on(self._calendar.day(self._env.now()))
        return any(planned.nodes for planned in today)

    def _next_mending(self) -> float:
        return self._calendar.next_mending(self._env.now(), self._env.uniform(0.0, 1.0))

    def _days_wanted(self, subscription: Subscription) -> Iterable[int]:
        today = self._calendar.day(self._env.now())
        return (today, today + 1) if self._renews_at(subscription, today) <= self._env.now() else (today,)

    def _renews_at(self, subscription: Subscription, day: int) -> float:
        return self._calendar.day_start(day + 1) - subscription.renewal * self._calendar.day_seconds

    def _until_next_look(self, subscription: Subscription, mending: float) -> float:
        now = self._env.now()
        renewal = self._renews_at(subscription, self._calendar.day(now))
        # Telling relays may have taken until after the moment to mend.
        return max(0.0, (min(mending, renewal) if renewal > now else mending) - now)

    async def _plan(self, subscription: Subscription, day: int, number: int) -> None:
        planned = await self._trees.plan(subscription, day, number)
        # On disk before any relay hears of it: what is installed can always be withdrawn.
        await self._records.keep_installation(planned)
        subscription.planned[planned.key] = planned
        self._tell_installed(subscription, planned)

    def _tell_installed(self, subscription: Subscription, planned: Planned) -> None:
        installation = planned.installation
        self._tracer.tell(
            "installed",
            topic=subscription.interest.topic.name,
            mailbox=subscription.seed.public(),
            day=installation.day,
            depth=self._profile.depth,
            tree=dict(installation.tree.parents),
            tokens=(installation.trunk, *installation.entries),
        )

    async def _complete(self, subscription: Subscription, planned: Planned, mends: bool) -> None:
        """Tell all whose seat changed, and all others that have not confirmed."""
        # A tree that nobody knows of may change at any moment.
        if (mends or not planned.nodes) and await self._trees.mend(subscription, planned):
            await self._records.keep_installation(planned)
            self._tell_installed(subscription, planned)
        planned.tell_again(subscription.coverage.shunned(len(planned.installation.tree.parents)))
        if not planned.missing:
            return
        installation = planned.installation

        def confirm(relays: set[RelayId]) -> None:
            if not planned.withdrawing:  # unsubscribed meanwhile: what is missing is now said of withdrawals
                planned.missing -= relays

        await self._installer.deliver(
            installation.tree,
            sorted(planned.missing),
            lambda relay: installation.install(self._profile, relay),
            confirm,
        )
        if not planned.withdrawing:
            await self._records.keep_installation(planned)

    def _forget_lapsed(self, subscription: Subscription) -> None:
        for key in list(subscription.planned) if self._env.is_certain() else ():
            if self._calendar.lapse(key[0]) <= self._env.now():
                self._records.forget_installation(subscription.planned.pop(key))
