"""The daemon: the one place where its parts are made and wired, as relay or as client."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import trio

from hushcast_directory.client import DirectoryClient
from hushcast_local.inbox import Gap, InboxListener, Received
from hushcast_local.outbox import Outbox, Publication
from hushcast_local.publisher import Publisher
from hushcast_local.pubsub import Accepted
from hushcast_local.topic_keys import Derive, TopicKeys
from hushcast_overlay.admission import Admission
from hushcast_overlay.connector import Connector
from hushcast_overlay.dropping import Dropper
from hushcast_overlay.identity import Identity
from hushcast_overlay.probing import PROBES_AN_EPOCH, Prober
from hushcast_overlay.registration import Registration, keep_registered, open_address
from hushcast_overlay.relay import MAX_CONNECTIONS, Relay
from hushcast_overlay.rosters import CheckRoster, RosterKeeper
from hushcast_overlay.subscriber import Subscriber
from hushcast_overlay.subscription import Subscription
from hushcast_protocol.base.addresses import Address
from hushcast_protocol.base.errors import Refusal
from hushcast_protocol.base.roster import Network, Roster, check_roster
from hushcast_protocol.base.secrets import Seed
from hushcast_protocol.base.wire import PublicKey, RelayId
from hushcast_protocol.content.bodies import Content
from hushcast_protocol.content.predicates import Predicate, write_where
from hushcast_protocol.content.tokens import topic_key
from hushcast_protocol.content.topics import Interest, Topic
from hushcast_protocol.overlay.profile import Profile
from hushcast_runtime.clock import DaemonClock
from hushcast_runtime.config import InboxSection
from hushcast_runtime.counters import Counters
from hushcast_runtime.environment import Environment
from hushcast_runtime.store import Store
from hushcast_runtime.tracing import NoTracer, Tracer
from hushcast_runtime.transports.base import Listener, Transport


@dataclass(frozen=True)
class Parts:
    """What a daemon is made of; all that differs between a server, a testnet and a simulation."""

    network: Network
    profile: Profile
    directory_address: Address
    directory_key: PublicKey
    identity: Identity | None
    """A relay's keys; a client has none."""
    env: Environment
    transport: Transport
    store: Store
    tracer: Tracer = field(default_factory=NoTracer)
    derive: Derive = topic_key
    check_roster: CheckRoster = check_roster
    inbox: InboxSection = field(default_factory=InboxSection)
    probes_an_epoch: float = PROBES_AN_EPOCH


