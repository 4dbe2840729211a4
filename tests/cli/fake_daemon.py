"""A daemon without a network: the real control socket and the real inbox over publications in memory."""

from __future__ import annotations

import hashlib
import itertools
from pathlib import Path
from typing import Any

import trio

from hushcast.words import Finding
from hushcast_local.control import ControlServer
from hushcast_local.inbox import Inbox, InboxListener, Received
from hushcast_local.outbox import Outbox, Publication
from hushcast_local.pubsub import Accepted
from hushcast_local.settings import InboxSection
from hushcast_node.counted import COUNTERS
from hushcast_protocol.base.errors import Refusal
from hushcast_protocol.base.secrets import Seed
from hushcast_protocol.content.attributes import Value
from hushcast_protocol.content.bodies import Content
from hushcast_protocol.content.messages import TRAIL_SIZE, Message
from hushcast_protocol.content.predicates import Predicate, write_where
from hushcast_protocol.content.topics import Interest, Topic, parse_topic
from hushcast_runtime.counters import Counters
from hushcast_runtime.environment import Environment, system_environment
from hushcast_runtime.store import MemoryStore

NODES = 7
UNREACHABLE = parse_topic("unreachable")  # publishing and subscribing here is refused
SILENT = parse_topic("silent")  # here no receipt comes for now
REFUSAL = "no relay answers: try again later"


class FakeFeed:
    """One application's view of a topic."""

    nodes = NODES

    def __init__(self, inbox: Inbox, shown: list[int], since: int | None) -> None:
        self._listener: InboxListener = inbox.listen(since)
        self._shown = shown

    @property
    def position(self) -> int:
        return self._listener.position

    async def next(self) -> tuple[int, Received] | None:
        return await self._listener.next()

    def lost(self) -> int:
        return self._listener.lost()

    def shown(self, number: int, acknowledged: bool = False) -> None:
        self._shown.append(number)
        self._listener.shown(number, acknowledged)

    def close(self) -> None:
        self._listener.close()


class FakeQueued:
    """A publication that is taken over when somebody waits for it."""

    def __init__(self, service: FakePubSub, publication: Publication, topic: Topic, content: Content) -> None:
        self._service = service
        self._publication = publication
        self._topic = topic
        self._content = content
        self.id = publication.id

    async def taken(self) -> None:
        service, publication = self._service, self._publication
        if self._topic == SILENT:
            publication.reason, publication.attempts = "no relay gave a receipt: it fell silent", 3
            publication.next_attempt = publication.since + 30
            publication.settled.set()
        else:
            await service.receipts.wait()
            publication.origins.append(bytes(32))
            publication.settled.set()
        await publication.taken()
        await service.deliver(self.id, self._topic, self._content)
        service.held.leave(publication)


