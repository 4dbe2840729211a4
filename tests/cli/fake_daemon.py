"""A daemon without a network: all that applications get is real, over a carrier in memory."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import trio
from fake_carrier import NODES, FakeCarrier, FakeNetwork

from hushcast.control_messages import Finding
from hushcast_local.control_server import ControlServer
from hushcast_local.devices.devices import Devices
from hushcast_local.devices.hidden_topics import HiddenTopics
from hushcast_local.outbox import Outbox
from hushcast_local.prober import Prober
from hushcast_local.publisher import Publisher
from hushcast_local.second_looks import SecondLooks
from hushcast_local.service import InboxFeed, Service
from hushcast_local.settings import InboxSection
from hushcast_local.subscriber import Subscriber
from hushcast_local.subscription import LocalSubscription
from hushcast_local.topic_keys import TopicKeys
from hushcast_node.counters import COUNTERS
from hushcast_protocol.base.crypto.secrets import Seed, TopicKey
from hushcast_protocol.base.epochs import Calendar
from hushcast_protocol.content.attributes import Value, Values
from hushcast_protocol.content.bodies import Content, open_body
from hushcast_protocol.content.tokens import token, topic_key
from hushcast_protocol.content.topics import Interest, Topic, parse_topic
from hushcast_runtime.context import Context
from hushcast_runtime.counters import Counters
from hushcast_runtime.environment import Environment, system_environment
from hushcast_runtime.storage.store import MemoryStore, Store
from hushcast_runtime.tracing import NoTracer

NETWORK = bytes(32)
EPOCH_SECONDS = 3600
REFUSAL = "no relay answers: try again later"

_topic_key = functools.cache(topic_key)


class WatchedService(Service):
    """The real service; tells how many applications have begun to listen, and what they showed."""

    def __init__(
        self, publisher: Publisher, subscriber: Subscriber, outbox: Outbox, devices: Devices
    ) -> None:
        super().__init__(publisher, subscriber, outbox, devices)
        self.shown: list[int] = []
        self._feeds = 0
        self._feeds_changed = trio.lowlevel.ParkingLot()

    async def subscribe(
        self,
        interest: Interest,
        since: int | None = None,
        terms: Mapping[str, Any] | None = None,
        past: float | None = None,
    ) -> InboxFeed:
        feed = await super().subscribe(interest, since, terms, past)
        show = feed.shown

        def shown(number: int, acknowledged: bool = False) -> None:
            self.shown.append(number)
            show(number, acknowledged)

        feed.shown = shown  # type: ignore[method-assign]
        self._feeds += 1
        self._feeds_changed.unpark_all()
        return feed

    async def until_feeds(self, count: int) -> None:
        """Wait until so many applications have begun to listen."""
        while self._feeds < count:
            await self._feeds_changed.park()


class FakeDaemon:
    """One daemon on a `FakeNetwork`; it may stop and start again, as with a disk."""

    def __init__(
        self,
        socket: Path,
        env: Environment | None = None,
        store: Store | None = None,
        network: FakeNetwork | None = None,
        probes_an_epoch: float | None = None,
    ) -> None:
        self.socket = socket
        self.findings = [Finding("tor", "good", "version 0.4.8.10")]
        self.env = env or system_environment()
        self.store = store or MemoryStore()
        self.network = network or FakeNetwork(Calendar(EPOCH_SECONDS), self.env.now)
        self.service: WatchedService
        self._probes_an_epoch = probes_an_epoch
        self._member = self.network.join()
        self._keys: dict[bytes, tuple[Topic, TopicKey]] = {}
        self._scope = trio.CancelScope()
        self._over = trio.Event()
        self._over.set()

    async def start(self, nursery: trio.Nursery, ready: bool = True) -> None:
        """Serve from now on, once what was stopped has closed its socket; only `status` while not `ready`."""
        await self._over.wait()
        self._over = trio.Event()
        self._scope = trio.CancelScope()
        await nursery.start(self._run, ready)

    def status(self) -> dict[str, Any]:
        described = {"ready": True, "role": "client", "roster": {"epoch": 12, "relays": NODES}, "tor": None}
        return described | {"links": 0} | self.service.status()

    async def examine(self) -> list[Finding]:
        return self.findings

    def stop(self) -> None:
        """Close the socket and every connection, as a daemon does that dies."""
        self._scope.cancel()

    async def hold(self, topic: str) -> LocalSubscription:
        """Return the subscription to a topic, subscribing if there is none."""
        subscription = await self.service.subscriber.subscribe(Interest(parse_topic(topic)))
        await subscription.route.ready.wait()
        return subscription

    async def put(
        self, topic: str, payload: bytes, values: dict[str, Value] | None = None, author: Seed | None = None
    ) -> bytes:
        """Let a message arrive; return its id."""
        await self.hold(topic)
        accepted = await self.service.publish(parse_topic(topic), Content(payload, values or {}), author)
        await self.network.arrived()
        return accepted.id

    @property
    def published(self) -> list[tuple[str, bytes]]:
        """Topic and payload of all that the network took, oldest first."""
        return [(topic.name, content.payload) for topic, content in self._opened()]

    @property
    def published_values(self) -> list[Values]:
        """Their attributes."""
        return [content.values for _, content in self._opened()]

    def _opened(self) -> list[tuple[Topic, Content]]:
        found = []
        for message in self.network.messages.values():
            topic, key = self._keys[message.tokens[0]]
            content = open_body(key, message)
            if not content.probe:
                found.append((topic, content))
        return found

    def _derive(self, topic: Topic, network: bytes, day: int) -> TopicKey:
        key = _topic_key(topic, network, day)
        self._keys[token(key)] = topic, key
        return key

    async def _run(self, ready: bool, task_status: trio.TaskStatus[None]) -> None:
        try:
            with self._scope:
                async with trio.open_nursery() as nursery:
                    spawn = nursery.start_soon
                    context = Context(self.env, self.store, Counters(COUNTERS), NoTracer(), spawn)
                    self.service = self._local(context)
                    await self.service.load()
                    server = ControlServer(self.socket, self.status, self.examine, context.counters)
                    if ready:
                        server.open(self.service)
                    await server.run(task_status=task_status)
        finally:
            self._over.set()

    def _local(self, context: Context) -> WatchedService:
        carrier = FakeCarrier(self.network, self._member, context.env, context.spawn)
        keys = TopicKeys(NETWORK, context.env, self._derive)
        outbox = Outbox(context.env, context.store)
        prober = Prober(carrier, keys, self._probes_an_epoch, context)
        publisher = Publisher(carrier, keys, outbox, SecondLooks(carrier, outbox, context), context)
        subscriber = Subscriber(carrier, keys, prober, InboxSection(), context)
        topics = HiddenTopics(publisher, subscriber, outbox)
        return WatchedService(
            publisher,
            subscriber,
            outbox,
            Devices(topics, subscriber, keys.network, carrier.calendar, context),
        )
