"""Several directory daemons over `memory`, each with its disk, that can be killed; and relays that answer."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from random import Random

import trio
from directory_bench import BEGIN, CALENDAR, EPOCH, NETWORK, parcel_key, relay_seed

from hushcast_directory.client.directory_client import DirectoryClient
from hushcast_directory.client.trust import Trust
from hushcast_directory.server.archive import epoch_key
from hushcast_directory.server.authority_driver import AuthorityDriver
from hushcast_directory.server.configured_set import ConfiguredSet
from hushcast_directory.server.directory_server import DirectoryServer
from hushcast_directory.server.former_rosters import ROSTER
from hushcast_directory.server.kept_evidence import EVIDENCE, read_evidence
from hushcast_directory.server.roll import Roll
from hushcast_protocol.authorities.authority_set import Authorities, AuthorityContact
from hushcast_protocol.authorities.evidence import check_evidence
from hushcast_protocol.authorities.head_inside import inside_of
from hushcast_protocol.authorities.heads import Head, decode_head
from hushcast_protocol.authorities.listing import ListedRelay, Listing
from hushcast_protocol.authorities.machine import Authority
from hushcast_protocol.authorities.seat_admission import OPEN, SeatAdmission
from hushcast_protocol.base.addresses import Address, memory_address
from hushcast_protocol.base.crypto.secrets import Seed
from hushcast_protocol.base.crypto.signatures import Signed
from hushcast_protocol.base.errors import PeerError, Refusal
from hushcast_protocol.base.link.links import Link
from hushcast_protocol.base.roster import (
    GENESIS,
    Descriptor,
    RosterBody,
    RosterEntry,
    SignedRoster,
    check_roster,
    sign_descriptor,
    sign_roster,
)
from hushcast_protocol.base.shard_count import SHARD_SIZE
from hushcast_protocol.base.versions.wires import FIRST, WireRange
from hushcast_protocol.base.wire import encode
from hushcast_protocol.overlay.frames import MAX_OVERLAY_FRAME, decode_overlay
from hushcast_runtime.environment import Environment, simulated_environment
from hushcast_runtime.storage.changes import Change
from hushcast_runtime.storage.store import MemoryStore
from hushcast_runtime.transports.base import TransportError
from hushcast_runtime.transports.channel import accept_channel
from hushcast_runtime.transports.memory import MemoryNetwork
from hushcast_testnet.authorities.adversary import PHANTOM, AuthorityFault
from hushcast_testnet.authorities.live_world import LiveWorld
from hushcast_testnet.simulations.clock_calls import call_at

SEEDS = sorted((Seed(bytes([200 + number]) * 32) for number in range(9)), key=Seed.public)


def sets(
    count: int, quorum: int, admission: SeatAdmission = OPEN, shard_size: int = SHARD_SIZE
) -> Authorities:
    keys = [seed.public() for seed in SEEDS[:count]]
    members = tuple(AuthorityContact(key, memory_address(key)) for key in keys)
    return Authorities.of(members, quorum, admission, shard_size)


class Directory:
    """One authority, with its disk."""

    def __init__(self, bench: AuthorityBench, seed: Seed, sitting: ConfiguredSet) -> None:
        self.bench, self.seed, self.sitting = bench, seed, sitting
        self.home = seed  # its address stays when it takes another key
        self.store = MemoryStore()
        self.env = bench.env
        self.server: DirectoryServer | None = None
        self._scope, self._stopped = trio.CancelScope(), trio.Event()

    async def start(self) -> None:
        self._scope, self._stopped = trio.CancelScope(), trio.Event()
        await self.bench.nursery.start(self._live)

    async def kill(self) -> None:
        """End it at once, with whatever is on its disk."""
        self._scope.cancel()
        await self._stopped.wait()
        self.server = None

    async def _live(self, task_status: trio.TaskStatus[None]) -> None:
        bench = self.bench
        transport = bench.wires.transport()
        roll = Roll(NETWORK, self.seed, self.store)
        await roll.load()
        listener = await transport.listen(self.home)
        env = self.env
        self.server = DirectoryServer(env, transport, roll, self.sitting)
        try:
            with self._scope:
                task_status.started()
                await self.server.run(listener)
        finally:
            transport.vanish()
            self._stopped.set()

    @property
    def agreeing(self) -> AuthorityDriver:
        assert self.server is not None
        return self.server.agreeing

    @property
    def machine(self) -> Authority:
        machine = self.agreeing._machine
        assert machine is not None
        return machine

    @property
    def head(self) -> Head | None:
        """The newest head that it serves."""
        found, _ = self.agreeing._archive.after(None)
        return None if found is None else decode_head(found.certified.head)

    @property
    def listing(self) -> Listing:
        """The relays of that head."""
        head = self.head
        assert head is not None
        return self.machine._listings[inside_of(head).root]

    def client(self) -> DirectoryClient:
        key = self.seed.public()
        env, transport = self.bench.env, self.bench.wires.transport()
        address = memory_address(self.home.public())
        trust = Trust(NETWORK, key)
        return DirectoryClient(env, transport, NETWORK.id, address, trust, lambda: FIRST.lowest)


class AuthorityBench:
    """The authorities under test, and relays around them."""

    def __init__(self, nursery: trio.Nursery, sitting: ConfiguredSet, seed: int, faulty: int) -> None:
        self.nursery = nursery
        self.env = simulated_environment(seed, BEGIN)
        self.random = Random(seed)
        self.wires = MemoryNetwork(lambda: 0.1, call_at())
        self._joined: list[trio.CancelScope] = []
        self.speaks: dict[int, WireRange] = {}
        """Of relays by number; else the first wire."""
        keys = sitting.authorities.keys
        own = [one for one in SEEDS if one.public() in keys]
        self.liars = self.random.sample(own, faulty)
        self.directories = [Directory(self, one, sitting) for one in own if one not in self.liars]

    @property
    def now(self) -> float:
        return self.env.now()

    @property
    def epoch(self) -> int:
        return CALENDAR.epoch(self.now)

    async def until(self, epoch: float) -> None:
        """Sleep until a moment, in epochs."""
        await trio.sleep(max(0.0, epoch * EPOCH - self.now))

    async def relay(self, number: int) -> None:
        """Open a relay's address, and have it register at all authorities every epoch."""
        listener = await self.wires.transport().listen(relay_seed(number))

        async def answer(stream: trio.abc.Stream) -> None:
            seed, speaks = relay_seed(number), self.speaks.get(number, FIRST)
            link = Link.respond(NETWORK.id, seed, self.env.randomness, MAX_OVERLAY_FRAME, speaks=speaks)
            try:
                channel, _ = await accept_channel(stream, link, decode_overlay)
                await channel.finish()
            except (PeerError, TransportError):
                pass

        self.nursery.start_soon(listener.serve, answer)

    def descriptor(self, number: int) -> Signed:
        seed, now = relay_seed(number), int(self.now)
        address, key = memory_address(seed.public()), parcel_key(number).public()
        speaks = self.speaks.get(number, FIRST)
        body = Descriptor(NETWORK.id, seed.public(), address, key, now, now + 3 * EPOCH, 0, speaks)
        return sign_descriptor(seed, body)

    async def register(self, number: int, *at: Directory) -> None:
        """Hand in a fresh descriptor at some authorities, or all that are there."""
        signed = self.descriptor(number)
        for directory in at or self.directories:
            try:
                await directory.client().register(signed)
            except (TransportError, PeerError, Refusal):
                assert directory.server is None or at == ()

    async def keep_registering(self, number: int) -> None:
        while True:
            await self.register(number)
            await trio.sleep(EPOCH * self.random.uniform(0.6, 1.0))

    async def join(self, number: int) -> None:
        """Have one more relay, which registers until `leave`."""
        await self.relay(number)
        self.nursery.start_soon(self._register_until_gone, number)

    def leave(self) -> None:
        """Have those that joined register no more."""
        for scope in self._joined:
            scope.cancel()

    async def _register_until_gone(self, number: int) -> None:
        with trio.CancelScope() as scope:
            self._joined.append(scope)
            await self.keep_registering(number)

    def env_at(self, now: Callable[[], float]) -> Environment:
        """Return an environment with another clock."""
        return dataclasses.replace(self.env, now=now)

    @staticmethod
    def address(number: int) -> Address:
        return memory_address(relay_seed(number).public())

    def names_listed(self) -> set[bytes]:
        """Return who has a seat, which all that run agree on."""
        (listed,) = {
            frozenset(relay for relay, *_ in one.listing.seats) for one in self.directories if one.server
        }
        return set(listed)

    async def single_directory(self, directory: Directory) -> SignedRoster:
        """Have the disk of a directory that stands still hold a single one's roster; return it."""
        store = directory.store = MemoryStore()
        roll = Roll(NETWORK, directory.seed, store)
        entries = []
        for number in range(3):
            signed = self.descriptor(number)
            descriptor = roll.examine(signed, self.now)
            await roll.admit(descriptor, signed)
            entries.append((descriptor.relay, RosterEntry(signed, self.epoch)))
        body = RosterBody(NETWORK, self.epoch, GENESIS, tuple(entry for _, entry in sorted(entries)))
        signed = sign_roster(directory.seed, body)
        await store.write(Change(ROSTER, epoch_key(self.epoch), encode(signed)))
        return check_roster(signed, directory.seed.public(), NETWORK)

    async def grow(self, count: int, quorum: int) -> None:
        """Have all vote for a larger set, and start those of it that are not there yet."""
        now, following = sets(len(self.directories), len(self.directories) // 2 + 1), sets(count, quorum)
        for directory in self.directories:
            directory.sitting = ConfiguredSet(now, following, 1)
            directory.agreeing.sit(directory.sitting)
        for seed in SEEDS[len(self.directories) : count]:
            directory = Directory(self, seed, ConfiguredSet(now, following, 1))
            self.directories.append(directory)
            await directory.start()

    async def lie(self, kinds: list[tuple[AuthorityFault, ...]]) -> None:
        """Run the faulty ones, which list whom the first honest one does, and a relay that nobody reached."""
        authorities = self.directories[0].sitting.authorities

        def look(key: bytes) -> Authority | None:
            found = next(one for one in self.directories if one.seed.public() == key)
            return found.agreeing._machine if found.server is not None else None

        def reached(epoch: int) -> tuple[ListedRelay, ...]:
            roll = self.directories[0].agreeing._roll
            return (*roll.ballot(epoch, self.now, False), (PHANTOM, bytes(16), 0))

        liars = sorted(self.liars, key=Seed.public)
        world = LiveWorld(NETWORK, authorities, liars, self.env, self.random, look)
        transport = self.wires.transport()
        listeners = [await transport.listen(liar) for liar in liars]
        await world.serve(transport, listeners, lambda epoch: kinds[epoch % len(kinds)], reached)

    @staticmethod
    async def accused(directory: Directory) -> set[bytes]:
        """Return whom it keeps evidence against."""
        found = [read_evidence(value) for _, value in await directory.store.scan(EVIDENCE)]
        for evidence in found:
            check_evidence(evidence, NETWORK.id)
        return {evidence.accused for evidence in found}

    def heads(self, epoch: int) -> set[bytes]:
        """Return the heads of an epoch that authorities which run serve."""
        found = set()
        for directory in self.directories:
            if directory.server is not None and epoch in directory.agreeing._archive.epochs:
                shown, _ = directory.agreeing._archive.after(epoch - 1)
                assert shown is not None
                found.add(shown.certified.head)
        return found


@asynccontextmanager
async def authority_bench(
    count: int = 5,
    quorum: int = 3,
    relays: int = 3,
    seed: int = 0,
    faulty: int = 0,
    admission: SeatAdmission = OPEN,
    shard_size: int = SHARD_SIZE,
) -> AsyncIterator[AuthorityBench]:
    async with trio.open_nursery() as nursery:
        sitting = ConfiguredSet(sets(count, quorum, admission, shard_size), None, relays)
        made = AuthorityBench(nursery, sitting, seed, faulty)
        for directory in made.directories:
            await directory.start()
        for number in range(relays):
            await made.relay(number)
            nursery.start_soon(made.keep_registering, number)
        if faulty:
            kinds = list(itertools.combinations_with_replacement(AuthorityFault, faulty))
            nursery.start_soon(made.lie, made.random.sample(kinds, len(kinds)))
        yield made
        nursery.cancel_scope.cancel()
