"""Several real directories in a small network, each of which can be stopped and started again."""

from __future__ import annotations

import trio
from small_network import Process, SmallNetwork, until

from hushcast_directory.client.pinned_directories import PinnedDirectories
from hushcast_directory.server.configured_set import ConfiguredSet, SetOfOne
from hushcast_directory.server.directory_server import DirectoryServer
from hushcast_directory.server.expulsion_list import ExpulsionList, follow
from hushcast_directory.server.roll import Roll
from hushcast_protocol.authorities.authority_set import Authorities, AuthorityContact
from hushcast_protocol.authorities.heads import Head, decode_head
from hushcast_protocol.authorities.seat_admission import OPEN, SeatAdmission
from hushcast_protocol.base.addresses import memory_address
from hushcast_protocol.base.cover_terms import NO_COVER, CoverTerms
from hushcast_protocol.base.crypto.secrets import Seed
from hushcast_protocol.base.keeping_rule import NOTHING_KEPT, KeepingRule
from hushcast_protocol.base.shard_count import SHARD_SIZE
from hushcast_runtime.environment import Environment
from hushcast_runtime.storage.store import MemoryStore
from hushcast_runtime.transports.base import Transport

SEEDS = sorted((Seed(bytes([220 + number]) * 32) for number in range(5)), key=Seed.public)


def a_set(
    count: int,
    quorum: int,
    admission: SeatAdmission = OPEN,
    shard_size: int = SHARD_SIZE,
    keeping: KeepingRule = NOTHING_KEPT,
    cover: CoverTerms = NO_COVER,
) -> Authorities:
    """The first so many authorities, and their rules."""
    keys = [seed.public() for seed in SEEDS[:count]]
    members = tuple(AuthorityContact(key, memory_address(key)) for key in keys)
    return Authorities.of(members, quorum, admission, shard_size, keeping, cover)


class Authority(Process):
    """One directory, alone or one of several; its store outlives it."""

    def __init__(self, network: SmallNetwork, number: int, first_roster: int) -> None:
        super().__init__(network, f"directory-{number}")
        self.seed = SEEDS[number]
        self.sitting: ConfiguredSet | SetOfOne = SetOfOne(first_roster)
        self.server: DirectoryServer | None = None
        self.expelled: ExpulsionList | None = None
        self._store = MemoryStore()

    async def _run(self, transport: Transport, env: Environment, task_status: trio.TaskStatus[None]) -> None:
        net = self.network.net
        held = Roll(net, self.seed, self._store)
        await held.load()
        listener = await transport.listen(self.seed)
        self.server = DirectoryServer(env, transport, held, self.sitting)
        task_status.started()
        async with trio.open_nursery() as nursery:
            nursery.start_soon(follow, lambda: self.expelled, held.expel, net.calendar.lead)
            await self.server.run(listener)

    @property
    def head(self) -> Head | None:
        """The newest head that it serves."""
        if not self.is_up or self.server is None:
            return None
        found, _ = self.server.agreeing._archive.after(None)
        return None if found is None else decode_head(found.certified.head)


class Directories:
    """All directories of a network; to begin with, so many of them agree, or (`0`) the first is alone."""

    def __init__(
        self,
        network: SmallNetwork,
        first_roster: int,
        count: int,
        quorum: int,
        admission: SeatAdmission = OPEN,
        shard_size: int = SHARD_SIZE,
        keeping: KeepingRule = NOTHING_KEPT,
        cover: CoverTerms = NO_COVER,
    ) -> None:
        self._network = network
        self._first_roster = first_roster
        self.all: list[Authority] = []
        self.now = a_set(count, quorum, admission, shard_size, keeping, cover) if count else None
        self._pinned = self.now or a_set(1, 1)
        self.add(max(count, 1))
        self.sit(self.now, None)

    def add(self, count: int) -> None:
        """Have so many, the new ones not started."""
        for number in range(len(self.all), count):
            self.all.append(Authority(self._network, number, self._first_roster))

    def sit(self, now: Authorities | None, following: Authorities | None) -> None:
        """Configure all, which takes effect when they start."""
        for one in self.all:
            first = self._first_roster
            one.sitting = SetOfOne(first) if now is None else ConfiguredSet(now, following, first)

    def directories(self) -> PinnedDirectories:
        """What daemons pin: those of the beginning."""
        return PinnedDirectories(self._pinned.members, self._pinned.quorum)

    async def start(self) -> None:
        """Start all."""
        for one in self.all:
            await one.start()

    async def restart(self) -> None:
        """Start all again, with what they are configured as."""
        for one in self.all:
            if one.is_up:
                await one.stop()
        await self.start()

    async def become(self, count: int, quorum: int) -> None:
        """Have another set take over, as operators do, and wait until it has."""
        following = a_set(count, quorum)
        self.add(count)
        self.sit(self.now, following)
        await self.restart()
        day = 24 * self._network.epoch
        await until(
            lambda: all(one.head is not None and one.head.authorities == following for one in self.all),
            3 * day,
            f"{count} directories agree",
        )
        self.now = following
