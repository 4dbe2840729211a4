"""An authority alone takes back what it agreed on while its clock was wrong; one of several never does."""

from __future__ import annotations

import msgspec
import pytest
import trio
from authority_bench import SEEDS, AuthorityBench, Directory, authority_bench, sets
from directory_bench import CALENDAR, EPOCH, NETWORK, relay_seed
from test_peers import linked

from hushcast_directory.client.pinned_directories import PinnedDirectories, open_source
from hushcast_directory.server.archive import epoch_of
from hushcast_directory.server.descriptors import DESCRIPTOR
from hushcast_directory.server.kept_evidence import AUTHORITY, read_kept
from hushcast_directory.server.resumption import LISTING
from hushcast_node.counters import COUNTERS
from hushcast_overlay.rosters import RosterKeeper
from hushcast_protocol.authorities import name_work as work_module
from hushcast_protocol.authorities.beacon import day_of
from hushcast_protocol.authorities.descriptor_exchange import decode_peer_frame
from hushcast_protocol.authorities.frames import MAX_PEER_FRAME
from hushcast_protocol.authorities.head_inside import Beacon, inside_of
from hushcast_protocol.authorities.head_questions import AskHeads, Heads
from hushcast_protocol.authorities.heads import CertifiedHead, IndexedSignature, decode_head, head_digest
from hushcast_protocol.authorities.name_work import NO_BEACON, NameWork, attempt
from hushcast_protocol.authorities.seat_admission import SeatAdmission
from hushcast_protocol.base.addresses import memory_address
from hushcast_protocol.base.link.links import Link
from hushcast_protocol.base.trusted_clock import FOLLOWED_AFTER
from hushcast_protocol.base.wire import encode
from hushcast_runtime.counters import Counters
from hushcast_runtime.storage.changes import Change
from hushcast_runtime.storage.store import MemoryStore
from hushcast_runtime.transports.channel import accept_channel

AHEAD = 100  # epochs


class Wrong:
    """The clock of one directory's machine."""

    def __init__(self, made: AuthorityBench, directory: Directory) -> None:
        self.seconds = 0.0
        right = made.env.now
        self.env = made.env_at(lambda: right() + self.seconds)
        self._directory = directory

    async def restart(self) -> None:
        await self._directory.kill()
        self._directory.env = self.env
        await self._directory.start()


@pytest.mark.parametrize("restarts", [False, True])
async def test_alone_it_goes_on_from_the_last_true_head(restarts: bool) -> None:
    async with authority_bench(1, 1) as made:
        (directory,) = made.directories
        await made.until(made.epoch + 2)
        clock = Wrong(made, directory)
        await clock.restart()
        await made.until(made.epoch + 1)
        begun = made.epoch
        clock.seconds = AHEAD * EPOCH
        await made.until(begun + FOLLOWED_AFTER + 3)
        assert directory.machine.chain.epoch >= begun + AHEAD
        known = [epoch for epoch in directory.agreeing._archive.epochs if epoch < begun + AHEAD]
        clock.seconds = 0.0
        if restarts:
            await clock.restart()
        await made.until(made.epoch + FOLLOWED_AFTER + 3)
        archive = directory.agreeing._archive
        assert archive.epochs[: len(known)] == known
        assert archive.epochs[-1] in (made.epoch, made.epoch + 1)
        assert directory.machine.chain.epoch == archive.epochs[-1]
        last, _ = archive.after(known[-2])
        then, _ = archive.after(known[-1])
        assert last is not None
        assert then is not None
        assert decode_head(then.certified.head).previous == head_digest(last.certified.head)
        assert then.listing is not None
        assert {since for *_, since in then.listing.seats} == {known[0]}, "nobody's seat is younger for it"
        assert directory.head is not None
        assert inside_of(directory.head).count == 3
        assert restarts or directory.agreeing.problem is None
        for after in (known[0] - 1, None):  # and it outlasts a restart
            await directory.kill()
            await directory.start()
            await made.until(made.epoch + 1.5)
            shown, _ = directory.agreeing._archive.after(after)
            assert shown is not None
        assert directory.head.epoch in (made.epoch, made.epoch + 1)


async def test_a_daemon_that_followed_it_with_the_same_wrong_clock_comes_back() -> None:
    async with authority_bench(1, 1) as made:
        (directory,) = made.directories
        await made.until(made.epoch + 2)
        clock = Wrong(made, directory)
        await clock.restart()
        store, counters = MemoryStore(), Counters(COUNTERS)
        pins = PinnedDirectories.alone(memory_address(directory.seed.public()), directory.seed.public())
        env = clock.env

        def keeper() -> RosterKeeper:
            source = open_source(env, made.wires.transport(), store, NETWORK, pins, counters)
            return RosterKeeper(NETWORK, source, env, store, counters)

        clock.seconds = AHEAD * EPOCH
        await made.until(made.epoch + FOLLOWED_AFTER + 3)
        daemon = keeper()
        await daemon._catch_up()
        assert daemon.newest is not None
        assert daemon.newest.epoch > made.epoch + AHEAD / 2
        clock.seconds = 0.0
        await made.until(made.epoch + FOLLOWED_AFTER + 3)
        daemon = keeper()
        await daemon.load()
        for _ in range(2):
            await daemon._catch_up()
        assert daemon.newest is not None
        assert daemon.newest.epoch in (made.epoch, made.epoch + 1)


