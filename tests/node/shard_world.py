"""A network in shards over `memory`: heads and cuts are real, and so are relays; nobody signs heads."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Any

import trio
from small_network import until

from hushcast_directory.client.roster_source import (
    NOTHING,
    CheckPart,
    DirectoryStatus,
    FetchedRoster,
    SeatTerms,
)
from hushcast_node.counters import COUNTERS
from hushcast_node.relay_role import OwnDaemon, make_relay
from hushcast_overlay.connector import Connector
from hushcast_overlay.keepers.candidate_lists import CandidateLists
from hushcast_overlay.relay.identity import draw_identity
from hushcast_overlay.rosters import RosterKeeper
from hushcast_overlay.shards.shard_fetcher import ShardFetcher
from hushcast_overlay.shards.shards import Shards
from hushcast_protocol.authorities.head_inside import Beacon
from hushcast_protocol.authorities.name_work import NameWork
from hushcast_protocol.authorities.seat_admission import SeatAdmission
from hushcast_protocol.base.addresses import memory_address
from hushcast_protocol.base.crypto.hashes import Domain, digest
from hushcast_protocol.base.crypto.signatures import Signed
from hushcast_protocol.base.epochs import EPOCHS_A_DAY
from hushcast_protocol.base.roster import (
    GENESIS,
    Descriptor,
    Network,
    Roster,
    descriptor_digest,
    sign_descriptor,
)
from hushcast_protocol.base.wire import RelayId
from hushcast_protocol.overlay.profile import HARDENED
from hushcast_protocol.shards.assignment import shard_of_relay, shard_of_topic
from hushcast_protocol.shards.shard_cut import Cut, cut
from hushcast_protocol.shards.shard_requests import (
    AskLeaf,
    AskSlice,
    ShardAnswer,
    ShardRequest,
    ShardUnavailable,
    ShownLeaf,
    ShownPiece,
    ShownSlice,
)
from hushcast_runtime.context import Context
from hushcast_runtime.counters import Counters
from hushcast_runtime.environment import Environment, simulated_environment
from hushcast_runtime.storage.changes import Change
from hushcast_runtime.storage.store import MemoryStore
from hushcast_runtime.tracing import NoTracer
from hushcast_runtime.transports.base import TransportError
from hushcast_runtime.transports.connection_guard import ConnectionGuard
from hushcast_runtime.transports.memory import MemoryNetwork
from hushcast_testnet.simulations.clock_calls import call_at

EPOCH = 60  # seconds
DAY = 10_000
NETWORK = Network("shard tests", "hardened", EPOCH)
CALENDAR = NETWORK.calendar
BEGIN = CALENDAR.day_start(DAY) + 2.5 * EPOCH
DRAWN = 12

Answer = Callable[[ShardRequest], ShardAnswer]


class ShardWorld:
    """Authorities in one, who agree on heads in time, and the relays that these list."""

    def __init__(self, nursery: trio.Nursery, relays: int, bits: int) -> None:
        self.nursery = nursery
        self.env = simulated_environment("shard world", BEGIN)
        self.wires = MemoryNetwork(lambda: 0.1, call_at())
        self.bits = bits
        self.identities = [draw_identity(self.env.randomness) for _ in range(relays)]
        self.signed = [self._descriptor(identity) for identity in self.identities]
        self.ids = [identity.seed.public() for identity in self.identities]
        self._by_digest = {descriptor_digest(one.body): one for one in self.signed}
        self.relays: dict[RelayId, Member] = {}
        self.cuts: dict[int, Cut] = {}
        self.difficulty: dict[RelayId, int] = {}
        self.missing: dict[int, set[RelayId]] = {}
        """By epoch, who was not reached."""
        self.without: set[int] = set()
        """Days for which no beacon was drawn."""
        self.stuck = False
        """Whether authorities agree on nothing more."""
        self._seated_from: dict[RelayId, int] = {}
        self.asked: list[tuple[str, float, ShardRequest]] = []
        """What authorities were asked: by whom, which they do not see, and when."""
        self.authorities: Answer = self.true_answer
        self.heads: dict[int, Roster] = {}
        first = CALENDAR.epoch(BEGIN) - 6
        for epoch in range(first, CALENDAR.epoch(BEGIN) + 1):
            self._agree(epoch)

    @property
    def now(self) -> float:
        return self.env.now()

    @property
    def epoch(self) -> int:
        return CALENDAR.epoch(self.now)

    def _descriptor(self, identity: Any) -> Signed:
        relay, address = identity.seed.public(), memory_address(identity.service.public())
        issued = int(BEGIN)
        held = Descriptor(NETWORK.id, relay, address, identity.parcel_key.public(), issued, issued + 10**6, 0)
        return sign_descriptor(identity.seed, held)

    def cut(self, day: int) -> Cut:
        """The shards of a day, as authorities draw them."""
        if day not in self.cuts:
            since = day * EPOCHS_A_DAY - 30
            named = [
                (relay, descriptor_digest(signed.body), since)
                for relay, signed in zip(self.ids, self.signed, strict=True)
                if self._seated_from.get(relay, day) <= day
            ]
            beacon = digest(Domain.BEACON, b"day %d" % day)
            self.cuts[day] = cut(NETWORK.id, day, beacon, self.bits, named)
        return self.cuts[day]

    def days(self, epoch: int) -> list[int]:
        """The days that the head of an epoch tells of."""
        today = epoch // EPOCHS_A_DAY
        now = max(day for day in range(today - 3, today + 1) if day not in self.without)
        tomorrow = [today + 1] if epoch % EPOCHS_A_DAY >= DRAWN and today + 1 not in self.without else []
        return [now, *tomorrow]

    def standing(self, epoch: int) -> dict[RelayId, int]:
        away = self.missing.get(epoch, set())
        return {relay: self.difficulty.get(relay, 0) for relay in self.ids if relay not in away}

    def _agree(self, epoch: int) -> Roster:
        cuts = [self.cut(day) for day in self.days(epoch)]
        shards = tuple(one.sharding(one.leaves(self.standing(epoch))) for one in cuts)
        before = self.heads.get(epoch - 1)
        previous = before.digest if before is not None else GENESIS
        head = Roster(NETWORK, epoch, previous, digest(Domain.ROSTER, previous), {}, shards=shards)
        self.heads[epoch] = head
        return head

    async def run(self) -> None:
        """Agree on a head a lead before each epoch."""
        while True:
            epoch = max(self.heads) + 1
            await self.env.sleep_until(CALENDAR.epoch_start(epoch) - CALENDAR.lead)
            if self.stuck:
                return
            self._agree(epoch)

    def find(self, known: bytes) -> Signed | None:
        return self._by_digest.get(known)

    def true_answer(self, request: ShardRequest) -> ShardAnswer:
        """What somebody who has everything shows."""
        if request.day not in self.cuts:
            return ShardUnavailable()
        made = self.cuts[request.day]
        if isinstance(request, AskLeaf):
            if request.epoch not in self.heads or request.day not in self.days(request.epoch):
                return ShardUnavailable()
            leaves = made.leaves(self.standing(request.epoch))
            return ShownLeaf(leaves.bodies[request.shard], leaves.tree.path(request.shard))
        if isinstance(request, AskSlice):
            body = made.slice(request.shard, self.find)
            assert body is not None
            return ShownSlice(body)
        body = made.piece(request.number, self.find)
        assert body is not None
        return ShownPiece(body, made.guides.path(request.number))

    def shard_of(self, relay: RelayId, day: int) -> int:
        return shard_of_relay(self.cut(day).beacon, relay, self.bits)

    def members(self, shard: int, day: int) -> list[RelayId]:
        return [relay for relay in self.ids if self.shard_of(relay, day) == shard]

    def guides(self, shard: int, day: int) -> list[RelayId]:
        pieces = [guides for piece in self.cut(day).pieces for guides in piece]
        return [relay for relay, _ in pieces[shard]]

    def trunk_in(self, shard: int) -> bytes:
        """The key of some topic that belongs to a shard."""
        keys = (b"topic %d" % number for number in range(10_000))
        return next(key for key in keys if shard_of_topic(key, 0, self.bits) == shard)

    def newcomer(self, relay: RelayId, day: int) -> None:
        """Have a relay in no shard before the cut of a day; nothing was fetched yet."""
        self._seated_from[relay] = day
        self.cuts.clear()
        for epoch in list(self.heads):
            self._agree(epoch)

    def address(self, relay: RelayId) -> str:
        return memory_address(self.identities[self.ids.index(relay)].service.public())

    def member(self, name: str, relay: RelayId | None = None, store: MemoryStore | None = None) -> Member:
        """A daemon, a relay's if that is named."""
        made = Member(self, name, relay, store or MemoryStore())
        if relay is not None:
            self.relays[relay] = made
        return made

    async def relays_up(self) -> None:
        """Start all relays, and wait until all hold the shard they are in."""
        for number, relay in enumerate(self.ids):
            await self.member(f"relay {number}", relay).start()
        await until(lambda: all(member.shards.own(DAY) for member in self.relays.values()), EPOCH)


