"""The daemon: the one place where its parts are made and wired, as relay or as client."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import trio

from hushcast_directory.client import DirectoryClient
from hushcast_node.admission import Admission
from hushcast_node.connector import Connector
from hushcast_node.identity import Identity
from hushcast_node.inbox import InboxListener, Received
from hushcast_node.publisher import Publication, Publisher
from hushcast_node.pubsub import Accepted
from hushcast_node.registration import keep_registered, open_address
from hushcast_node.relay import MAX_CONNECTIONS, Relay
from hushcast_node.rosters import CheckRoster, RosterKeeper
from hushcast_node.subscriber import Subscriber
from hushcast_node.subscription import Subscription
from hushcast_node.topic_keys import Derive, TopicKeys
from hushcast_node.tracing import NoTracer, Tracer
from hushcast_protocol.addresses import Address
from hushcast_protocol.bodies import Content
from hushcast_protocol.predicates import Predicate, write_where
from hushcast_protocol.profile import Profile
from hushcast_protocol.roster import Network, check_roster
from hushcast_protocol.secrets import Seed
from hushcast_protocol.tokens import topic_key
from hushcast_protocol.topics import Interest, Topic
from hushcast_protocol.wire import PublicKey
from hushcast_runtime.counters import Counters
from hushcast_runtime.environment import Environment
from hushcast_runtime.store import Store
from hushcast_runtime.transports.base import Transport


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


class Daemon:
    """One daemon. `run` makes it live; what applications ask is `PubSub`."""

    def __init__(self, parts: Parts, counters: Counters | None = None) -> None:
        """Wire the parts; `counters` may be shared with what is around the daemon."""
        self._parts = parts
        env, store = parts.env, parts.store
        self.counters = counters if counters is not None else Counters()
        self.rosters = RosterKeeper(
            parts.network, parts.directory_key, env, store, self.counters, parts.check_roster
        )
        self.relay: Relay | None = None
        self.subscriber: Subscriber | None = None
        self._publisher: Publisher | None = None
        self._directory = DirectoryClient(
            env, parts.transport, parts.network.id, parts.directory_address, parts.directory_key
        )
        self._registered = trio.Event()
        self._address: Address | None = None

    async def run(self, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Live until cancelled. Reports started when applications can be served."""
        parts = self._parts
        env, store, tracer = parts.env, parts.store, parts.tracer
        async with trio.open_nursery() as nursery:
            nursery.start_soon(store.run)
            await self.rosters.load()
            connector = Connector(parts.transport, env, self.rosters, self.counters)
            keys = TopicKeys(parts.network.id, env, parts.derive)
            relay_id = parts.identity.seed.public() if parts.identity else None
            self.subscriber = Subscriber(
                relay_id,
                parts.profile,
                self.rosters,
                parts.transport,
                connector,
                keys,
                env,
                store,
                self.counters,
                tracer,
                nursery,
            )
            self._publisher = Publisher(parts.profile, self.rosters, connector, keys, env, tracer, nursery)
            if parts.identity is not None:
                await self._start_relay(parts.identity, connector, self.subscriber, nursery)
            nursery.start_soon(self.rosters.run, self._directory)
            nursery.start_soon(self._trace_rosters)
            await self.subscriber.load()
            nursery.start_soon(self.subscriber.keep_withdrawing)
            tracer.tell("started", role="relay" if parts.identity else "client")
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
            parts.env,
            parts.store,
            self.counters,
            parts.tracer,
            nursery,
        )
        await self.relay.load()
        listener = await open_address(identity, parts.transport, parts.store)
        self._address = listener.address
        admission = Admission(self.relay.serve, MAX_CONNECTIONS, self.counters)
        nursery.start_soon(listener.serve, admission.admit)
        nursery.start_soon(self.relay.keep_time)
        nursery.start_soon(
            keep_registered,
            identity,
            listener,
            parts.network,
            self._directory,
            parts.env,
            self._registered,
        )

    async def _trace_rosters(self) -> None:
        while True:
            await self.rosters.changed()
            if self.rosters.newest is not None:
                relays = sorted(self.rosters.newest.relays)
                first = self.relay is not None and relays[:1] == [self.relay.id]
                self._parts.tracer.observe("roster", relays=len(relays), listed=relays if first else None)

    @property
    def ready(self) -> bool:
        """Tell whether it holds a roster and, as a relay, is registered."""
        return self.rosters.newest is not None and (self.relay is None or self._registered.is_set())

    async def publish(self, topic: Topic, content: Content, author: Seed | None = None) -> Accepted:
        """Publish; return once a relay has given its receipt. Raises `Refusal`."""
        return Accepted((await self.start_publication(topic, content, author)).message.id)

    async def start_publication(
        self, topic: Topic, content: Content, author: Seed | None = None
    ) -> Publication:
        """Publish as `publish` does; the result shows which origins give receipts meanwhile."""
        assert self._publisher is not None
        return await self._publisher.publish(topic, content, author)

    async def subscribe(self, interest: Interest) -> OverlayFeed:
        """Subscribe; return once relays route to the mailbox and can find it. Raises `Refusal`."""
        assert self.subscriber is not None
        subscription = await self.subscriber.subscribe(interest)
        await subscription.ready.wait()
        return OverlayFeed(subscription, self._nodes(subscription))

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
            for subscription in self.subscriber.subscriptions
        ]

    def status(self) -> dict[str, Any]:
        """Describe the daemon."""
        newest = self.rosters.newest
        subscriber, relay = self.subscriber, self.relay
        return {
            "ready": self.ready,
            "role": "relay" if self._parts.identity else "client",
            "address": self._address,
            "network": self._parts.network.name,
            "profile": self._parts.profile.name,
            "epoch": self.rosters.calendar.epoch(self._parts.env.now()),
            "roster": {"epoch": newest.epoch, "relays": len(newest.relays)} if newest else None,
            "links": relay.peers.open_links() if relay else 0,
            "leases": len(relay.leasing.book) if relay else 0,
            "subscriptions": len(subscriber.subscriptions) if subscriber else 0,
            "counters": self.counters.as_dict(),
        }

    def _nodes(self, subscription: Subscription) -> int:
        planned = subscription.planned.get(self.rosters.calendar.day(self._parts.env.now()))
        return planned.nodes if planned else 0


class OverlayFeed:
    """One application's view of a subscription of this daemon."""

    def __init__(self, subscription: Subscription, nodes: int) -> None:
        self.nodes = nodes
        self._listener: InboxListener = subscription.inbox.listen()

    async def next(self) -> tuple[int, Received] | None:
        """Return the next message and its number; `None` when the subscription ended."""
        return await self._listener.next()

    def shown(self, number: int) -> None:
        """Note that the messages up to `number` were shown."""
        self._listener.shown(number)

    def close(self) -> None:
        """Stop listening."""
        self._listener.close()
