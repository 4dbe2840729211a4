"""One directory over `memory` that can be stopped and restarted, and relays that do no more than answer."""

from __future__ import annotations

import math
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import cache
from typing import Any

import trio

from hushcast_directory.client.directory_client import DirectoryClient, ExpectedDirectory
from hushcast_directory.client.several_directories import SeveralDirectories
from hushcast_directory.client.single_directory import SingleDirectory
from hushcast_directory.client.trust import Trust
from hushcast_directory.client.trusted_authorities import TrustedAuthorities
from hushcast_directory.server.authority_driver import AuthorityDriver
from hushcast_directory.server.configured_set import SetOfOne
from hushcast_directory.server.directory_server import DirectoryServer
from hushcast_directory.server.roll import Roll
from hushcast_node.counters import COUNTERS
from hushcast_overlay.rosters import RosterKeeper
from hushcast_protocol.authorities.authority_set import AuthorityContact
from hushcast_protocol.authorities.directory_requests import Fetch, HeadAnswer
from hushcast_protocol.authorities.head_answers import roster_of
from hushcast_protocol.base.addresses import Address, memory_address
from hushcast_protocol.base.crypto.secrets import ParcelKey, Seed
from hushcast_protocol.base.crypto.signatures import Signed
from hushcast_protocol.base.errors import PeerError, Refusal
from hushcast_protocol.base.link.links import Link
from hushcast_protocol.base.roster import Descriptor, Network, Roster, sign_descriptor
from hushcast_protocol.overlay.frames import MAX_OVERLAY_FRAME, decode_overlay
from hushcast_runtime.context import Context
from hushcast_runtime.counters import Counters
from hushcast_runtime.environment import Environment, simulated_environment
from hushcast_runtime.storage.store import MemoryStore
from hushcast_runtime.tracing import NoTracer
from hushcast_runtime.transports.base import TransportError
from hushcast_runtime.transports.channel import accept_channel
from hushcast_runtime.transports.memory import MemoryNetwork
from hushcast_testnet.simulations.clock_calls import call_at

EPOCH = 60  # seconds
BEGIN = 10_000.0 * 24 * EPOCH + 30.0  # in the middle of an epoch
NETWORK = Network("directory tests", "hardened", EPOCH)
CALENDAR = NETWORK.calendar
DIRECTORY = Seed(b"directory key of 32 bytes length")


@cache
def relay_seed(number: int) -> Seed:
    return Seed(bytes([number]) * 32)


@cache
def parcel_key(number: int) -> ParcelKey:
    return ParcelKey(bytes([100 + number]) * 32)


async def followed(keeper: RosterKeeper) -> None:
    """Follow rosters, as a daemon does, until cancelled."""
    async with trio.open_nursery() as nursery:
        parts = keeper._env, keeper._store, keeper._counters
        context = Context(*parts, NoTracer(), nursery.start_soon)
        nursery.start_soon(keeper.run, context)
        await context.timetable.run()


