"""The carriers under test, each with a network of its own around it."""

from __future__ import annotations

import functools
from collections.abc import AsyncIterator, Collection, Mapping
from contextlib import asynccontextmanager
from typing import Any, NamedTuple, Protocol

import trio
from broker_daemons import Node as BrokersNode
from broker_daemons import TreeOfDaemons
from community_tree import CommunityTree
from daemons import CentralNetworkOfDaemons
from daemons import Node as CentralNode
from fake_carrier import FakeCarrier, FakeNetwork
from hosted_network import in_use
from kept_network import kept_network
from msgspec.msgpack import decode
from readers import Reader
from small_network import BEGIN, EPOCH_SECONDS, ONE, Node, SmallNetwork, derive, unrouted
from small_tree import shape

from hushcast_brokers.client.model_choice import tokens_for
from hushcast_local.token_scheme import TokenScheme
from hushcast_node.daemon import NodeDaemon, NodeParts
from hushcast_protocol.base.crypto.secrets import TopicKey
from hushcast_protocol.base.epochs import Calendar
from hushcast_protocol.base.keeping_rule import MAX_DAYS_KEPT
from hushcast_protocol.central.pseudonym_register import PseudonymRecord
from hushcast_protocol.content.bodies import Content, compose
from hushcast_protocol.content.messages import Message
from hushcast_protocol.content.topics import Topic
from hushcast_protocol.overlay.hops import box_hop
from hushcast_protocol.overlay.profile import Root
from hushcast_runtime import environment
from hushcast_runtime.carriers.carrier import Carrier, Route, RoutedInterest
from hushcast_runtime.carriers.daily_tokens import DailyTokens
from hushcast_runtime.environment import Environment, simulated_environment
from hushcast_runtime.storage.store import MemoryStore
from hushcast_runtime.transports.base import Transport
from hushcast_runtime.transports.tcp import TcpTransport

CLOSED = "nobody takes messages: try again later"


class Held(NamedTuple):
    """What a network, and its members for it, hold on disk."""

    routes: int
    """Records of routes; none where there is no route."""
    messages: int
    """Records of messages that wait for somebody."""


class Member(Protocol):
    """One daemon of a network, that the suite stands on in place of applications."""

    @property
    def carrier(self) -> Carrier:
        """That of the life that runs."""

    @property
    def routes(self) -> Mapping[bytes, Route]:
        """What its life has resumed."""

    async def start(self, wanted: Collection[RoutedInterest] = ()) -> None:
        """Begin a life that resumes what is `wanted`; its disk is that of before."""

    async def stop(self) -> None:
        """End its life at once, as a crash does."""


class World:
    """A network that is up, under virtual time, with two members."""

    here: Member
    there: Member
    scheme: TokenScheme = DailyTokens()
    """Of the tokens that messages and readers have."""
    days_kept = 0
    """Days beyond its own that a message waits."""

    def __init__(self, env: Environment, calendar: Calendar, name: bytes) -> None:
        """`name` is the network's id, which is in all keys."""
        self.env = env
        self.calendar = calendar
        self.readers: list[Reader] = []
        self._name = name

    @property
    def today(self) -> int:
        return self.calendar.day(self.env.now())

    def key(self, topic: Topic, day: int) -> TopicKey:
        """Return the key of a topic for a day, as a daemon has it from another thread."""
        return environment.run_here(derive, topic, self._name, day)

    def reader(self, topic: Topic = ONE, where: str = "") -> Reader:
        """Make somebody who wants messages."""
        reader = Reader(self.key, topic, self.env, where, self.scheme)
        self.readers.append(reader)
        return reader

    def seal(self, content: Content, topic: Topic = ONE, day: int | None = None) -> Message:
        """Seal a message as a publisher does."""
        day = self.today if day is None else day
        scheme, randomness = self.scheme, self.env.randomness
        tokens = scheme.published(self.key(topic, scheme.key_day(day)), topic, content.values, randomness)
        return compose(self.key(topic, day), day, tokens, content, randomness)

    async def stranger(self) -> Member:
        """Return a new member, started, that nobody answers."""
        raise NotImplementedError

    async def go_dark(self) -> None:
        """Let nobody of the network answer any member."""
        raise NotImplementedError

    async def come_back(self) -> None:
        """Let them answer again."""
        raise NotImplementedError

    async def held(self) -> Held:
        """Count what is held."""
        raise NotImplementedError

    async def lose_what_waits(self) -> None:
        """Lose what waits for `here`, which is away, and what knows it best: it is not told."""
        raise NotImplementedError


