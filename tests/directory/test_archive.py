"""The archive of one authority: what it keeps of what comes at once while the disk is slow."""

from __future__ import annotations

import pytest
import trio
import trio.testing
from directory_bench import NETWORK
from several_bench import FIRST, a_set, agreed, drawn, entry, relay_of

from hushcast_directory.server import archive as archive_module
from hushcast_directory.server.archive import Archive
from hushcast_directory.server.former_rosters import ROSTER
from hushcast_protocol.authorities.beacon import day_of
from hushcast_protocol.authorities.heads import CertifiedHead
from hushcast_protocol.authorities.listing import ListedCut, Listing
from hushcast_protocol.base.crypto.signatures import Signed
from hushcast_protocol.base.roster import descriptor_digest
from hushcast_runtime.environment import simulated_environment
from hushcast_runtime.storage.changes import Change
from hushcast_runtime.storage.store import MemoryStore

OLD, BEFORE, NEW = FIRST, FIRST + 1, FIRST + 2
NUMBERS = range(8)
COMPUTE = simulated_environment("archive").compute


class SlowDisk(MemoryStore):
    """A store whose writes last until it turns."""

    def __init__(self) -> None:
        super().__init__()
        self.turns = trio.Event()
        self.turns.set()

    async def write(self, *changes: Change) -> None:
        await self.turns.wait()
        await super().write(*changes)


def head_of(
    epoch: int, shards: tuple[ListedCut, ...] = ()
) -> tuple[CertifiedHead, Listing, dict[bytes, Signed]]:
    """What is agreed on for an epoch: the head, its listing, the descriptors by digest."""
    entries = sorted((entry(number, epoch) for number in NUMBERS), key=relay_of)
    signed = {descriptor_digest(one.descriptor.body): one for one in entries}
    seats = tuple((relay_of(one), known, 0, one.since) for known, one in signed.items())
    (certified,) = agreed(a_set(3, 2), epoch, NUMBERS, shards=shards).heads
    return certified, Listing(epoch, seats, (), shards), {k: one.descriptor for k, one in signed.items()}


class SlowSearch(MemoryStore):
    """A store in which it takes a while to see that there are no records of a kind."""

    def __init__(self) -> None:
        super().__init__()
        self.begun, self.done = trio.Event(), trio.Event()

    async def scan(
        self, kind: str, prefix: bytes = b"", after: bytes | None = None, limit: int = -1
    ) -> list[tuple[bytes, bytes]]:
        if kind == ROSTER:
            self.begun.set()
            await self.done.wait()
        return await super().scan(kind, prefix, after, limit)


async def test_descriptors_that_come_while_a_day_is_begun_outlast_a_restart(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(archive_module, "HEADS_KEPT", 1)
    disk = SlowSearch()
    archive = Archive(NETWORK.id, disk, COMPUTE)
    certified, listing, known = head_of(OLD)
    assert await archive.begin(certified, listing, known.get)
    today = drawn(BEFORE, day_of(BEFORE), NUMBERS)
    certified, listing, known = head_of(BEFORE, (today,))
    first, *late = known
    with trio.fail_after(10):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(archive.begin, certified, listing, {first: known[first]}.get)
            await disk.begun.wait()
            await archive.supply({one: known[one] for one in late})
            disk.done.set()
    assert archive.missing == set()
    again = Archive(NETWORK.id, disk, COMPUTE)
    await again.load()
    assert again.missing == set()


async def test_two_heads_that_come_at_once_are_both_kept_in_place_of_the_oldest(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The descriptors that one waited for come just before the next head does."""
    monkeypatch.setattr(archive_module, "HEADS_KEPT", 2)
    disk = SlowDisk()
    archive = Archive(NETWORK.id, disk, COMPUTE)
    for epoch in (OLD - 1, OLD):
        certified, listing, known = head_of(epoch)
        assert await archive.begin(certified, listing, known.get)
    certified, listing, late = head_of(BEFORE)
    assert not await archive.begin(certified, listing, {}.get), "its descriptors are not here"
    disk.turns = trio.Event()
    certified, listing, known = head_of(NEW)
    with trio.fail_after(10):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(archive.supply, late)
            await trio.testing.wait_all_tasks_blocked()
            nursery.start_soon(archive.begin, certified, listing, known.get)
            await trio.testing.wait_all_tasks_blocked()
            disk.turns.set()
    again = Archive(NETWORK.id, disk, COMPUTE)
    await again.load()
    assert archive.epochs == again.epochs == [BEFORE, NEW]
