"""A directory restored from a backup signs nothing that it may have signed since the backup was made."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from authority_bench import SEEDS, AuthorityBench, Directory, authority_bench
from directory_bench import CALENDAR, EPOCH, NETWORK

from hushcast_directory.client.pinned_directories import PinnedDirectories, open_source
from hushcast_directory.client.roster_source import RosterSource
from hushcast_directory.program import DIRECTORY
from hushcast_directory.server.configured_set import SetOfOne
from hushcast_directory.server.doctor import examine_alone, examine_one_of_several
from hushcast_directory.server.key_rotation import _next_epoch
from hushcast_directory.server.process import KEY_FILES
from hushcast_directory.server.restoration import last_restored, note_restored, silence
from hushcast_node.counters import COUNTERS
from hushcast_overlay.rosters import RosterKeeper
from hushcast_protocol.base.addresses import memory_address
from hushcast_protocol.base.errors import PeerError
from hushcast_protocol.base.trusted_clock import FOLLOWED_AFTER
from hushcast_runtime.counters import Counters
from hushcast_runtime.storage.backup import make_backup, restore_backup
from hushcast_runtime.storage.changes import Change
from hushcast_runtime.storage.state_directory import StateKind
from hushcast_runtime.storage.state_layout import DATABASE
from hushcast_runtime.storage.store import MemoryStore, change_records

KIND = StateKind("directory", NETWORK, KEY_FILES, DIRECTORY.version, note_restored)


def back_up(directory: Directory, folder: Path) -> Path:
    """Make a backup of what is on its disk now."""
    state, out = folder / "living", folder / "backup"
    state.mkdir(mode=0o700)
    for name in KEY_FILES:
        (state / name).write_bytes(directory.seed.reveal())
    records = directory.store._records.items()
    change_records(state / DATABASE, *(Change(k, key, v) for k, held in records for key, v in held.items()))
    make_backup(state, KIND, directory.env.now(), out, force=False)
    return out


async def restore(directory: Directory, backup: Path, folder: Path, now: float) -> None:
    """Kill it, and start it again with what is in the backup."""
    await directory.kill()
    restore_backup(backup, folder, KIND, now, force=False)
    directory.store = MemoryStore()
    with closing(sqlite3.connect(folder / DATABASE)) as database:
        found = database.execute("SELECT kind, key, value FROM records").fetchall()
    directory.store.write_soon(*(Change(*record) for record in found))
    await directory.start()


def daemon(made: AuthorityBench) -> tuple[RosterKeeper, RosterSource]:
    counters, store, key = Counters(COUNTERS), MemoryStore(), SEEDS[0].public()
    pins = PinnedDirectories.alone(memory_address(key), key)
    source = open_source(made.env, made.wires.transport(), store, NETWORK, pins, counters)
    return RosterKeeper(NETWORK, source, made.env, store, counters), source


@pytest.mark.parametrize("at", [0.4, 0.9], ids=["before the next was due", "after it was signed"])
async def test_alone_it_goes_on_with_the_first_that_it_cannot_have_signed(tmp_path: Path, at: float) -> None:
    async with authority_bench(1, 1) as made:
        (directory,) = made.directories
        directory.sitting = SetOfOne(3)  # type: ignore[assignment]
        await made.until(made.epoch + 3)
        last = made.epoch
        backup = back_up(directory, tmp_path)
        keeper, source = daemon(made)
        await made.until(last + 1 + at)  # a roster later, or two
        await keeper._catch_up()
        assert keeper.newest is not None
        signed = keeper.newest.epoch
        assert signed == last + (1 if at < 0.5 else 2)
        await restore(directory, backup, tmp_path / "new", made.now)
        await made.until(signed + 0.8)
        assert max(directory.agreeing._archive.epochs) == last, "these are signed already"
        assert directory.agreeing.problem is not None
        assert f"up to epoch {signed}" in directory.agreeing.problem
        found = examine_alone(directory.agreeing, 3, 3, made.epoch)
        (told,) = [one for one in found if one.check == "restored"]
        assert "backup" in told.found
        assert f"roster of epoch {signed + 1}" in told.found
        assert await _next_epoch(directory.store, NETWORK, directory.seed) == signed + 1
        await made.until(signed + 0.9)
        assert directory.agreeing._archive.epochs[-2:] == [last, signed + 1]
        assert directory.agreeing.silence is None
        await keeper._catch_up()
        assert keeper.newest.epoch == signed + 1
        assert len(keeper.newest.relays) == 3
        for epoch in (last + 1, signed, signed + 1):
            await source.compare(epoch)
        assert source.reached().fork is None
        await made.until(signed + 3)
        await keeper._catch_up()
        assert keeper.newest.epoch == signed + 3


async def test_before_its_note_it_would_sign_another_roster_of_the_epoch(tmp_path: Path) -> None:
    """So what the tests above look at is decided by the note alone."""
    async with authority_bench(1, 1) as made:
        (directory,) = made.directories
        directory.sitting = SetOfOne(3)  # type: ignore[assignment]
        await made.until(made.epoch + 3)
        last, backup = made.epoch, back_up(directory, tmp_path)
        await made.until(last + 1.4)
        before = made.heads(last + 1)
        keeper, source = daemon(made)
        await keeper._catch_up()
        await restore(directory, backup, tmp_path / "new", made.now - 10 * EPOCH)
        await made.until(last + 1.7)
        assert len(before | made.heads(last + 1)) == 2
        with pytest.raises(PeerError):
            await source.compare(last + 1)
        assert source.reached().fork == last + 1


@pytest.mark.slow
async def test_one_of_several_neither_votes_nor_assents_again(tmp_path: Path) -> None:
    async with authority_bench(3, 2) as made:
        one = made.directories[0]
        await made.until(made.epoch + 3)
        backup, last = back_up(one, tmp_path), made.epoch
        await made.until(last + 0.75)  # it has voted for the next one
        assert one.machine.kept.voted == last + 1
        await restore(one, backup, tmp_path / "new", made.now)
        assert await last_restored(one.store) == last + 1
        await made.register(0)
        await made.until(last + 1.2)
        assert one.machine.kept.voted == one.machine.kept.assented == last + 1
        assert one.machine.epoch is None
        found = examine_one_of_several(one.agreeing, tmp_path / "living", 3, 3, made.epoch)
        told = {finding.check: finding for finding in found}
        assert told["restored"].verdict == "warning"
        assert "votes" not in told
        await made.until(last + 3)
        assert one.machine.agreed == last + 3
        for directory in made.directories:
            assert await made.accused(directory) == set()
            assert directory.machine.chain.state.fork is None
        assert made.names_listed() == {relay for relay, *_ in made.directories[1].listing.seats}


async def test_noted_by_a_clock_that_was_far_ahead_it_goes_on_once_the_clock_is_right(tmp_path: Path) -> None:
    async with authority_bench(1, 1) as made:
        (directory,) = made.directories
        directory.sitting = SetOfOne(3)  # type: ignore[assignment]
        await made.until(made.epoch + 3)
        backup = back_up(directory, tmp_path)
        await restore(directory, backup, tmp_path / "new", made.now + 1000 * EPOCH)
        await made.until(made.epoch + FOLLOWED_AFTER + 3)
        assert await last_restored(directory.store) <= made.epoch + 1
        assert directory.head is not None
        assert directory.head.epoch in (made.epoch, made.epoch + 1)


async def test_what_is_noted(tmp_path: Path) -> None:
    """Votes for an epoch begin after the middle of the one before."""
    store, file = MemoryStore(), tmp_path / DATABASE
    assert await last_restored(store) == -1
    for at, last in ((7.0, 7), (7.4, 7), (7.6, 8), (7.9, 8)):
        note_restored(file, NETWORK, at * EPOCH)
        with closing(sqlite3.connect(file)) as database:
            (record,) = database.execute("SELECT kind, key, value FROM records").fetchall()
        store.write_soon(Change(*record))
        assert await last_restored(store) == last


async def test_silence_ends_when_the_next_is_due() -> None:
    end = CALENDAR.epoch_start(9) - CALENDAR.lead
    assert silence(CALENDAR, -1, 0.0) is None
    told = silence(CALENDAR, 8, end - 61)
    assert told is not None
    assert "in 2 minutes, with the roster of epoch 9" in told
    assert silence(CALENDAR, 8, end) is None