class FakeWorld(World):
    """The fake carrier."""

    def __init__(self, nursery: trio.Nursery) -> None:
        env = simulated_environment("fake world", BEGIN)
        super().__init__(env, Calendar(EPOCH_SECONDS), bytes(32))
        self.network = FakeNetwork(self.calendar, self.env.now)
        self._nursery = nursery
        self.here, self.there = FakeMember(self, nursery), FakeMember(self, nursery)

    async def stranger(self) -> Member:
        alone = FakeWorld(self._nursery)
        await alone.go_dark()
        await alone.here.start()
        return alone.here

    async def go_dark(self) -> None:
        self.network.closed = CLOSED

    async def come_back(self) -> None:
        self.network.closed = None

    async def held(self) -> Held:
        kept = self.network.sweep()
        return Held(len(kept), sum(len(one.waiting) for one in kept))

    async def lose_what_waits(self) -> None:
        self.network.lose_what_waits()
        await trio.lowlevel.checkpoint()


class FakeMember:
    """A member with a fake carrier."""

    def __init__(self, world: FakeWorld, nursery: trio.Nursery) -> None:
        self.routes: Mapping[bytes, Route] = {}
        self._world = world
        self._nursery = nursery
        self._disk = world.network.join()
        self._scope = trio.CancelScope()
        self._ended = trio.Event()

    async def start(self, wanted: Collection[RoutedInterest] = ()) -> None:
        await self._nursery.start(self._live, wanted)

    async def stop(self) -> None:
        self._scope.cancel()
        await self._ended.wait()

    async def _live(self, wanted: Collection[RoutedInterest], task_status: trio.TaskStatus[None]) -> None:
        world = self._world
        self._scope, self._ended = trio.CancelScope(), trio.Event()
        with self._scope:
            async with trio.open_nursery() as nursery:
                self.carrier = FakeCarrier(world.network, self._disk, world.env, nursery.start_soon)
                self.routes = await self.carrier.resume(wanted)
                task_status.started()
                await trio.sleep_forever()
        self._ended.set()


class Loopback:
    """Joins daemons by real sockets."""

    def transport(self) -> Transport:
        return TcpTransport()


class DaemonWorld(World):
    """A network of real daemons, some of which serve the others."""

    def servants(self) -> Collection[Any]:
        """What can be stopped and started, and serves both members."""
        raise NotImplementedError

    async def go_dark(self) -> None:
        for servant in self.servants():
            await servant.stop()

    async def come_back(self) -> None:
        for servant in self.servants():
            await servant.start()


class Bare:
    """A daemon whose applications are the suite; beside what makes it one of its network."""

    @property
    def carrier(self) -> Carrier:
        return self._applications.carrier

    @property
    def routes(self) -> Mapping[bytes, Route]:
        return self._applications.routes

    async def start(self, wanted: Collection[RoutedInterest] = ()) -> None:
        self._applications = _Applications(wanted)
        await super().start()  # type: ignore[misc]


class OverlayWorld(DaemonWorld):
    """The overlay: relays and clients, all of them real daemons."""

    def __init__(self, network: SmallNetwork) -> None:
        super().__init__(network.environment("suite"), network.calendar, network.net.id)
        self.network = network
        self.days_kept = 1
        self.here, self.there = OverlayMember(network, "here"), OverlayMember(network, "there")

    async def stranger(self) -> Member:
        member = OverlayMember(self.network, "stranger")
        await self.network.directory.stop()
        self.network.waits = False
        await member.start()
        return member

    def servants(self) -> Collection[Any]:
        return self.network.relays

    def closed(self) -> list[tuple[Any, bytes]]:
        """The boxes that relays were told are done with."""
        return [
            (relay, box)
            for relay in self.network.relays
            if relay.is_up and relay.daemon.overlay.relay is not None
            for box, kept in relay.daemon.overlay.relay.boxes._kept.items()
            if kept.is_closed
        ]

    async def held(self) -> Held:
        network = self.network

        async def count(nodes: Collection[Node], *kinds: str) -> int:
            return sum([len(await node.store.scan(kind)) for node in nodes for kind in kinds])

        kinds = "owned-box", "installation"
        # What leads to a box that is done with stays until its day lapses, so that relays see no difference.
        closed = [
            len(one.daemon.overlay.relay.leases.book.held_for(box_hop(box))) for one, box in self.closed()
        ]
        routes = await count(network.relays, "lease") - sum(closed) + await count(network.nodes, *kinds)
        waiting = sum([await unrouted(relay) for relay in network.relays])
        return Held(routes, waiting + await count(network.relays, "spool"))

    async def lose_what_waits(self) -> None:
        """The host of here's box loses its disk."""
        host = in_use(self.network, self.here)  # type: ignore[arg-type]
        await lose_disk(host)


