"""A whole network of real daemons over `memory`, whose members can be stopped, restarted and held up."""

from __future__ import annotations

import functools
import math
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, Protocol, TypeVar

import trio
from gated_transport import Gate, ProcessTransport

from hushcast_directory.client.pinned_directories import PinnedDirectories, RosterChecks
from hushcast_directory.server.authority_driver import AuthorityDriver
from hushcast_directory.server.configured_set import SetOfOne
from hushcast_directory.server.directory_server import DirectoryServer
from hushcast_directory.server.roll import Roll
from hushcast_local.inbox_records import InboxMessage, ReportedGap
from hushcast_local.service import InboxFeed
from hushcast_node.carrier_parts import OverlayParts
from hushcast_node.counters import COUNTERS
from hushcast_node.daemon import NodeDaemon, NodeParts
from hushcast_overlay.relay.identity import draw_identity
from hushcast_overlay.routes.route import OverlayRoute
from hushcast_protocol.authorities.head_answers import roster_of
from hushcast_protocol.base.addresses import Address
from hushcast_protocol.base.crypto.secrets import Seed
from hushcast_protocol.base.epochs import EPOCHS_A_DAY
from hushcast_protocol.base.link.links import Link
from hushcast_protocol.base.roster import Network, RosterView, check_roster
from hushcast_protocol.content.bodies import Content, compose
from hushcast_protocol.content.hops import Hop
from hushcast_protocol.content.messages import Message
from hushcast_protocol.content.predicates import parse_where
from hushcast_protocol.content.tokens import published_tokens, topic_key
from hushcast_protocol.content.topics import Interest, Topic, parse_topic
from hushcast_protocol.overlay.frames import MAX_OVERLAY_FRAME, Drop, OverlayFrame, Receipt, decode_overlay
from hushcast_protocol.overlay.hops import host_hop, is_box
from hushcast_protocol.overlay.installations import HostRoot
from hushcast_protocol.overlay.profile import HARDENED, Root
from hushcast_protocol.overlay.ready_slots import NONE_READY, ReadyRule
from hushcast_protocol.overlay.tree_rule import TreeRule
from hushcast_runtime.counters import Counters
from hushcast_runtime.environment import LOOK_EVERY, Environment, simulated_environment
from hushcast_runtime.file_tracer import FileTracer
from hushcast_runtime.storage.store import MemoryStore, Store
from hushcast_runtime.tracing import NoTracer, Tracer
from hushcast_runtime.transports.base import Transport
from hushcast_runtime.transports.channel import Channel, open_channel
from hushcast_runtime.transports.memory import MemoryNetwork
from hushcast_testnet.simulations.clock_calls import call_at
from hushcast_testnet.simulations.told_relays import told_relays

EPOCH_SECONDS = 60
DAY_SECONDS = EPOCHS_A_DAY * EPOCH_SECONDS
BEGIN = 10_000.0 * DAY_SECONDS + 2.5 * EPOCH_SECONDS  # early on a day, in the middle of an epoch
SHORTEST_WAY, LONGEST_WAY = 0.05, 0.15  # virtual seconds that a stream takes one way
READY_WITHIN = 120.0  # virtual seconds, and so are all below
ARRIVES_WITHIN = 120.0
ONE = parse_topic("topic one")
TWO = parse_topic("topic two")

T = TypeVar("T")
derive = functools.cache(topic_key)
CHECKS_ONCE = RosterChecks(functools.cache(check_roster), functools.cache(roster_of))


async def until(condition: Callable[[], Any], within: float = ARRIVES_WITHIN, what: str = "") -> None:
    """Wait, on the virtual clock, until a condition holds: four looks a second, fewer if it may take days."""
    deadline = trio.current_time() + within
    pause = max(0.25, within / 2000)
    while trio.current_time() < deadline:
        if condition():
            return
        await trio.sleep(pause)
    raise AssertionError(f"after {within} virtual seconds it is still not so: {what or condition}")


async def unrouted(relay: Node) -> int:
    """Count the drops that a relay has on disk and has not routed; the others wait for late routes."""
    return len(await relay.store.scan("intake")) - len(await relay.store.scan("routed"))


async def counted(node: Node, name: str, count: int) -> bool:
    """Wait until a daemon counted something so often; return whether it was just so often."""
    await until(lambda: node.count(name) >= count, 5.0, f"{name} reaches {count}")
    return node.count(name) == count


