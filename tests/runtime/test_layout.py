"""Versions of the state: migrations in order, each whole or not at all; newer states are left untouched."""

from __future__ import annotations

import hashlib
import signal
import sqlite3
import subprocess
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
import trio

from hushcast_protocol.base.errors import UsageError
from hushcast_runtime.storage.changes import Change
from hushcast_runtime.storage.state_layout import (
    DATABASE,
    Migration,
    check_version,
    kept_version,
    migrate,
    step_back,
    unchanged,
)
from hushcast_runtime.storage.store import MemoryStore, SqliteStore, Store, StoreError

Open = Callable[[], Store]


@pytest.fixture(params=["memory", "sqlite"])
def opened(request: pytest.FixtureRequest, tmp_path: Path) -> Open:
    memory = MemoryStore()
    return lambda: memory if request.param == "memory" else SqliteStore(tmp_path / DATABASE)


@asynccontextmanager
async def running(store: Store) -> AsyncIterator[Store]:
    async with trio.open_nursery() as nursery:
        nursery.start_soon(store.run)
        yield store
        nursery.cancel_scope.cancel()
    store.close()


def adds(number: int) -> Migration:
    async def up(store: Store) -> list[Change]:
        done = await store.scan("done")
        assert len(done) == number  # what came before is there to be read
        return [Change("done", bytes([number]), b"")]

    async def down(store: Store) -> list[Change]:
        return [Change("done", bytes([number]), None)]

    return Migration(up, down)


async def fails(store: Store) -> list[Change]:
    raise StoreError("a record cannot be read")


async def cannot(store: Store) -> list[Change]:
    raise UsageError("it holds a cat, which the version before cannot hold: let it out first")


async def test_migrations_run_in_order_and_once(opened: Open) -> None:
    for known in (0, 2, 2, 3):
        async with running(opened()) as store:
            await migrate(store, [adds(number) for number in range(known)])
            assert store.version == known
    async with running(opened()) as store:
        assert store.version == 3
        assert [key for key, _ in await store.scan("done")] == [b"\0", b"\1", b"\2"]


async def test_one_that_fails_leaves_the_version_before_it(opened: Open) -> None:
    async with running(opened()) as store:
        with pytest.raises(StoreError):
            await migrate(store, [adds(0), Migration(fails, fails)])
    async with running(opened()) as store:
        assert store.version == 1
        await migrate(store, [adds(0), adds(1)])
        assert store.version == 2


async def test_a_step_back_and_forth_is_as_before(opened: Open) -> None:
    migrations = [adds(0), adds(1)]
    async with running(opened()) as store:
        await migrate(store, migrations)
        await step_back(store, migrations)
    async with running(opened()) as store:
        assert store.version == 1
        assert await store.scan("done") == [(b"\0", b"")]
        await migrate(store, migrations)
        assert await store.scan("done") == [(b"\0", b""), (b"\1", b"")]


async def test_what_cannot_be_held_before_stays_as_it_is(opened: Open) -> None:
    migrations = [adds(0), Migration(unchanged, cannot)]
    async with running(opened()) as store:
        await migrate(store, migrations)
        with pytest.raises(UsageError, match="let it out first"):
            await step_back(store, migrations)
        assert store.version == 2
        with pytest.raises(UsageError, match="versions up to 1"):
            await step_back(store, migrations[:1])


async def test_there_is_nothing_before_the_first_version(opened: Open) -> None:
    async with running(opened()) as store:
        with pytest.raises(UsageError, match="there is none before that"):
            await step_back(store, [adds(0)])


async def test_a_newer_state_is_refused(opened: Open) -> None:
    async with running(opened()) as store:
        await store.advance(7, Change("k", b"1", b"v"))
        with pytest.raises(UsageError, match=r"is of version 7, and this program knows versions up to 2"):
            await migrate(store, [adds(0), adds(1)])
        assert store.version == 7
        assert await store.scan("done") == []


def test_a_version_below_zero_is_damage() -> None:
    with pytest.raises(StoreError, match="damaged"):
        check_version(-1, 1)


_ADVANCE = """
import os, signal, sys, trio
from pathlib import Path
from hushcast_runtime.storage.changes import Change
from hushcast_runtime.storage.store import SqliteStore

async def main():
    store = SqliteStore(Path(sys.argv[1]))
    async with trio.open_nursery() as nursery:
        nursery.start_soon(store.run)
        await store.advance(5, Change("k", b"1", b"v"))
        os.kill(os.getpid(), signal.SIGKILL)

trio.run(main)
"""


def test_the_version_is_read_out_of_the_write_ahead_log(tmp_path: Path) -> None:
    path = tmp_path / DATABASE
    killed = subprocess.run([sys.executable, "-c", _ADVANCE, str(path)], check=False)
    assert killed.returncode == -signal.SIGKILL
    assert path.read_bytes()[60:64] != (5).to_bytes(4, "big")  # the header does not tell it yet
    before = hashes(tmp_path)
    assert kept_version(tmp_path) == 5
    assert hashes(tmp_path).items() >= before.items()


def hashes(folder: Path) -> dict[str, str]:
    return {
        path.name: hashlib.sha256(path.read_bytes()).hexdigest()
        for path in folder.iterdir()
        if not path.name.endswith("-shm")  # an index of the log, which every reader may make anew
    }


def test_where_there_is_no_state_it_is_of_version_0(tmp_path: Path) -> None:
    assert kept_version(tmp_path) == 0
    assert list(tmp_path.iterdir()) == []
    (tmp_path / DATABASE).touch()
    assert kept_version(tmp_path) == 0


def test_paths_are_not_taken_for_urls(tmp_path: Path) -> None:
    odd = tmp_path / "a?mode=rw&b%20#c"
    odd.mkdir()
    database = sqlite3.connect(odd / DATABASE)
    database.execute("PRAGMA user_version=3")
    database.close()
    assert kept_version(odd) == 3


def test_what_is_no_database_is_an_error_of_one_line(tmp_path: Path) -> None:
    (tmp_path / DATABASE).write_bytes(b"no database at all" * 100)
    with pytest.raises(StoreError, match="cannot be read") as caught:
        kept_version(tmp_path)
    assert "\n" not in str(caught.value)