class OverlayMember(Bare, Node):
    """A client whose applications are the suite."""

    def __init__(self, network: SmallNetwork, name: str) -> None:
        super().__init__(network, name, is_relay=False)
        network.nodes.append(self)
        self._applications = _Applications()

    def made(self, parts: NodeParts) -> NodeDaemon:
        return _BareDaemon(parts, self.counters[-1], self._applications)


class CentralWorld(DaemonWorld):
    """The central system: a server, two proxies, and clients, all of them real daemons."""

    def __init__(self, network: CentralNetworkOfDaemons) -> None:
        super().__init__(network.environment("suite"), network.calendar, network.net.id)
        self.network = network
        self.here, self.there = CentralMember(network, "here"), CentralMember(network, "there")

    async def stranger(self) -> Member:
        await self.go_dark()
        self.network.waits = False
        member = CentralMember(self.network, "stranger")
        await member.start()
        return member

    def servants(self) -> Collection[Any]:
        return self.network.members

    async def held(self) -> Held:
        network, server = self.network, self.network.server.store
        known = [decode(value, type=PseudonymRecord) for _, value in await server.scan("pseudonym")]
        # That a pseudonym is over is known until its day lapses, so that nobody brings it back.
        routes = sum(not kept.is_over for kept in known)
        routes += sum([len(await node.store.scan("pseudonym")) for node in network.nodes])
        return Held(routes, len(await server.scan("spool")))

    async def lose_what_waits(self) -> None:
        """The proxy loses its disk, and the server what waits."""
        network = self.network
        await network.server.stop()
        network.server.store._records["spool"].clear()
        await lose_disk(network.deliveries)
        await network.server.start()
        await network.linked()


class CentralMember(Bare, CentralNode):
    """A client whose applications are the suite."""

    def __init__(self, network: CentralNetworkOfDaemons, name: str) -> None:
        super().__init__(network, name)
        network.nodes.append(self)
        self._applications = _Applications()

    def wired(self, parts: NodeParts) -> NodeDaemon:
        return _BareDaemon(parts, self.counters[-1], self._applications)


class BrokersWorld(DaemonWorld):
    """A tree of brokers: the root, one between, two edge brokers; and clients, all of them real daemons."""

    def __init__(self, network: TreeOfDaemons) -> None:
        self.scheme = tokens_for(network.net)
        super().__init__(network.environment("suite"), network.calendar, network.net.id)
        self.network = network
        self.here, self.there = BrokersMember(network, "here"), BrokersMember(network, "there")

    async def stranger(self) -> Member:
        await self.go_dark()
        self.network.waits = False
        member = BrokersMember(self.network, "stranger")
        await member.start()
        return member

    def servants(self) -> Collection[Any]:
        return self.network.members

    async def held(self) -> Held:
        network = self.network

        async def count(of: Collection[Any], *kinds: str) -> int:
            return sum([len(await one.store.scan(kind)) for one in of for kind in kinds])

        routes = await count(network.members, "route", "client", "subscription") + await count(
            network.nodes, "asked"
        )
        return Held(routes, await count(network.members, "spool"))

    async def lose_what_waits(self) -> None:
        """All edge brokers lose their disks."""
        for edge in self.network.edges:
            await lose_disk(edge)


class BrokersMember(Bare, BrokersNode):
    """A client whose applications are the suite."""

    def __init__(self, network: TreeOfDaemons, name: str) -> None:
        super().__init__(network, name)
        network.nodes.append(self)
        self._applications = _Applications()

    def wired(self, parts: NodeParts) -> NodeDaemon:
        return _BareDaemon(parts, self.counters[-1], self._applications)


class _Applications:
    """Stands where a daemon has its `Service`: resumes routes and does nothing of its own."""

    carrier: Carrier
    routes: Mapping[bytes, Route]

    def __init__(self, wanted: Collection[RoutedInterest] = ()) -> None:
        self._wanted = wanted

    async def load(self) -> None:
        self.routes = await self.carrier.resume(self._wanted)

    def status(self) -> dict[str, Any]:
        return {"subscriptions": len(self.routes), "outbox": 0}


class _BareDaemon(NodeDaemon):
    def __init__(self, parts: NodeParts, counters: Any, applications: _Applications) -> None:
        super().__init__(parts, counters)
        self._applications = applications

    def _local(self, carrier: Any, context: Any) -> Any:
        self._applications.carrier = carrier
        return self._applications


async def lose_disk(servant: Any) -> None:
    """Stop a daemon, and start it with an empty disk."""
    await servant.stop()
    servant.store = MemoryStore()
    await servant.start()


@asynccontextmanager
async def fake(days_kept: int = 0) -> AsyncIterator[World]:
    """The fake carrier at its best; what it takes it keeps for so many days."""
    async with trio.open_nursery() as nursery:
        world = FakeWorld(nursery)
        world.network.days_kept = days_kept
        await world.here.start()
        await world.there.start()
        yield world
        nursery.cancel_scope.cancel()


