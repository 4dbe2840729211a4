"""Several directory daemons: a head each epoch, whoever is killed, lies or is away; and one becomes many."""

from __future__ import annotations

import itertools

import pytest
import trio
from authority_bench import authority_bench, sets
from directory_bench import CALENDAR, EPOCH, relay_seed

from hushcast_protocol.authorities.head_inside import inside_of
from hushcast_protocol.authorities.heads import decode_head
from hushcast_testnet.authorities.adversary import AuthorityFault


@pytest.mark.slow
async def test_five_agree_every_epoch() -> None:
    async with authority_bench() as made:
        first = made.epoch + 2
        await made.until(first + 4)
        for epoch in range(first, first + 4):
            assert len(made.heads(epoch)) == 1
        for directory in made.directories:
            assert directory.head is not None
            assert inside_of(directory.head).count == 3
            assert directory.agreeing.problem is None
            assert directory.agreeing.peers.reached == 4


async def test_one_alone_publishes_at_once_as_a_single_directory_does() -> None:
    async with authority_bench(1, 1) as made:
        (directory,) = made.directories
        first = made.epoch
        await trio.sleep(5)
        assert directory.head is not None
        assert directory.head.epoch == first
        await made.until(first + 3)
        assert [len(made.heads(epoch)) for epoch in range(first, first + 4)] == [1, 1, 1, 1]
        await directory.kill()
        await trio.sleep(3 * EPOCH)
        await directory.start()
        await trio.sleep(EPOCH / 2)  # it watches its clock first
        assert directory.head.epoch in (made.epoch, made.epoch + 1)
        assert inside_of(directory.head).count == 3


async def test_one_alone_lists_who_comes_until_a_roster_is_published() -> None:
    async with authority_bench(1, 1) as made:
        (directory,) = made.directories
        coming = made.epoch + 2
        await made.until(coming - CALENDAR.lead / EPOCH - 0.04)
        assert directory.head is not None
        assert directory.head.epoch == coming - 1
        await made.relay(7)
        await made.register(7)
        await made.until(coming - CALENDAR.lead / EPOCH + 0.02)
        assert directory.head.epoch == coming
        assert inside_of(directory.head).count == 4


@pytest.mark.slow
async def test_what_one_lacks_the_others_give_and_it_reaches_the_relay_itself() -> None:
    async with authority_bench() as made:
        await made.until(made.epoch + 2.2)
        for number in (7, 8):
            await made.relay(number)
        await made.register(7, made.directories[0])
        # Nobody answers for this one any more.
        await made.register(8, made.directories[1])
        made.wires.listeners.pop(made.address(8)).withdraw()
        await made.until(made.epoch + 1.9)
        assert made.names_listed() == {relay_seed(number).public() for number in (0, 1, 2, 7)}
        assert all(directory.head and inside_of(directory.head).count == 4 for directory in made.directories)


@pytest.mark.slow
async def test_a_directory_that_was_alone_goes_on_as_one_and_becomes_three_and_five() -> None:
    """Its last roster is what the first head goes on from; nobody's seat is younger for it."""
    async with authority_bench(1, 1) as made:
        (first,) = made.directories
        await first.kill()
        roster = await made.single_directory(first)
        await first.start()
        await made.until(roster.epoch + 2)
        head = first.head
        assert head is not None
        chain = first.machine.chain
        assert chain.state.beginning == roster.digest
        shown, _ = first.agreeing._archive.after(roster.epoch)
        assert shown is not None
        assert decode_head(shown.certified.head).previous == roster.digest
        assert {since for *_, since in shown.listing.seats} == {roster.epoch}
        for count, quorum in ((3, 2), (5, 3)):
            await made.grow(count, quorum)
            epoch = made.epoch
            await made.until(epoch + 50)
            heads = {directory.head for directory in made.directories if directory.head is not None}
            (head,) = heads
            assert head.authorities == sets(count, quorum)
            assert len(made.directories) == count
            assert [len(made.heads(each)) for each in range(epoch + 26, epoch + 50)] == [1] * 24
        assert len(first.machine.chain.state.turns) == 2
        assert {since for *_, since in first.listing.seats} == {roster.epoch}


@pytest.mark.slow
async def test_two_who_lie_in_every_way_fork_nothing() -> None:
    """The simulation's adversary, over links, among three real daemons: a head each epoch, and one."""
    kinds = list(itertools.combinations_with_replacement(AuthorityFault, 2))
    async with authority_bench(faulty=2, seed=9) as made:
        first = made.epoch + 2
        for epoch in range(first, first + len(kinds)):
            await made.until(epoch)
            assert len(made.heads(epoch)) == 1, epoch - first
        lied = {key for one in made.directories for key in await made.accused(one)}
        assert lied == {one.public() for one in made.liars}
        for one in made.directories:
            assert one.machine.chain.state.fork is None
            assert len(one.listing.seats) == 3
            assert one.listing.waiting == ()
