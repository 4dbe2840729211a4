"""A scene: directories of which some lie, and daemons that follow them and publish all the time."""

from __future__ import annotations

import functools
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from random import Random

import trio

from hushcast_directory.client.pinned_directories import PinnedDirectories
from hushcast_directory.server.authority_driver import AuthorityDriver
from hushcast_directory.server.configured_set import ConfiguredSet
from hushcast_directory.server.counters import DIRECTORY_COUNTERS
from hushcast_directory.server.directory_server import DirectoryServer
from hushcast_directory.server.roll import Roll
from hushcast_node.carrier_parts import OverlayParts
from hushcast_node.counters import COUNTERS
from hushcast_node.daemon import NodeDaemon, NodeParts
from hushcast_overlay.relay.identity import draw_identity
from hushcast_protocol.authorities.authority_set import Authorities, AuthorityContact
from hushcast_protocol.authorities.directory_requests import DirectoryRefusal, Fetch, HeadAnswer
from hushcast_protocol.authorities.listing import ListedRelay
from hushcast_protocol.authorities.machine import Authority
from hushcast_protocol.base.crypto.secrets import Seed
from hushcast_protocol.base.epochs import EPOCHS_A_DAY
from hushcast_protocol.base.roster import Network
from hushcast_protocol.base.shard_count import SHARD_SIZE
from hushcast_protocol.base.wire import PublicKey
from hushcast_protocol.content.tokens import topic_key
from hushcast_protocol.overlay.profile import HARDENED
from hushcast_protocol.shards.shard_requests import PartAnswer, PartRequest
from hushcast_runtime.counters import Counters
from hushcast_runtime.processes.own_address import open_address, until_published
from hushcast_runtime.storage.store import Store
from hushcast_testnet.authorities.adversary import PHANTOM
from hushcast_testnet.authorities.faulty_answers import FaultyAnswers
from hushcast_testnet.authorities.live_world import LiveWorld
from soak.directories.course import kinds
from soak.directories.place import Place

PROBES_AN_EPOCH = 1.0
DAY = 20_000  # of Unix time, on which scenes play
LOOK_EVERY = 0.1  # seconds

derive = functools.cache(topic_key)


@dataclass(frozen=True)
class Plan:
    """What is played."""

    epoch: int = 60
    """Seconds."""
    epochs: int = 24
    """A day's beacon is drawn in its thirteenth."""
    phase: int = 0
    """Which epoch of a day is the first that counts."""
    relays: int = 6
    clients: int = 4
    pause: float = 10.0
    """Seconds between two publications of one daemon."""
    before: float = 2.4
    """Epochs for everything to start in, before the first."""
    seed: int = 1
    directories: int = 5
    liars: int = 2
    shard_size: int = SHARD_SIZE
    """Relays of a shard in the mean."""
    topics: int = 2

    @property
    def quorum(self) -> int:
        """How many directories have to agree: more than half."""
        return self.directories // 2 + 1

    @property
    def network(self) -> Network:
        """The network of the scene."""
        return Network("authorities at work", "hardened", self.epoch)

    @property
    def first(self) -> int:
        """The first epoch that counts."""
        return DAY * EPOCHS_A_DAY + self.phase

    @property
    def begin(self) -> float:
        """Unix seconds at which everything starts."""
        return (self.first - self.before) * self.epoch


class Directory:
    """A real directory that is honest."""

    def __init__(self, server: DirectoryServer, roll: Roll, store: Store, counters: Counters) -> None:
        self.agreeing: AuthorityDriver = server.agreeing
        self.roll = roll
        self.store = store
        self.counters = counters


