"""A tree of brokers over `memory`, whose members can be stopped, replaced and held up, and its clients."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from decimal import Decimal
from typing import Any

import trio
from gated_transport import Wires
from small_network import BEGIN, EPOCH_SECONDS, LONGEST_WAY, SHORTEST_WAY, Process, until
from talk import Talk

from hushcast_brokers.broker.daemon import Broker, BrokerParts
from hushcast_brokers.counters import BROKER_COUNTERS
from hushcast_brokers.held_tree import NO_TREE
from hushcast_brokers.tomography.broker_statements import TomographyAddress
from hushcast_protocol.base.addresses import Address, memory_address
from hushcast_protocol.base.crypto.secrets import Seed, TopicKey
from hushcast_protocol.base.link.links import Link
from hushcast_protocol.base.roster import RosterView
from hushcast_protocol.brokers.broker_tree import BrokerPosition, BrokerRole
from hushcast_protocol.brokers.clear_words import shown, words
from hushcast_protocol.brokers.exposure import OPEN
from hushcast_protocol.brokers.filters import Filter
from hushcast_protocol.brokers.frames import (
    MAX_BROKER_FRAME,
    Ack,
    AnonymityTerms,
    ExposureReport,
    Forward,
    Join,
    NewTree,
    ParentHello,
    Pong,
    Publish,
    Receipt,
    RequestAnswer,
    Subscribe,
    Unsubscribe,
    decode_from_above,
)
from hushcast_protocol.brokers.network import BrokersNetwork
from hushcast_protocol.brokers.privacy import read_privacy
from hushcast_protocol.content.attributes import Label, Number
from hushcast_protocol.content.messages import HEADER, SEAL, TRAIL_SIZE, Message, message_id
from hushcast_protocol.content.payload_sizes import PADDED_SIZES
from hushcast_protocol.content.predicates import parse_where
from hushcast_protocol.content.topics import Interest, Topic
from hushcast_runtime.counters import Counters
from hushcast_runtime.environment import Environment, simulated_environment
from hushcast_runtime.processes.keeping_section import NOTHING, KeepingSection
from hushcast_runtime.storage.store import MemoryStore
from hushcast_runtime.tracing import NoTracer, Tracer
from hushcast_runtime.transports.base import Transport, TransportError
from hushcast_runtime.transports.channel import open_channel
from hushcast_runtime.transports.memory import MemoryNetwork
from hushcast_testnet.simulations.clock_calls import call_at

KEY = TopicKey(bytes(range(32)))
OTHER_KEY = TopicKey(bytes(range(1, 33)))
TOPIC = Topic("ships", (Label("kind"), Number("lat", Decimal(0), Decimal(100), Decimal(1))))


class Member(Process):
    """A broker; its keys and store outlive it."""

    network: SmallTree

    def __init__(self, network: SmallTree, name: str, role: BrokerRole, parent: Member | None) -> None:
        super().__init__(network, name)  # type: ignore[arg-type]
        draw = network.environment(f"{name} keys").randomness
        self.seed, self.service = Seed.draw(draw), Seed.draw(draw)
        self.role: BrokerRole = role
        self.parent = parent
        self.store: Any = MemoryStore()
        self.counters: list[Counters] = []
        self.clients: frozenset[bytes] | None = None
        self.anonymity = OPEN
        self.tomography: TomographyAddress | None = None
        self.daemon: Any = None

    @property
    def key(self) -> bytes:
        return self.seed.public()

    @property
    def address(self) -> Address:
        """Where it is reached; over sockets that is known once it was started."""
        listens = self.daemon is not None and self.daemon.listener is not None
        return self.daemon.address if listens else memory_address(self.service.public())

    @property
    def seat(self) -> BrokerPosition:
        assert self.parent is not None
        return BrokerPosition(self.key, self.address, self.role, self.parent.key)

    def count(self, name: str) -> int:
        """What a counter says over all lives."""
        return sum(counters[name] for counters in self.counters)

    def status(self, name: str) -> Any:
        return self.daemon.status()[name]

    async def start(self) -> None:
        self.counters.append(Counters(BROKER_COUNTERS))
        await super().start()

    async def _run(self, transport: Transport, env: Environment, task_status: trio.TaskStatus[None]) -> None:
        network = self.network
        is_root = self is network.root
        parts = BrokerParts(
            network.net,
            self.seed,
            self.service,
            None if is_root else network.root.address,
            network.seats if is_root else None,
            self.anonymity,
            self.clients,
            env,
            transport,
            self.store,
            self.counters[-1],
            network.tracer,
            self.tomography,
            network.keepers if is_root else frozenset(),
            keeping=network.root_keeps if is_root else NOTHING,
        )
        self.daemon = Broker(parts)
        # As Tor's consensus vouches for the time; there is no roster that would.
        self.daemon.clock.witness((env.now() - 3600, env.now() + 3600))
        await self.daemon.run(task_status=task_status)


class Client:
    """A client of one edge broker, which listens while it is attached."""

    def __init__(self, network: SmallTree, edge: Member, seed: Seed | None = None) -> None:
        self.network = network
        self.edge = edge
        self.seed = seed or Seed.draw(network.env.randomness)
        self.heard: list[Message] = []
        self.exposed: list[ExposureReport] = []
        self.trees: list[NewTree] = []
        self.standing: ParentHello | None = None
        self.acknowledges = True
        self.is_attached = False
        self.talk: Talk
        self._done: dict[int, RequestAnswer] = {}
        self._serial = 0
        self._received = 0
        self._scope = trio.CancelScope()

    @property
    def key(self) -> bytes:
        return self.seed.public()

    async def attach(self, view: RosterView | None = None) -> None:
        """Connect, and hear how it stands."""
        self.talk = await self.network.connect(
            self.edge, self.seed, self.network.view if view is None else view
        )
        self._scope = trio.CancelScope()
        self._done, self._serial, self._received = {}, 0, 0
        self.standing = None
        self.is_attached = True
        self.network.nursery.start_soon(self._listen)
        await until(lambda: self.standing is not None or not self.is_attached, 60.0, "it stands somehow")

    async def join(self, stamp: Any = None) -> str:
        return await self.ask(lambda serial: Join(serial, stamp))

    async def subscribe(
        self, where: str = "", name: bytes = bytes(16), key: TopicKey = KEY, terms: AnonymityTerms = OPEN
    ) -> str:
        filter_ = shown(key, filter_of(where))
        return await self.ask(lambda serial: Subscribe(serial, name, filter_, terms))

    async def unsubscribe(self, name: bytes = bytes(16)) -> str:
        return await self.ask(lambda serial: Unsubscribe(serial, name))

    async def ask(self, make: Callable[[int], Any], within: float = 120.0) -> Any:
        """Send a request and return the verdict; none if the link ends first."""
        serial = await self.say(make)
        await until(lambda: serial in self._done or not self.is_attached, within, "there is an answer")
        return self._done[serial].verdict if serial in self._done else None

    async def say(self, make: Callable[[int], Any]) -> int:
        self._serial += 1
        serial = self._serial
        await self.talk.say(make(serial))
        return serial

    def verdict(self, serial: int) -> Any:
        return self._done[serial].verdict if serial in self._done else None

    async def leave(self) -> None:
        self._scope.cancel()
        await self.talk.close()
        self.is_attached = False

    def ids(self) -> list[bytes]:
        return [message.id for message in self.heard]

    async def _listen(self) -> None:
        with self._scope, suppress(TransportError):
            while (frame := await self.talk.hear(within=1e9)) is not None:
                if isinstance(frame, ParentHello):
                    self.standing = frame
                elif isinstance(frame, RequestAnswer):
                    self._done[frame.serial] = frame
                elif isinstance(frame, ExposureReport):
                    self.exposed.append(frame)
                elif isinstance(frame, NewTree):
                    self.trees.append(frame)
                elif isinstance(frame, Forward):
                    self.heard.append(frame.message)
                    self._received += 1
                    if self.acknowledges:
                        await self.talk.say(Ack(self._received))
        self.is_attached = False


class SmallTree:
    """The brokers, and what tests ask of them."""

    keepers: frozenset[bytes] = frozenset()
    """The communities that the root lists."""

    def __init__(
        self, nursery: trio.Nursery, seed: int, tracer: Tracer | None, profile: str = "clear"
    ) -> None:
        self.nursery = nursery
        self.seed = seed
        self.tracer = tracer or NoTracer()
        self.env = self.environment("network")
        self.wires: Wires = MemoryNetwork(lambda: self.env.uniform(SHORTEST_WAY, LONGEST_WAY), call_at())
        self.members: list[Member] = []
        self.root = self.add("root", "root", None)
        self.net = BrokersNetwork("small", profile, EPOCH_SECONDS, self.root.key)
        self.calendar = self.net.calendar
        self.root_keeps = KeepingSection() if read_privacy(profile).can_keep else NOTHING
        self.count_of_messages = 0

    def add(self, name: str, role: BrokerRole, parent: Member | None) -> Member:
        """Make another broker, which the tree has with the next `list_all`, or when the root starts."""
        member = Member(self, name, role, parent)
        self.members.append(member)
        return member

    def __getitem__(self, name: str) -> Member:
        return next(member for member in self.members if member.name == name)

    @property
    def seats(self) -> tuple[BrokerPosition, ...]:
        return tuple(member.seat for member in self.members if member.parent is not None)

    @property
    def view(self) -> RosterView:
        """The tree that the root holds: who says it is not told it again."""
        tree = self.root.daemon.tree
        return RosterView(tree.version, tree.digest) if tree is not None else NO_TREE

    @property
    def edges(self) -> list[Member]:
        return [member for member in self.members if member.role == "edge"]

    def environment(self, name: str) -> Environment:
        return replace(simulated_environment(f"{self.seed} {name}", BEGIN))

    @property
    def now(self) -> float:
        return self.env.now()

    @property
    def today(self) -> int:
        return self.calendar.day(self.now)

    async def up(self) -> None:
        for member in self.members:
            await member.start()
        await self.linked()

    async def list_all(self) -> None:
        """Have the root list whoever is a member now."""
        await self.root.daemon.replace_seats(self.seats)

    async def linked(self, within: float = 240.0) -> None:
        """Wait until every broker that is up has the newest tree and its link."""
        up = [member for member in self.members if member.is_up and member is not self.root]

        def are_linked() -> bool:
            newest = self.root.daemon.tree
            return all(
                member.daemon.parent_state == "open"
                and member.daemon.tree is not None
                and member.daemon.tree.version == newest.version
                and member.parent is not None
                and member.key in member.parent.daemon.connected()
                for member in up
            )

        await until(are_linked, within, "all are linked")

    def count(self, name: str) -> int:
        return sum(member.count(name) for member in self.members)

    async def connect(
        self,
        to: Member,
        us: Seed | None = None,
        view: RosterView | None = None,
        decode: Any = decode_from_above,
    ) -> Talk:
        """Connect to a broker, under a name or none."""
        link = Link.initiate(self.net.id, to.key, self.env.randomness, MAX_BROKER_FRAME, us, view)
        transport = self.wires.transport()
        channel, _ = await open_channel(transport, to.address, self.env.isolation(), link, decode)
        return Talk(channel)

    async def client(self, edge: Member | str, *wheres: str, key: TopicKey = KEY) -> Client:
        """Attach somebody new who subscribes to this; `""` is all of the topic."""
        client = Client(self, self[edge] if isinstance(edge, str) else edge)
        await client.attach()
        assert await client.join() == "accepted"
        for number, where in enumerate(wheres):
            assert await client.subscribe(where, number.to_bytes(16, "big"), key) == "accepted"
        return client

    def message(self, day: int | None = None, size: int = 0, key: TopicKey = KEY, **values: Any) -> Message:
        """Make a message; its body is what nobody opens here."""
        self.count_of_messages += 1
        body = self.count_of_messages.to_bytes(4, "big").ljust(HEADER + PADDED_SIZES[size] + SEAL, b".")
        day = self.today if day is None else day
        tokens = words(key, TOPIC, values)
        return Message(message_id(day, body), day, tokens, bytes(TRAIL_SIZE), body)

    async def publish(self, message: Message, stamp: Any = None) -> Any:
        """Hand a message to the root; return the verdict, none where there is no answer."""
        try:
            talk = await self.connect(self.root)
            receipt = await talk.ask(Publish(message, stamp))
            await talk.close()
        except TransportError:
            return None
        assert receipt is None or isinstance(receipt, Receipt), receipt
        return receipt.verdict if receipt is not None else None

    async def published(self, **values: Any) -> Message:
        """Publish something new until there is a receipt."""
        message = self.message(**values)
        for _ in range(120):
            if await self.publish(message) == "accepted":
                return message
            await trio.sleep(1.0)
        raise AssertionError("nobody took a publication")


def filter_of(where: str) -> Filter:
    return Filter.of(Interest(TOPIC, parse_where(where, TOPIC.attributes)))


def hears(client: Client, *messages: Message) -> Callable[[], bool]:
    """Return a condition: all messages were heard."""
    return lambda: {message.id for message in messages} <= set(client.ids())


async def nothing_waits(network: SmallTree, within: float = 300.0) -> None:
    up = [member for member in network.members if member.is_up]
    await until(lambda: all(not member.status("messages_waiting") for member in up), within, "nothing waits")


def shape(network: SmallTree, rows: Iterable[tuple[str, BrokerRole, str]]) -> None:
    """Add brokers: name, role, parent's name."""
    for name, role, parent in rows:
        network.add(name, role, network[parent])


SIX: tuple[tuple[str, BrokerRole, str], ...] = (
    ("inner 1", "inner", "root"),
    ("inner 2", "inner", "root"),
    ("edge 1", "edge", "inner 1"),
    ("edge 2", "edge", "inner 1"),
    ("edge 3", "edge", "inner 2"),
)


@asynccontextmanager
async def small_tree(
    rows: Iterable[tuple[str, BrokerRole, str]] = SIX,
    seed: int = 1,
    tracer: Tracer | None = None,
    profile: str = "clear",
) -> AsyncIterator[SmallTree]:
    """A tree that is up; at the end no member may have met an error of its own program."""
    async with trio.open_nursery() as nursery:
        network = SmallTree(nursery, seed, tracer, profile)
        shape(network, rows)
        await network.up()
        yield network
        assert network.count("internal_errors") == 0
        nursery.cancel_scope.cancel()


_ = Pong