async def test_descriptors_from_then_do_not_outlast_it() -> None:
    """A relay had the same wrong time: it could not renew until then."""
    async with authority_bench(1, 1) as made:
        (directory,) = made.directories
        await made.until(made.epoch + 1)
        roll = directory.agreeing._roll
        right = made.env.now
        made.env = made.env_at(lambda: right() + AHEAD * EPOCH)
        early = made.descriptor(0)
        made.env = made.env_at(right)
        await roll.admit(roll.examine(early, made.now + AHEAD * EPOCH), early)
        assert roll.has_early(made.now)
        await made.until(made.epoch + FOLLOWED_AFTER + 1)
        assert not roll.has_early(made.now)
        assert len(await directory.store.scan(DESCRIPTOR)) == 3
        assert directory.head is not None
        assert inside_of(directory.head).count == 3


class Read(MemoryStore):
    """A disk that is slow to read records of a kind, while it is told so."""

    def __init__(self, before: MemoryStore, kind: str) -> None:
        super().__init__()
        self._records = before._records
        self._kind = kind
        self.is_slow = False
        self.reads, self.has_read = trio.Event(), trio.Event()

    async def scan(
        self, kind: str, prefix: bytes = b"", after: bytes | None = None, limit: int = -1
    ) -> list[tuple[bytes, bytes]]:
        found = await super().scan(kind, prefix, after, limit)
        if self.is_slow and kind == self._kind:
            self.reads.set()
            await self.has_read.wait()
        return found


async def test_work_that_is_shown_while_they_are_taken_back_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(work_module, "WORK_OPERATIONS", 1)
    monkeypatch.setattr(work_module, "WORK_MEMORY", 8192)
    async with authority_bench(1, 1, admission=SeatAdmission(work=1)) as made:
        (directory,) = made.directories
        await made.until(made.epoch + 2)
        clock = Wrong(made, directory)
        disk = directory.store = Read(directory.store, "proven")
        await clock.restart()
        clock.seconds = AHEAD * EPOCH
        await made.until(made.epoch + FOLLOWED_AFTER + 3)
        assert directory.head is not None
        assert directory.head.epoch > made.epoch + AHEAD / 2
        clock.seconds = 0.0
        disk.is_slow = True
        with trio.move_on_after(2 * FOLLOWED_AFTER * EPOCH):  # it need not be read at all
            await disk.reads.wait()
        await made.relay(7)
        await directory.client().register(made.descriptor(7), work_of(made, 7))
        disk.has_read.set()
        await made.until(made.epoch + 1.9)
        assert directory.head.epoch == made.epoch + 1
        assert relay_seed(7).public() in made.names_listed()


async def test_a_former_authority_that_asks_meanwhile_is_shown_none_of_them() -> None:
    async with authority_bench(1, 1) as made:
        (directory,) = made.directories
        former = SEEDS[1]
        await made.until(made.epoch + 2)
        clock = Wrong(made, directory)
        disk = directory.store = Read(directory.store, LISTING)
        await directory.kill()
        kept = read_kept(dict(await disk.scan(AUTHORITY))[b""])
        newest = decode_head(kept.chain.newest.head)
        last = msgspec.structs.replace(newest, epoch=newest.epoch - 1, authorities=sets(2, 2))
        turns = (
            CertifiedHead(encode(last), (IndexedSignature(0, bytes(64)),)),
        )  # by which the set of before announced that of now
        chain = msgspec.structs.replace(kept.chain, before=sets(2, 2), since=newest.epoch, turns=turns)
        await disk.write(Change(AUTHORITY, b"", encode(msgspec.structs.replace(kept, chain=chain))))
        directory.env = clock.env
        await directory.start()
        clock.seconds = AHEAD * EPOCH
        await made.until(made.epoch + FOLLOWED_AFTER + 3)
        clock.seconds = 0.0
        disk.is_slow = True
        with trio.fail_after(2 * FOLLOWED_AFTER * EPOCH):
            await disk.reads.wait()
        told: list[int] = []

        async def hear(stream: trio.abc.Stream) -> None:
            link = Link.respond(NETWORK.id, former, made.env.randomness, MAX_PEER_FRAME)
            channel, _ = await accept_channel(stream, link, decode_peer_frame)
            while frames := await channel.receive():
                shown = [one for frame in frames if isinstance(frame, Heads) for one in frame.heads]
                told.extend(epoch_of(one) for one in shown)

        made.nursery.start_soon((await made.wires.transport().listen(former)).serve, hear)
        channel = await linked(made, former)
        await channel.send(AskHeads(None))
        await trio.sleep(1)
        disk.has_read.set()
        await trio.sleep(EPOCH)
        assert told
        assert max(told) <= made.epoch + 1


def work_of(made: AuthorityBench, number: int) -> NameWork:
    beacon, name = Beacon(day_of(made.epoch), NO_BEACON), relay_seed(number).public()
    while (found := attempt(NETWORK.id, name, beacon, 1, made.env.randomness)) is None:
        pass
    return found


async def test_one_of_several_takes_nothing_back() -> None:
    """Others may hold what it signed: it waits until that time has come."""
    async with authority_bench(3, 2) as made:
        one = made.directories[0]
        await made.until(made.epoch + 2)
        clock = Wrong(made, one)
        await clock.restart()
        await made.until(made.epoch + 1)
        held = one.agreeing._archive.epochs
        kept = one.machine.kept
        assert await one.agreeing._ahead.take_back(kept, made.now - AHEAD * EPOCH) is None
        assert one.agreeing._archive.epochs == held
        assert CALENDAR.epoch(made.now) in held