class Scene:
    """Everything that runs; `up` starts it."""

    def __init__(self, plan: Plan, place: Place, nursery: trio.Nursery) -> None:
        self.plan = plan
        self.place = place
        self.nursery = nursery
        self.env = place.environment("scene")
        self.network = plan.network
        self._random = Random(plan.seed)  # noqa: S311 - must replay
        seeds = [Seed.draw(self._random.randbytes) for _ in range(2 * plan.directories)]
        pairs = zip(seeds[::2], seeds[1::2], strict=True)
        self._services = {seed.public(): service for seed, service in pairs}
        members = (
            AuthorityContact(key, place.address(service.public())) for key, service in self._services.items()
        )
        self.authorities = Authorities.of(members, plan.quorum, shard_size=plan.shard_size)
        drawn = self._random.sample(seeds[::2], plan.liars)
        self.liars = sorted(drawn, key=Seed.public)
        self._honest = [seed for seed in seeds[::2] if seed not in drawn]
        self.directories: dict[PublicKey, Directory] = {}
        self.nodes: dict[str, NodeDaemon] = {}
        self.desk: FaultyAnswers | None = None

    def count(self, name: str) -> int:
        """Return what a counter says at all daemons."""
        return sum(node.counters[name] for node in self.nodes.values())

    async def up(self) -> None:
        """Start all; return when every daemon holds a roster, and every relay is registered."""
        async with trio.open_nursery() as starting:
            for seed in self._honest:
                starting.start_soon(self.nursery.start, self._directory, seed)
            if self.liars:
                starting.start_soon(self.nursery.start, self._lie)
        async with trio.open_nursery() as starting:
            for number in range(1, self.plan.relays + 1):
                starting.start_soon(self.nursery.start, self._node, f"relay-{number}", True)
            for number in range(1, self.plan.clients + 1):
                starting.start_soon(self.nursery.start, self._node, f"client-{number}", False)
        while not all(node.ready for node in self.nodes.values()):  # noqa: ASYNC110 - no event tells
            await trio.sleep(LOOK_EVERY)

    async def _directory(self, seed: Seed, task_status: trio.TaskStatus[None]) -> None:
        key = seed.public()
        name = f"directory-{key.hex()[:8]}"
        env, store = self.place.environment(name), self.place.store(name)
        transport = await self.place.transport(self.nursery)
        async with trio.open_nursery() as living:
            living.start_soon(store.run)
            roll = Roll(self.network, seed, store)
            await roll.load()
            listener = await open_address(self._services[key], transport, store)
            counters = Counters(DIRECTORY_COUNTERS)
            sitting = ConfiguredSet(self.authorities, None, self.plan.relays)
            server = DirectoryServer(env, transport, roll, sitting, counters)
            living.start_soon(server.run, listener)
            await until_published(listener)
            self.directories[key] = Directory(server, roll, store, counters)
            task_status.started()

    async def _node(self, name: str, is_relay: bool, task_status: trio.TaskStatus[None]) -> None:
        env = self.place.environment(name)
        identity = draw_identity(env.randomness) if is_relay else None
        pinned = PinnedDirectories(self.authorities.members, self.plan.quorum)
        parts = NodeParts(
            OverlayParts(self.network, HARDENED, pinned, identity),
            env,
            await self.place.transport(self.nursery),
            self.place.store(name),
            derive=derive,
            probes_an_epoch=PROBES_AN_EPOCH,
        )
        daemon = self.nodes[name] = NodeDaemon(parts, Counters(COUNTERS))
        await daemon.run(task_status=task_status)

    # Those who lie

    async def _lie(self, task_status: trio.TaskStatus[None]) -> None:
        transport = await self.place.transport(self.nursery)
        listeners = [await transport.listen(self._services[liar.public()]) for liar in self.liars]
        for listener in listeners:
            await until_published(listener)
        env = self.place.environment("liars")
        world = LiveWorld(self.network, self.authorities, self.liars, env, self._random, self._look)
        self.desk = FaultyAnswers(self.network, self._true, world.made_up, self._random)
        task_status.started()
        await world.serve(transport, listeners, kinds, self._reached, self.desk)

    def _look(self, key: PublicKey) -> Authority | None:
        directory = self.directories.get(key)
        return None if directory is None else directory.agreeing._machine

    def _true(self, asked: Fetch | PartRequest) -> HeadAnswer | DirectoryRefusal | PartAnswer:
        agreeing = self._victim().agreeing
        return agreeing.answer(asked) if isinstance(asked, Fetch) else agreeing.part(asked)

    def _victim(self) -> Directory:
        return next(iter(self.directories.values()))

    def _reached(self, epoch: int) -> tuple[ListedRelay, ...]:
        """List whom an honest one does, and a relay that nobody reached."""
        honest = self._victim().roll.ballot(epoch, self.env.now(), False) if self.directories else ()
        return (*honest, (PHANTOM, bytes(16), 0))


@asynccontextmanager
async def playing(plan: Plan, place: Place) -> AsyncIterator[Scene]:
    """A scene in which all are ready."""
    async with trio.open_nursery() as nursery:
        scene = Scene(plan, place, nursery)
        await scene.up()
        yield scene
        nursery.cancel_scope.cancel()