class WorldSource:
    """What daemons have heads from; implements `RosterSource`."""

    def __init__(self, world: ShardWorld, env: Environment, name: str) -> None:
        self._world = world
        self._env = env
        self._name = name

    async def load(self) -> None:
        pass

    def restored(self, record: bytes) -> Roster:
        return self._world.heads[int(record)]

    def wire(self, epoch: int) -> None:
        return None

    async def fetch(self, after: int | None, held: Roster | None) -> FetchedRoster:
        await trio.sleep(1)
        newest = max(self._world.heads)
        epoch = newest if after is None else after + 1
        if epoch > newest:
            return NOTHING
        return FetchedRoster(self._world.heads[epoch], b"%d" % epoch, epoch < newest)

    def following(self, roster: Roster) -> Sequence[Change]:
        return ()

    async def ask(self, request: ShardRequest, check: CheckPart | None = None) -> ShardAnswer:
        self._world.asked.append((self._name, self._world.now, request))
        await trio.sleep(1)
        answer = self._world.authorities(request)
        if isinstance(answer, ShardUnavailable):
            raise TransportError("no directory shows it")
        if check is not None:
            await self._env.compute(check, answer)
        return answer

    async def register(self, descriptor: Signed, work: NameWork | None = None) -> None:
        raise NotImplementedError

    def terms(self) -> SeatTerms | None:
        return SeatTerms(self._world.epoch, SeatAdmission(), Beacon(DAY, bytes(32)), {})

    async def compare(self, epoch: int) -> None:
        raise NotImplementedError

    def reached(self) -> DirectoryStatus:
        return DirectoryStatus(1, 1)


