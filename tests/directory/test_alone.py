"""A directory that agrees with nobody is a set of one, which nobody has to configure."""

from __future__ import annotations

import pytest
import trio
from authority_bench import SEEDS, AuthorityBench, Directory, authority_bench
from directory_bench import EPOCH

from hushcast_directory.server import archive
from hushcast_directory.server.configured_set import SetOfOne
from hushcast_directory.server.former_rosters import ROSTER
from hushcast_protocol.authorities.head_inside import inside_of
from hushcast_protocol.base.addresses import memory_address
from hushcast_protocol.base.epochs import EPOCHS_A_DAY
from hushcast_runtime.storage.store import MemoryStore


async def alone(made: AuthorityBench) -> Directory:
    """Have the one directory begin anew, alone."""
    (directory,) = made.directories
    await directory.kill()
    directory.store = MemoryStore()
    directory.sitting = SetOfOne(3)  # type: ignore[assignment]
    return directory


async def test_its_first_head_comes_at_once_and_names_it_where_it_is() -> None:
    async with authority_bench(1, 1, relays=0) as made:
        directory = await alone(made)
        await directory.start()
        for number in range(3):
            await made.relay(number)
        await made.register(0)
        await made.register(1)
        await trio.sleep(0.5)
        assert directory.head is None, "it waits for three relays"
        await made.register(2)
        await trio.sleep(0.5)
        head = directory.head
        assert head is not None
        assert (head.epoch, inside_of(head).count) == (made.epoch, 3)
        assert head.authorities.shard_size == 0
        (member,) = head.authorities.members
        assert (member.key, member.address) == (SEEDS[0].public(), memory_address(SEEDS[0].public()))
        await made.until(made.epoch + 2)
        assert directory.head.epoch == made.epoch
        assert directory.agreeing.problem is None


async def test_a_directory_that_signed_rosters_goes_on_from_the_last() -> None:
    async with authority_bench(1, 1) as made:
        directory = await alone(made)
        roster = await made.single_directory(directory)
        await directory.start()
        await made.until(roster.epoch + 2)
        assert directory.machine.chain.state.beginning == roster.digest
        assert {since for *_, since in directory.listing.seats} == {roster.epoch}


async def test_rosters_that_it_signed_before_go_once_heads_fill_their_place(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(archive, "HEADS_KEPT", 4)
    async with authority_bench(1, 1) as made:
        directory = await alone(made)
        roster = await made.single_directory(directory)
        await directory.start()
        await made.until(roster.epoch + 4)
        assert len(directory.agreeing._archive.epochs) == 4
        assert len(await directory.store.scan(ROSTER)) == 1, "what was agreed on since could be taken back"
        await made.until(roster.epoch + 5)
        assert await directory.store.scan(ROSTER) == []
        await directory.kill()
        await directory.start()
        await made.until(roster.epoch + 7)
        assert directory.machine.chain.state.beginning == roster.digest


@pytest.mark.slow
async def test_at_another_address_it_says_so_from_the_next_day_but_one() -> None:
    async with authority_bench(1, 1) as made:
        directory = await alone(made)
        await directory.start()
        await made.until(made.epoch + 2)
        await directory.kill()
        directory.home = SEEDS[1]
        await directory.start()
        await made.until(made.epoch + 2)
        assert directory.head is not None
        assert directory.head.change is not None
        await made.until(made.epoch + 2 * EPOCHS_A_DAY)
        (member,) = directory.head.authorities.members
        assert member.address == memory_address(SEEDS[1].public())
        assert directory.head.change is None
        assert directory.head.epoch * EPOCH >= made.now - EPOCH