class FakePubSub:
    """Publish and subscribe within this process."""

    def __init__(self) -> None:
        self.published: list[tuple[str, bytes]] = []
        self.values: list[dict[str, Value]] = []  # attributes of what was published
        self.shown: list[int] = []
        self.retention = InboxSection()
        self.installed = trio.Event()  # subscribing waits for it
        self.installed.set()
        self.receipts = trio.Event()  # publishing waits for it
        self.receipts.set()
        self.feeds = 0
        self._feeds_changed = trio.Event()
        self._env: Environment = system_environment()
        self._inboxes: dict[Interest, Inbox] = {}
        self._ids = itertools.count()
        self.held = Outbox(self._env, MemoryStore())

    async def publish(self, topic: Topic, content: Content, author: Seed | None = None) -> Accepted:
        queued = await self.enqueue(topic, content, author, at_once=True)
        await queued.taken()
        return Accepted(queued.id)

    async def enqueue(
        self, topic: Topic, content: Content, author: Seed | None = None, at_once: bool = False
    ) -> FakeQueued:
        if topic == UNREACHABLE and at_once:
            raise Refusal(REFUSAL)
        message_id = hashlib.sha256(str(next(self._ids)).encode()).digest()
        message = Message(message_id, 0, (bytes(16),), bytes(TRAIL_SIZE), content.payload)
        signed = Content(content.payload, content.values, author.public() if author else None)
        return FakeQueued(self, await self.held.put(topic.name, message), topic, signed)

    async def deliver(self, message_id: bytes, topic: Topic, content: Content) -> None:
        self.published.append((topic.name, content.payload))
        self.values.append(dict(content.values))
        for interest, inbox in self._inboxes.items():
            if interest.topic == topic and interest.predicate.matches(content.values):
                inbox.put(message_id, 0, content)
                await inbox.durable()

    def outbox(self) -> list[dict[str, Any]]:
        return self.held.describe()

    async def cancel(self, message_id: bytes) -> str | None:
        return await self.held.cancel(message_id)

    async def subscribe(self, interest: Interest, since: int | None = None) -> FakeFeed:
        if interest.topic == UNREACHABLE:
            raise Refusal(REFUSAL)
        inbox = self.hold(interest)
        await self.installed.wait()
        feed = FakeFeed(inbox, self.shown, since)
        self.feeds += 1
        self._feeds_changed.set()
        self._feeds_changed = trio.Event()
        return feed

    async def acknowledge(self, topic: Topic, cursor: int, predicate: Predicate | None = None) -> None:
        for interest, inbox in self._inboxes.items():
            if interest.topic == topic and predicate in (None, interest.predicate):
                await inbox.acknowledge(cursor)

    async def unsubscribe(self, topic: Topic, predicate: Predicate | None = None) -> bool:
        ending = [
            interest
            for interest in self._inboxes
            if interest.topic == topic and predicate in (None, interest.predicate)
        ]
        for interest in ending:
            self._inboxes.pop(interest).close()
        return bool(ending)

    def subscriptions(self) -> list[dict[str, Any]]:
        return [
            {
                "topic": interest.topic.name,
                "where": write_where(interest.predicate),
                "private": interest.topic.secret is not None,
                "nodes": NODES,
                "ready": self.installed.is_set(),
                "since": 1.5,
            }
            | inbox.describe()
            for interest, inbox in self._inboxes.items()
        ]

    def status(self) -> dict[str, Any]:
        return {
            "ready": True,
            "role": "client",
            "roster": {"epoch": 12, "relays": NODES},
            "links": 0,
            "subscriptions": len(self._inboxes),
            "tor": None,
        }

    def hold(self, interest: Interest) -> Inbox:
        """Return an interest's inbox, subscribing if there is none."""
        if interest not in self._inboxes:
            name = str(len(self._inboxes)).encode() + b"\x00"
            self._inboxes[interest] = Inbox(
                name, self._env, MemoryStore(), Counters(COUNTERS), self.retention
            )
        return self._inboxes[interest]

    async def until_feeds(self, count: int) -> None:
        """Wait until so many applications have begun to listen."""
        while self.feeds < count:
            await self._feeds_changed.wait()


class FakeDaemon:
    """The control socket over a `FakePubSub`."""

    def __init__(self, socket: Path) -> None:
        self.socket = socket
        self.findings = [Finding("tor", "good", "version 0.4.8.10")]
        self.service = FakePubSub()
        self._scope = trio.CancelScope()

    async def start(self, nursery: trio.Nursery, ready: bool = True) -> None:
        """Serve from now on; only `status` while not `ready`."""
        server = ControlServer(self.socket, self.service.status, self.examine, Counters(COUNTERS))
        if ready:
            server.open(self.service)
        await nursery.start(self._run, server)

    async def examine(self) -> list[Finding]:
        return self.findings

    def stop(self) -> None:
        """Close the socket and every connection, as a daemon does that dies."""
        self._scope.cancel()

    async def put(
        self, topic: str, payload: bytes, values: dict[str, Value] | None = None, author: Seed | None = None
    ) -> bytes:
        """Let a message arrive; return its id."""
        named = parse_topic(topic)
        self.service.hold(Interest(named))
        return (await self.service.publish(named, Content(payload, values or {}), author)).id

    async def _run(self, server: ControlServer, task_status: trio.TaskStatus[None]) -> None:
        with self._scope:
            await server.run(task_status=task_status)