class Member:
    """A daemon's rosters and shards and, in a relay, all that answers strangers."""

    def __init__(self, world: ShardWorld, name: str, relay: RelayId | None, store: MemoryStore) -> None:
        self.world = world
        self.name = name
        self.relay = relay
        self.store = store
        self.lives = 0
        self.connected: list[tuple[float, str, str]] = []
        """When it connected where, and by which circuit."""
        self._scope = trio.CancelScope()
        self._ended = trio.Event()

    async def start(self, runs: bool = True) -> None:
        """Begin; a relay that does not run shows what it is given."""
        self.lives += 1
        world = self.world
        env = self.env = simulated_environment(f"{self.name} {self.lives}", BEGIN)
        self.counters = Counters(COUNTERS)
        self.transport = _Noting(world.wires.transport(), self.connected, env)
        source = WorldSource(world, env, self.name)
        self.rosters = RosterKeeper(NETWORK, source, env, self.store, self.counters)
        connector = Connector(self.transport, env, self.rosters, self._is_listed, self.counters)  # type: ignore[arg-type]
        fetching = ShardFetcher(NETWORK, connector, source, env, self.counters)
        self.shards = Shards(self.relay, self.rosters, source, fetching, env, self.store, self.counters)
        await self.rosters.load()
        await self.shards.load()
        self._scope, self._ended = trio.CancelScope(), trio.Event()
        world.nursery.start_soon(self._live, connector, runs)
        await trio.testing.wait_all_tasks_blocked()

    def _is_listed(self, relay: RelayId) -> bool:
        return self.shards.relay(relay) is not None

    async def _live(self, connector: Connector, runs: bool) -> None:
        try:
            with self._scope:
                async with trio.open_nursery() as nursery:
                    context = Context(self.env, self.store, self.counters, NoTracer(), nursery.start_soon)
                    nursery.start_soon(context.timetable.run)
                    if runs:
                        nursery.start_soon(self.rosters.run, context)
                        self.shards.begin(context)
                    if self.relay is not None:
                        await self._listen(connector, nursery, context)
        finally:
            self.transport.vanish()
            self._ended.set()

    async def _listen(self, connector: Connector, nursery: trio.Nursery, context: Context) -> None:
        assert self.relay is not None
        identity = self.world.identities[self.world.ids.index(self.relay)]

        async def take_listed(*_: object) -> None:
            raise NotImplementedError

        relay = make_relay(
            identity,
            HARDENED,
            self.shards,
            CandidateLists(self.shards, self.rosters, context),
            connector,
            OwnDaemon(self.rosters, take_listed, take_listed),  # type: ignore[arg-type]
            context,
        )
        listener = await self.transport.listen(identity.service)
        guard = ConnectionGuard(relay.incoming.accept, relay.incoming.serve, 100, self.env, self.counters)
        nursery.start_soon(listener.serve, guard.admit)

    async def stop(self) -> None:
        self._scope.cancel()
        await self._ended.wait()

    @property
    def asked(self) -> list[ShardRequest]:
        """What it asked authorities."""
        return [request for name, _, request in self.world.asked if name == self.name]

    def lie(self, answer: Answer) -> None:
        """Show something else from now on."""
        self.shards.serving.answer = answer  # type: ignore[method-assign]

    async def rosters_held(self) -> None:
        await until(lambda: self.rosters.newest is not None, 30.0)

    async def roster_of(self, shard: int, day: int = DAY) -> set[RelayId]:
        """The relays that it knows of a shard, fetched if need be."""
        await self.rosters_held()
        near = await self.shards.find(day, self.world.trunk_in(shard))
        return set(near.current().relays)


class _Noting:
    """A transport that notes to whom it connects, and by which circuit."""

    def __init__(self, inner: Any, connected: list[tuple[float, str, str]], env: Environment) -> None:
        self._inner = inner
        self._connected = connected
        self._env = env
        self.listen = inner.listen
        self.vanish = inner.vanish

    async def connect(self, address: Any, isolation: str, ahead: bytes = b"") -> trio.abc.Stream:
        self._connected.append((self._env.now(), address, isolation))
        stream: trio.abc.Stream = await self._inner.connect(address, isolation, ahead)
        return stream


@asynccontextmanager
async def network(relays: int = 24, bits: int = 2) -> AsyncIterator[ShardWorld]:
    """A network whose authorities agree in time; no relay is up."""
    async with trio.open_nursery() as nursery:
        world = ShardWorld(nursery, relays, bits)
        nursery.start_soon(world.run)
        yield world
        nursery.cancel_scope.cancel()


async def client(world: ShardWorld, name: str = "client") -> Member:
    """A client that holds a head."""
    member = world.member(name)
    await member.start()
    await member.rosters_held()
    return member