class Process:
    """Something that lives in the network's nursery until it is stopped, and can be started again."""

    def __init__(self, network: SmallNetwork, name: str) -> None:
        self.network = network
        self.name = name
        self.gate = Gate()
        self.lives = 0
        self.env: Environment | None = None
        self._scope = trio.CancelScope()
        self._ended = trio.Event()
        self._ended.set()

    @property
    def is_up(self) -> bool:
        return not self._ended.is_set()

    async def start(self) -> None:
        assert not self.is_up
        self.lives += 1
        self._scope = trio.CancelScope()
        self._ended = trio.Event()
        await self.network.nursery.start(self._live)

    def set_clock(self, ahead: float) -> None:
        """Set the clock of its machine: so many seconds ahead of everybody's."""
        assert self.env is not None
        assert self.env.look_every < math.inf, "in a network whose `clocks_are_set`"
        object.__setattr__(self.env, "now", lambda: self.network.now + ahead)

    async def stop(self) -> None:
        self._scope.cancel()
        await self._ended.wait()

    async def restart(self) -> None:
        await self.stop()
        await self.start()

    async def _live(self, task_status: trio.TaskStatus[None]) -> None:
        transport = ProcessTransport(self.network.wires, self.gate)
        env = self.env = self.network.environment(f"{self.name} {self.lives}")
        try:
            with self._scope:
                await self._run(transport, env, task_status)
        finally:
            await transport.die()
            self._ended.set()

    async def _run(self, transport: Transport, env: Environment, task_status: trio.TaskStatus[None]) -> None:
        raise NotImplementedError


class Directory(Protocol):
    """What daemons have their rosters from."""

    async def start(self) -> None:
        """Begin."""

    def directories(self) -> PinnedDirectories:
        """Return what daemons pin."""


class DirectoryProcess(Process):
    """The directory; its store and keys outlive it."""

    def __init__(self, network: SmallNetwork, first_roster: int) -> None:
        super().__init__(network, "directory")
        self.seed = Seed.draw(network.environment("directory key").randomness)
        self.store = MemoryStore()
        self._first_roster = first_roster
        self._server: DirectoryServer | None = None
        self.address = Address("")

    @property
    def agreeing(self) -> AuthorityDriver:
        """What makes the heads of the life that runs."""
        assert self._server is not None
        return self._server.agreeing

    @property
    def roll(self) -> Roll:
        """The relays that it knows in the life that runs."""
        return self.agreeing._roll

    @property
    def epoch(self) -> int:
        """The epoch of its newest head."""
        assert self.agreeing.epoch is not None
        return self.agreeing.epoch

    def directories(self) -> PinnedDirectories:
        """What daemons pin."""
        return PinnedDirectories.alone(self.address, self.seed.public())

    async def _run(self, transport: Transport, env: Environment, task_status: trio.TaskStatus[None]) -> None:
        net = self.network.net
        roll, sitting = Roll(net, self.seed, self.store), SetOfOne(self._first_roster)
        await roll.load()
        listener = await transport.listen(self.seed)
        self.address = listener.address
        self._server = DirectoryServer(env, transport, roll, sitting)
        task_status.started()
        await self._server.run(listener)


class Node(Process):
    """A daemon; its store and identity outlive it."""

    def __init__(self, network: SmallNetwork, name: str, is_relay: bool, store: Store | None = None) -> None:
        super().__init__(network, name)
        self.identity = draw_identity(network.environment(f"{name} keys").randomness) if is_relay else None
        self.store = store or MemoryStore()
        self.counters: list[Counters] = []
        self.trees = TreeRule.AUTO
        self._daemon: NodeDaemon | None = None

    @property
    def daemon(self) -> NodeDaemon:
        assert self._daemon is not None
        return self._daemon

    @property
    def id(self) -> bytes:
        assert self.identity is not None
        return self.identity.seed.public()

    def count(self, name: str) -> int:
        """What a counter says over all lives."""
        return sum(counters[name] for counters in self.counters)

    async def start(self) -> None:
        self.counters.append(Counters(COUNTERS))
        network = self.network
        await super().start()
        if network.waits:
            await until(lambda: self.daemon.ready, READY_WITHIN, f"{self.name} is ready")

    async def _run(self, transport: Transport, env: Environment, task_status: trio.TaskStatus[None]) -> None:
        network = self.network
        parts = NodeParts(
            OverlayParts(
                network.net,
                network.profile,
                network.directory.directories(),
                self.identity,
                CHECKS_ONCE,
                ready=network.ready,
                trees=self.trees,
            ),
            env,
            transport,
            self.store,
            network.tracer(self, env),
            derive=derive,
            probes_an_epoch=network.probes_an_epoch,
        )
        self._daemon = self.made(parts)
        await self._daemon.run(task_status=task_status)

    def made(self, parts: NodeParts) -> NodeDaemon:
        """Return the daemon of the life that begins."""
        return NodeDaemon(parts, self.counters[-1])

    def route(self, topic: Any = ONE) -> OverlayRoute:
        return next(held for held in self.daemon.overlay.routes.held if held.wanted.interest.topic == topic)

    async def listen(self, topic: Any = ONE, where: str = "") -> Ear:
        """Subscribe, have all relays told that are there, and collect what comes."""
        interest = Interest(topic, parse_where(where, topic.attributes))
        return Ear(self.network, await self.subscribe(interest))

    async def subscribe(self, interest: Interest) -> InboxFeed:
        """Subscribe, and have all relays told that are there: `subscribed` waits for a top relay alone."""
        feed = await self.daemon.service.subscribe(interest)
        feed.nodes = await told_relays(self.daemon, interest)
        return feed


