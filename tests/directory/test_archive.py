"""The archive of one authority: which heads it keeps where two come to be served while the disk is slow."""

from __future__ import annotations

import pytest
import trio
import trio.testing
from directory_bench import NETWORK
from several_bench import FIRST, a_set, agreed, relay_of

from hushcast_directory import archive as archive_module
from hushcast_directory.archive import Archive
from hushcast_protocol.authorities.heads import Certified
from hushcast_protocol.authorities.listing import Listing
from hushcast_protocol.base.roster import descriptor_digest
from hushcast_protocol.base.signatures import Signed
from hushcast_runtime.store import Change, MemoryStore

OLD, BEFORE, NEW = FIRST, FIRST + 1, FIRST + 2


class SlowDisk(MemoryStore):
    """A store whose writes last until it turns."""

    def __init__(self) -> None:
        super().__init__()
        self.turns = trio.Event()
        self.turns.set()

    async def write(self, *changes: Change) -> None:
        await self.turns.wait()
        await super().write(*changes)


def head_of(epoch: int) -> tuple[Certified, Listing, dict[bytes, Signed]]:
    """What is agreed on for an epoch: the head, its listing, the descriptors by digest."""
    answer = agreed(a_set(3, 2), epoch)
    signed = {descriptor_digest(one.descriptor.body): one for one in answer.seats}
    seats = tuple((relay_of(one), known, 0, one.since) for known, one in signed.items())
    descriptors = {known: one.descriptor for known, one in signed.items()}
    return answer.heads[-1], Listing(epoch, seats, ()), descriptors


async def test_two_heads_that_come_at_once_are_both_kept_in_place_of_the_oldest(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The descriptors that one waited for come just before the next head does."""
    monkeypatch.setattr(archive_module, "HEADS_KEPT", 2)
    disk = SlowDisk()
    archive = Archive(NETWORK.id, disk)
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
    again = Archive(NETWORK.id, disk)
    await again.load()
    assert archive.epochs == again.epochs == [BEFORE, NEW]