class Daemon:
    """One daemon. `run` makes it live; what applications ask is `PubSub`."""

    def __init__(self, parts: Parts, counters: Counters | None = None) -> None:
        """Wire the parts; `counters` may be shared with what is around the daemon."""
        self._parts = parts
        self.clock = DaemonClock(parts.env, parts.network.calendar)
        self._env = self.clock.environment()
        env, store = self._env, parts.store
        self.counters = counters if counters is not None else Counters()
        self.rosters = RosterKeeper(
            parts.network, parts.directory_key, env, store, self.counters, parts.check_roster, self.clock
        )
        self.relay: Relay | None = None
        self.subscriber: Subscriber | None = None
        self._publisher: Publisher | None = None
        self._outbox = Outbox(env, store)
        self._directory = DirectoryClient(
            env, parts.transport, parts.network.id, parts.directory_address, parts.directory_key
        )
        self._registration = Registration()
        self.listener: Listener | None = None
        """A relay's address."""

    async def run(self, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Live until cancelled. Reports started when applications can be served."""
        parts = self._parts
        env, store, tracer = self._env, parts.store, parts.tracer
        async with trio.open_nursery() as nursery:
            nursery.start_soon(store.run)
            await self.rosters.load()
            connector = Connector(parts.transport, env, self.rosters, self.counters)
            keys = TopicKeys(parts.network.id, env, parts.derive)
            dropper = Dropper(parts.profile, self.rosters, connector, env)
            prober = Prober(self.rosters, dropper, keys, env, self.counters, parts.probes_an_epoch)
            self.subscriber = Subscriber(
                self.relay_id,
                parts.profile,
                self.rosters,
                parts.transport,
                connector,
                keys,
                prober,
                parts.inbox,
                env,
                store,
                self.counters,
                tracer,
                nursery,
            )
            self._publisher = Publisher(
                dropper,
                self.rosters,
                keys,
                env,
                self._outbox,
                self.counters,
                tracer,
                nursery,
            )
            if parts.identity is not None:
                await self._start_relay(parts.identity, connector, self.subscriber, nursery)
            nursery.start_soon(self.rosters.run, self._directory)
            if not isinstance(tracer, NoTracer):  # it looks through each roster
                nursery.start_soon(self._trace_rosters)
            await self._publisher.load()
            await self.subscriber.load()
            role = "relay" if parts.identity else "client"
            tracer.tell("started", role=role, profile=parts.profile.name)
            task_status.started()

    async def _start_relay(
        self, identity: Identity, connector: Connector, subscriber: Subscriber, nursery: trio.Nursery
    ) -> None:
        parts = self._parts
        self.relay = Relay(
            identity,
            parts.profile,
            self.rosters,
            connector,
            subscriber.take_listed,
            self._env,
            parts.store,
            self.counters,
            parts.tracer,
            nursery,
        )
        await self.relay.load()
        listener = self.listener = await open_address(identity, parts.transport, parts.store)
        admission = Admission(self.relay.accept, self.relay.serve, MAX_CONNECTIONS, parts.env, self.counters)
        nursery.start_soon(listener.serve, admission.admit)
        nursery.start_soon(self.relay.keep_time)
        nursery.start_soon(self.relay.kept_links.run)
        nursery.start_soon(
            keep_registered,
            identity,
            listener,
            parts.network,
            self._directory,
            self._env,
            self._registration,
            self.relay.intake.difficulty,
        )

    async def _trace_rosters(self) -> None:
        while True:
            await self.rosters.changed()
            if self.rosters.newest is not None:
                self._trace_roster(self.rosters.newest)

    def _trace_roster(self, roster: Roster) -> None:
        """Note how many a roster lists; the first of them notes whom, too."""
        first = self.relay is not None and self.relay.id == min(roster.relays, default=None)
        listed = sorted(roster.relays) if first else None
        self._parts.tracer.observe("roster", relays=len(roster.relays), listed=listed)

    @property
    def relay_id(self) -> RelayId | None:
        """The name that the roster lists a relay by; a client has none."""
        return self._parts.identity.seed.public() if self._parts.identity else None

    @property
    def transport(self) -> Transport:
        """What carries everything."""
        return self._parts.transport

    @property
    def ready(self) -> bool:
        """Tell whether it holds a roster and, as a relay, is registered."""
        return self.rosters.newest is not None and (self.relay is None or self._registration.done)

    async def publish(self, topic: Topic, content: Content, author: Seed | None = None) -> Accepted:
        """Publish; return once a relay has given its receipt. Raises `Refusal`."""
        return Accepted((await self.start_publication(topic, content, author)).message.id)

    async def start_publication(
        self, topic: Topic, content: Content, author: Seed | None = None
    ) -> Publication:
        """Publish as `publish` does; the result shows which origins give receipts meanwhile."""
        assert self._publisher is not None
        return await self._publisher.publish(topic, content, author)

    async def enqueue(
        self, topic: Topic, content: Content, author: Seed | None = None, at_once: bool = False
    ) -> Publication:
        """Publish; return once the message is durable in the outbox. Raises `Refusal`."""
        assert self._publisher is not None
        return await self._publisher.enqueue(topic, content, author, at_once)

    def outbox(self) -> list[dict[str, Any]]:
        """Describe the publications that wait for a relay, and those that were given up."""
        return self._outbox.describe()

    async def cancel(self, message_id: bytes) -> str | None:
        """Remove a publication from the outbox; return its topic's name, `None` if there is none."""
        return await self._outbox.cancel(message_id)

    async def subscribe(self, interest: Interest, since: int | None = None) -> OverlayFeed:
        """Subscribe; return once relays route to the mailbox and can find it. Raises `Refusal`."""
        assert self.subscriber is not None
        subscription = await self.subscriber.subscribe(interest)
        if since is not None:
            subscription.inbox.check_cursor(since)
        await subscription.ready.wait()
        return OverlayFeed(subscription, self._nodes(subscription), since)

    async def acknowledge(self, topic: Topic, cursor: int, predicate: Predicate | None = None) -> None:
        """Acknowledge all messages up to a cursor, of one subscription to a topic or of all to it.

        Durable on return. Raises `Refusal`, before any is acknowledged, where there is no subscription or one
        of them has not come to the cursor.
        """
        assert self.subscriber is not None
        inboxes = [
            subscription.inbox
            for subscription in self.subscriber.subscriptions
            if subscription.interest.topic == topic and predicate in (None, subscription.interest.predicate)
        ]
        if not inboxes:
            raise Refusal("there is no such subscription: `hushcast subscriptions` lists them")
        for inbox in inboxes:
            inbox.check_cursor(cursor)
        for inbox in inboxes:
            await inbox.acknowledge(cursor)

    def coverage(self, topic: Topic, predicate: Predicate | None = None) -> list[dict[str, Any]]:
        """Describe how much of the network reaches the subscriptions to a topic, or one of them."""
        assert self.subscriber is not None
        return [
            {"topic": topic.name, "where": write_where(held.interest.predicate)} | held.coverage.describe()
            for held in self.subscriber.subscriptions
            if held.interest.topic == topic and predicate in (None, held.interest.predicate)
        ]

    async def unsubscribe(self, topic: Topic, predicate: Predicate | None = None) -> bool:
        """End one subscription to a topic, or without a predicate all; return whether there was one."""
        assert self.subscriber is not None
        return await self.subscriber.unsubscribe(topic, predicate)

    def subscriptions(self) -> list[dict[str, Any]]:
        """Describe the subscriptions held."""
        assert self.subscriber is not None
        return [
            {
                "topic": subscription.interest.topic.name,
                "where": write_where(subscription.interest.predicate),
                "private": subscription.interest.topic.secret is not None,
                "nodes": self._nodes(subscription),
                "ready": subscription.ready.is_set(),
                "since": round(subscription.created, 3),
            }
            | subscription.inbox.describe()
            for subscription in self.subscriber.subscriptions
        ]

    def status(self) -> dict[str, Any]:
        """Describe the daemon."""
        subscriber, relay = self.subscriber, self.relay
        return {
            "ready": self.ready,
            "role": "relay" if self._parts.identity else "client",
            "address": self.listener.address if self.listener else None,
            "network": self._parts.network.name,
            "profile": self._parts.profile.name,
            "epoch": self.rosters.calendar.epoch(self._env.now()),
            "clock": self.clock.describe(),
            "roster": self._describe_roster(),
            "registration": self._registration.problem,
            "links": relay.peers.open_links() if relay else 0,
            "difficulty": self.rosters.least_difficulty(relay.id) if relay else 0,
            "leases": len(relay.leasing.book) if relay else 0,
            "subscriptions": len(subscriber.subscriptions) if subscriber else 0,
            "outbox": len(self._outbox),
            "counters": self.counters.as_dict(),
        }

    def _describe_roster(self) -> dict[str, int] | None:
        newest = self.rosters.newest
        if newest is None:
            return None
        return {"epoch": newest.epoch, "relays": len(newest.relays), "held": self.rosters.held}

    def _nodes(self, subscription: Subscription) -> int:
        today = subscription.on(self.rosters.calendar.day(self._env.now()))
        return min((planned.nodes for planned in today), default=0)


class OverlayFeed:
    """One application's view of a subscription of this daemon."""

    def __init__(self, subscription: Subscription, nodes: int, since: int | None = None) -> None:
        self.nodes = nodes
        self._listener: InboxListener = subscription.inbox.listen(since)

    @property
    def position(self) -> int:
        """The cursor behind which this feed goes on."""
        return self._listener.position

    async def next(self) -> tuple[int, Received] | Gap | None:
        """Return the next message and its cursor, or a gap; `None` when the subscription ended."""
        return await self._listener.next()

    def lost(self) -> int:
        """Return how many messages were removed before this feed got them, since last asked."""
        return self._listener.lost()

    def shown(self, number: int, acknowledged: bool = False) -> None:
        """Note that the messages up to `number` were shown, or are not needed any more."""
        self._listener.shown(number, acknowledged)

    def close(self) -> None:
        """Stop listening."""
        self._listener.close()