class Ear:
    """One application that listens: what it got, in order."""

    def __init__(self, network: SmallNetwork, feed: InboxFeed, shows: bool = True) -> None:
        self.feed = feed
        self.shows = shows
        self.heard: list[InboxMessage] = []
        self.numbers: list[int] = []
        self.gaps: list[bytes] = []
        self.ended = False
        self._scope = trio.CancelScope()
        network.nursery.start_soon(self._listen)

    async def _listen(self) -> None:
        with self._scope:
            while (arrival := await self.feed.next()) is not None:
                if isinstance(arrival, ReportedGap):
                    self.gaps.append(arrival.id)
                    continue
                number, received = arrival
                self.numbers.append(number)
                self.heard.append(received)
                if self.shows:
                    self.feed.shown(number)
            self.ended = True

    @property
    def payloads(self) -> list[bytes]:
        return [received.payload for received in self.heard]

    async def hears(self, count: int, within: float = ARRIVES_WITHIN) -> list[bytes]:
        """Wait for this many messages in all; return the payloads."""
        await until(lambda: len(self.heard) >= count, within, f"{count} heard, but {len(self.heard)}")
        return self.payloads

    def close(self) -> None:
        self._scope.cancel()
        self.feed.close()


class SmallNetwork:
    """The network, and what tests ask of it."""

    def __init__(
        self,
        nursery: trio.Nursery,
        relays: int,
        clients: int,
        seed: int,
        epoch: int = EPOCH_SECONDS,
        skews: Mapping[str, float] | None = None,
        probes_an_epoch: float | None = 0.0,
        directory: Callable[[SmallNetwork, int], Directory] | None = None,
        clocks_are_set: bool = False,
        ready: ReadyRule = NONE_READY,
        later: float = 0.0,
        **profile: Any,
    ) -> None:
        """`skews` are the seconds that a daemon's clock is ahead, by its name; `directory` makes another.

        The network begins so many epochs `later` than others do, which is early on a day.
        Where `clocks_are_set` meanwhile, daemons look at theirs as real ones do.
        """
        self.nursery = nursery
        self.seed = seed
        self.epoch = epoch
        self._begin = (BEGIN / EPOCH_SECONDS + later) * epoch
        self.skews = skews or {}
        self.look_every = LOOK_EVERY if clocks_are_set else math.inf
        self.probes_an_epoch = probes_an_epoch
        self.ready = ready
        self.profile = replace(HARDENED, **profile)
        self.net = Network("small", "hardened", epoch)
        self.calendar = self.net.calendar
        self.env = self.environment("network")
        self.wires = MemoryNetwork(lambda: self.env.uniform(SHORTEST_WAY, LONGEST_WAY), call_at())
        self.waits = False
        self.traces: Path | None = None
        self.tracers: list[FileTracer] = []
        self.directory = (directory or DirectoryProcess)(self, relays)
        self.nodes: list[Node] = []
        self.relays = [self.add(f"relay-{number}", True) for number in range(relays)]
        self.clients = [self.add(f"client-{number}", False) for number in range(clients)]

    def tracer(self, node: Node, env: Environment) -> Tracer:
        """Return what a daemon traces with."""
        if self.traces is None:
            return NoTracer()
        name = node.id.hex() if node.identity else node.name
        tracer = FileTracer(self.traces, node.name, name, self._begin, self.epoch, env)
        self.tracers.append(tracer)
        return tracer

    def environment(self, name: str) -> Environment:
        begin = self._begin + self.skews.get(name.split()[0], 0.0)
        return simulated_environment(f"{self.seed} {name}", begin, self.look_every)

    def add(self, name: str, is_relay: bool, store: Store | None = None) -> Node:
        """Make a daemon that is not started yet."""
        node = Node(self, name, is_relay, store)
        self.nodes.append(node)
        return node

    async def up(self) -> None:
        """Start everything; return when all are ready."""
        await self.directory.start()
        for node in self.nodes:
            await node.start()
        within = max(READY_WITHIN, 2 * self.epoch)  # directories that are several agree once an epoch
        await until(lambda: all(node.daemon.ready for node in self.nodes), within, "all are ready")
        self.waits = True

    @property
    def now(self) -> float:
        return self.env.now()

    async def sleep_until(self, moment: float) -> None:
        await trio.sleep(moment - self.now)

    @property
    def seats(self) -> int:
        """How many relays have a seat in a tree: a host has none in its own."""
        return len(self.relays) - (self.profile.root is Root.HOST)

    def relay(self, relay: bytes) -> Node:
        return next(node for node in self.relays if node.id == relay)

    def leases(self) -> dict[str, int]:
        """How many leases each relay that is up holds, those apart that lead to boxes of its own."""
        return {
            node.name: sum(not is_box(lease.hop) for lease in node.daemon.overlay.relay.leases.book.leases())
            for node in self.relays
            if node.is_up and node.daemon.overlay.relay is not None
        }

    def each_seat_holds(self, count: int) -> bool:
        """Tell whether each relay that is up holds so many leases, but for a host, which has no seat."""
        leases, hosts = sorted(self.leases().values()), len(self.relays) - self.seats
        return leases == [0] * hosts + [count] * (len(leases) - hosts)

    def root_hop(self, node: Node) -> Hop:
        """The next hop that top relays of a daemon's subscription have."""
        (planned,) = node.route().planned.values()
        root = planned.installation.root
        assert isinstance(root, HostRoot)
        return host_hop(root.relay)

    def count(self, name: str) -> int:
        """What a counter says at all daemons over all lives."""
        return sum(node.count(name) for node in self.nodes)

    async def knock(
        self,
        node: Node,
        us: Seed | None = None,
        view: RosterView | None = None,
        expected: bytes | None = None,
    ) -> Channel[OverlayFrame]:
        """Open a link to a relay as a stranger would, or under a name."""
        assert node.daemon.overlay.relay is not None
        address = self.directory_entry(node)
        link = Link.initiate(
            self.net.id, expected or node.id, self.env.randomness, MAX_OVERLAY_FRAME, us, view
        )
        transport = self.wires.transport()
        channel, _ = await open_channel(transport, address, "test", link, decode_overlay)
        return channel

    def composed(self, topic: Topic, content: Content) -> Message:
        """A message of today."""
        day = self.calendar.day(self.now)
        key = derive(topic, self.net.id, day)
        tokens = published_tokens(key, topic, content.values, self.env.randomness)
        return compose(key, day, tokens, content, self.env.randomness)

    async def drop_at(self, origin: Node, topic: Topic, content: Content) -> None:
        """Publish at an origin of our choice."""
        channel = await self.knock(origin)
        await channel.send(Drop(self.composed(topic, content), None))
        assert await channel.one(60) == Receipt("accepted")
        await channel.aclose()

    async def wire(self, node: Node) -> trio.abc.Stream:
        """Connect to a relay without any handshake."""
        return await self.wires.transport().connect(self.directory_entry(node), "test")

    def directory_entry(self, node: Node) -> Address:
        """Where the roster says a relay is."""
        roster = node.daemon.overlay.rosters.newest
        assert roster is not None
        return roster.relays[node.id].address


@asynccontextmanager
async def small_network(
    relays: int = 5, clients: int = 2, seed: int = 1, traces: Path | None = None, **others: Any
) -> AsyncIterator[SmallNetwork]:
    """A network that is up; at the end no daemon may have met an error of its own program.

    `others` are `epoch`, `skews`, and fields of the profile.
    """
    network = None
    try:
        async with trio.open_nursery() as nursery:
            network = SmallNetwork(nursery, relays, clients, seed, **others)
            network.traces = traces
            await network.up()
            yield network
            assert network.count("internal_errors") == 0
            nursery.cancel_scope.cancel()
    finally:
        for tracer in network.tracers if network else ():
            tracer.close()


network_with_clocks_set = functools.partial(small_network, clocks_are_set=True)
"""As `small_network`; tests set the clocks of its daemons."""