@asynccontextmanager
async def poor_fake(days_kept: int = 0) -> AsyncIterator[World]:
    """The fake carrier with all that a carrier may do: it is slow, repeats everything and loses receipts."""
    async with fake(days_kept) as world:
        assert isinstance(world, FakeWorld)
        world.network.delay, world.network.repeats, world.network.lost_receipts = 1.0, True, 10
        yield world


@asynccontextmanager
async def overlay(over_tcp: bool) -> AsyncIterator[World]:
    """The overlay over `memory`, or over real sockets."""
    async with trio.open_nursery() as nursery:
        network = SmallNetwork(nursery, relays=5, clients=0, seed=1)
        if over_tcp:
            network.wires = Loopback()
        world = OverlayWorld(network)
        await network.up()
        yield world
        # A batch that a reader's disk did not take counts as one.
        assert network.count("internal_errors") == sum(reader.failed for reader in world.readers)
        nursery.cancel_scope.cancel()


@asynccontextmanager
async def overlay_with_keepers() -> AsyncIterator[World]:
    """The overlay over `memory`, whose relays keep what is published, on its second day."""
    # Early on its first day: as drawn from there, what a host loses with its disk is with a keeper.
    async with kept_network(4, clients=0, root=Root.HOST, later=0) as network:
        world = OverlayWorld(network)
        await world.here.start()
        await world.there.start()
        yield world


@asynccontextmanager
async def central(profile: str, over_tcp: bool = False) -> AsyncIterator[World]:
    """The central system over `memory`, or over real sockets."""
    async with trio.open_nursery() as nursery:
        network = CentralNetworkOfDaemons(nursery, profile, 1, probes_an_epoch=0.0)
        if over_tcp:
            network.wires = Loopback()
        await network.up()
        world = CentralWorld(network)
        await world.here.start()
        await world.there.start()
        yield world
        # A batch that a reader's disk did not take counts as one.
        assert network.count("internal_errors") == sum(reader.failed for reader in world.readers)
        nursery.cancel_scope.cancel()


BROKERS: tuple[tuple[str, Any, str], ...] = (
    ("inner", "inner", "root"),
    ("edge 1", "edge", "inner"),
    ("edge 2", "edge", "inner"),
)


@asynccontextmanager
async def brokers(profile: str = "clear", over_tcp: bool = False) -> AsyncIterator[World]:
    """A tree of brokers over `memory`, or over real sockets."""
    async with trio.open_nursery() as nursery:
        network = TreeOfDaemons(nursery, 1, profile=profile)
        if over_tcp:
            network.wires = Loopback()
        shape(network, BROKERS)
        await network.up()
        world = BrokersWorld(network)
        await world.here.start()
        await world.there.start()
        yield world
        # A batch that a reader's disk did not take counts as one.
        errors = network.count("internal_errors") + network.count_at_nodes("internal_errors")
        assert errors == sum(reader.failed for reader in world.readers)
        nursery.cancel_scope.cancel()


@asynccontextmanager
async def brokers_in_a_community() -> AsyncIterator[World]:
    """A tree of brokers whose root and edge brokers are in a community, and the one between is not."""
    async with trio.open_nursery() as nursery:
        network = CommunityTree(nursery, 1)
        [keeper] = network.keeping
        shape(network, BROKERS)
        await network.up()
        world = BrokersWorld(network)
        await keeper.admit(network.root, *network.edges, world.here, world.there)
        for member in (world.here, world.there):
            member.community = keeper.key
            await member.start()
        await network.heard(keeper)
        yield world
        # A batch that a reader's disk did not take counts as one.
        errors = network.count("internal_errors") + network.count_at_nodes("internal_errors")
        assert errors == sum(reader.failed for reader in world.readers)
        nursery.cancel_scope.cancel()


keeping_fake = functools.partial(fake, MAX_DAYS_KEPT)
keeping_poor_fake = functools.partial(poor_fake, MAX_DAYS_KEPT)
overlay_over_memory = functools.partial(overlay, over_tcp=False)
overlay_over_tcp = functools.partial(overlay, over_tcp=True)
central_over_memory = functools.partial(central, "hardened")
central_over_tcp = functools.partial(central, "hardened", over_tcp=True)
central_as_published = functools.partial(central, "paper")
brokers_over_memory = functools.partial(brokers)
brokers_under_full = functools.partial(brokers, "full/3/apart")
brokers_as_published = functools.partial(brokers, "full/2/paper")
brokers_over_tcp = functools.partial(brokers, over_tcp=True)