class Bench:
    """The directory under test, and what surrounds it."""

    def __init__(self, nursery: trio.Nursery, first_roster: int) -> None:
        self.nursery = nursery
        self.env: Environment = simulated_environment("bench", BEGIN)
        self.wires = MemoryNetwork(lambda: 0.1, call_at())
        self.store = MemoryStore()
        self.roll = Roll(NETWORK, DIRECTORY, self.store)
        self._transport = self.wires.transport()
        self.server: DirectoryServer | None = None
        self._sitting = SetOfOne(first_roster)
        self._seed = DIRECTORY
        self._scope = trio.CancelScope()
        self._stopped = trio.Event()

    @property
    def now(self) -> float:
        return self.env.now()

    @property
    def epoch(self) -> int:
        return CALENDAR.epoch(self.now)

    # The directory

    @property
    def agreeing(self) -> AuthorityDriver:
        """What makes its heads, in the life that runs or ran last."""
        assert self.server is not None
        return self.server.agreeing

    async def publish(self, now: float) -> Roster:
        """Have it publish what is due at a moment, whatever its clock says; return that."""
        machine = self.agreeing.machine
        assert machine is not None
        epoch = machine.due_alone(now)
        assert epoch is not None
        async with self.agreeing._moves:
            listed = await self.agreeing._ballot(epoch, math.inf)
            await self.agreeing._do(machine, machine.alone(listed, None, now))
            return self.roster(epoch)

    def roster(self, epoch: int) -> Roster:
        """What it shows for an epoch, as daemons read it."""
        answer = self.agreeing.answer(Fetch(epoch - 1))
        assert isinstance(answer, HeadAnswer)
        roster = roster_of(answer, NETWORK)
        assert roster.epoch == epoch
        return roster

    def rosters(self) -> list[Roster]:
        """All that it shows."""
        return [self.roster(epoch) for epoch in self.agreeing._archive.epochs]

    @property
    def newest(self) -> Roster | None:
        """The newest that it shows."""
        return None if self.agreeing.epoch is None else self.roster(self.agreeing.epoch)

    async def start(self, seed: Seed | None = None) -> None:
        """Start it with what its store holds, and with another key if there is one."""
        self._seed = seed or self._seed
        await self.make()
        self._scope, self._stopped = trio.CancelScope(), trio.Event()
        await self.nursery.start(self._live)

    async def make(self) -> None:
        """Make it, to be moved by hand or started."""
        self.roll, self._transport = Roll(NETWORK, self._seed, self.store), self.wires.transport()
        await self.roll.load()
        self.server = DirectoryServer(self.env, self._transport, self.roll, self._sitting)

    async def stop(self) -> None:
        self._scope.cancel()
        await self._stopped.wait()

    async def _live(self, task_status: trio.TaskStatus[None]) -> None:
        assert self.server is not None
        listener = await self._transport.listen(DIRECTORY)
        try:
            with self._scope:
                task_status.started()
                await self.server.run(listener)
        finally:
            with trio.CancelScope(shield=True):
                await listener.aclose()
            self._stopped.set()

    def trust(self) -> Trust:
        return Trust(NETWORK, DIRECTORY.public())

    def client(self, known: ExpectedDirectory | None = None) -> DirectoryClient:
        transport = self.wires.transport()
        address = memory_address(DIRECTORY.public())
        return DirectoryClient(self.env, transport, NETWORK.id, address, known or self.trust())

    # Relays

    async def relay(self, number: int, answers_as: Seed | None = None) -> Address:
        """Open relay `number`'s address; whoever knocks there meets `answers_as`, or the relay itself."""
        listener = await self.wires.transport().listen(relay_seed(number))

        async def answer(stream: trio.abc.Stream) -> None:
            link = Link.respond(
                NETWORK.id, answers_as or relay_seed(number), self.env.randomness, MAX_OVERLAY_FRAME
            )
            try:
                channel, _ = await accept_channel(stream, link, decode_overlay)
                await channel.finish()
            except (PeerError, TransportError):
                pass

        self.nursery.start_soon(listener.serve, answer)
        return listener.address

    def descriptor(self, number: int, **changed: Any) -> Signed:
        """A descriptor of relay `number` as good as it can be, but for what is changed."""
        now = int(self.now)
        fields = {
            "network": NETWORK.id,
            "relay": relay_seed(number).public(),
            "address": memory_address(relay_seed(number).public()),
            "parcel_key": parcel_key(number).public(),
            "issued": now,
            "expires": now + 3 * EPOCH,
            "difficulty": 0,
        }
        return sign_descriptor(relay_seed(number), Descriptor(**(fields | changed)))

    async def register(self, *numbers: int) -> None:
        for number in numbers:
            await self.client().register(self.descriptor(number))

    async def keep_registered(self, number: int) -> None:
        """What a relay does: register every half epoch, whatever the directory answers."""
        while True:
            try:
                await self.register(number)
            except TransportError:
                await trio.sleep(2)
                continue
            except Refusal:
                pass
            await trio.sleep(EPOCH / 2)

    # Daemons

    def keeper(self, name: str = "keeper", store: MemoryStore | None = None) -> RosterKeeper:
        return self.keeper_by(self.trust(), name, store)

    def keeper_by(self, trust: Trust, name: str = "keeper", store: MemoryStore | None = None) -> RosterKeeper:
        env, store = simulated_environment(name, BEGIN), store or MemoryStore()
        counters, alone = Counters(COUNTERS), AuthorityContact(trust.key, memory_address(DIRECTORY.public()))
        following = TrustedAuthorities(NETWORK, [alone], 1)
        several = SeveralDirectories(env, store, NETWORK, following, lambda one: self.client(one), counters)
        source = SingleDirectory(env, store, trust, self.client(trust), several)
        return RosterKeeper(NETWORK, source, env, store, counters)

    async def sleep_until(self, moment: float) -> None:
        await trio.sleep(moment - self.now)

    async def sleep_until_epoch(self, epoch: int, before: float = 0.0) -> None:
        await self.sleep_until(CALENDAR.epoch_start(epoch) - before)


async def catch_up_with(keeper: RosterKeeper, directory: Any) -> None:
    """Have a keeper catch up with what another directory than its own answers."""
    keeper._source._client = directory  # type: ignore[attr-defined]
    await keeper._catch_up()


@asynccontextmanager
async def bench(relays: int = 0, first_roster: int | None = None) -> AsyncIterator[Bench]:
    """A directory that runs; `relays` answer at their addresses and keep registered."""
    async with trio.open_nursery() as nursery:
        made = Bench(nursery, relays if first_roster is None else first_roster)
        await made.start()
        for number in range(relays):
            await made.relay(number)
            nursery.start_soon(made.keep_registered, number)
        await trio.sleep(5)
        yield made
        nursery.cancel_scope.cancel()
