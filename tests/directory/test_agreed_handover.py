"""An authority alone takes another key: daemons that know the old one follow, and its chain goes on."""

from __future__ import annotations

import pytest
from authority_bench import SEEDS, AuthorityBench, Directory, authority_bench, sets
from directory_bench import BEGIN, EPOCH, NETWORK

from hushcast_directory.client.pinned_directories import PinnedDirectories, open_source
from hushcast_directory.server.configured_set import ConfiguredSet
from hushcast_directory.server.key_rotation import _next_epoch
from hushcast_directory.server.succession import hand_over
from hushcast_node.counters import COUNTERS
from hushcast_overlay.rosters import RosterKeeper
from hushcast_protocol.authorities.authority_set import Authorities, AuthorityContact
from hushcast_protocol.authorities.chain import ChainState, handed_over
from hushcast_protocol.authorities.head_inside import inside_of
from hushcast_protocol.authorities.heads import decode_head, head_digest
from hushcast_protocol.base.addresses import memory_address
from hushcast_protocol.base.crypto.secrets import Seed
from hushcast_protocol.base.errors import AuthenticationError, PeerError, UsageError
from hushcast_protocol.base.key_handovers import KeyHandover
from hushcast_runtime.counters import Counters
from hushcast_runtime.environment import simulated_environment
from hushcast_runtime.storage.store import MemoryStore
from hushcast_runtime.transports.base import TransportError

HOME = memory_address(SEEDS[0].public())


class Daemon:
    """What one daemon has of rosters; its store outlives it."""

    def __init__(self, made: AuthorityBench, pinned: Seed, store: MemoryStore | None = None) -> None:
        self.store = store or MemoryStore()
        env, counters = simulated_environment("daemon", BEGIN), Counters(COUNTERS)
        pins = PinnedDirectories.alone(HOME, pinned.public())
        source = open_source(env, made.wires.transport(), self.store, NETWORK, pins, counters)
        self.keeper = RosterKeeper(NETWORK, source, env, self.store, counters)

    async def epoch(self) -> int:
        """Catch up; return the epoch of the newest roster."""
        await self.keeper._catch_up()
        assert self.keeper.newest is not None
        return self.keeper.newest.epoch


async def rotate(directory: Directory, new: Seed, signs: bool = True) -> None:
    """What `hushcast admin key rotate` does, and the next start."""
    old = directory.seed
    await directory.kill()
    epoch = await _next_epoch(directory.store, NETWORK, old)
    await hand_over(directory.store, NETWORK, old, new, epoch, signs)
    directory.seed = new
    directory.sitting = ConfiguredSet(Authorities.of([AuthorityContact(new.public(), HOME)], 1), None, 1)
    await directory.start()


async def test_daemons_follow_it_and_its_chain_goes_on() -> None:
    async with authority_bench(1, 1) as made:
        (directory,) = made.directories
        await made.until(made.epoch + 2)
        daemon = Daemon(made, SEEDS[0])
        held = await daemon.epoch()
        last = directory.machine.chain.state.newest
        assert last is not None
        await rotate(directory, SEEDS[1])
        await made.until(made.epoch + 2)
        newest = await daemon.epoch()
        assert newest in (made.epoch, made.epoch + 1)
        first, _ = directory.agreeing._archive.after(held)
        assert first is not None
        head = decode_head(first.certified.head)
        assert (head.previous, inside_of(head).count) == (head_digest(last.head), 3)
        assert head.authorities.keys == (SEEDS[1].public(),)
        for pinned in SEEDS[:2]:  # whichever its configuration names, and without the directory
            again = Daemon(made, pinned, daemon.store)
            await again.keeper.load()
            assert again.keeper.newest is not None
            assert again.keeper.newest.epoch == newest
            assert await again.epoch() == newest
        for pinned in SEEDS[:2]:  # newcomers
            assert await Daemon(made, pinned).epoch() == newest


async def test_who_was_away_for_two_hand_overs_follows_both() -> None:
    async with authority_bench(1, 1) as made:
        (directory,) = made.directories
        await made.until(made.epoch + 2)
        daemon = Daemon(made, SEEDS[0])
        held = await daemon.epoch()
        for new in SEEDS[1:3]:
            await made.until(made.epoch + 2)
            await rotate(directory, new)
        await made.until(made.epoch + 2)
        daemon = Daemon(made, SEEDS[0], daemon.store)
        await daemon.keeper.load()
        assert daemon.keeper.newest is not None
        assert daemon.keeper.newest.epoch == held
        assert await daemon.epoch() in (made.epoch, made.epoch + 1)


async def test_without_a_hand_over_nobody_follows_and_who_changes_the_key_goes_on() -> None:
    async with authority_bench(1, 1) as made:
        (directory,) = made.directories
        await made.until(made.epoch + 2)
        daemon = Daemon(made, SEEDS[0])
        await daemon.epoch()
        await rotate(directory, SEEDS[1], signs=False)
        await made.until(made.epoch + 2)
        with pytest.raises((PeerError, TransportError)):
            await daemon.epoch()
        changed = Daemon(made, SEEDS[1], daemon.store)
        await changed.keeper.load()
        assert changed.keeper.newest is None
        assert await changed.epoch() in (made.epoch, made.epoch + 1)


async def test_one_of_several_hands_nothing_over() -> None:
    async with authority_bench(3, 2) as made:
        await made.until(made.epoch + 2)
        one = made.directories[0]
        await one.kill()
        with pytest.raises(UsageError, match="quorum"):
            await _next_epoch(one.store, NETWORK, one.seed)
    mine = KeyHandover(NETWORK.id, SEEDS[0].public(), SEEDS[1].public(), 7)
    for count in (1, 3):
        followed = ChainState(sets(count, count // 2 + 1))
        if count == 1:
            assert handed_over(followed, mine).authorities.keys == (SEEDS[1].public(),)
            followed = handed_over(followed, mine)
        with pytest.raises(AuthenticationError):
            handed_over(followed, mine)


async def test_no_rosters_are_lost_where_it_restarts_before_its_first_head() -> None:
    async with authority_bench(1, 1) as made:
        (directory,) = made.directories
        await made.until(made.epoch + 2)
        await rotate(directory, SEEDS[1])
        for _ in range(2):
            await directory.kill()
            await directory.start()
        await made.until(made.epoch + 2)
        archive = directory.agreeing._archive
        assert archive.epochs == list(range(archive.epochs[0], archive.epochs[-1] + 1))
        assert archive.epochs[-1] * EPOCH >= made.now - EPOCH
