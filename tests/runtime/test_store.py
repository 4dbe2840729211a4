"""One conformance suite for both stores, and what SQLite alone promises: durability, shared commits."""

from __future__ import annotations

import os
import random
import signal
import sqlite3
import subprocess
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, closing
from pathlib import Path

import pytest
import trio
import trio.testing

from hushcast_runtime.storage import store as stores
from hushcast_runtime.storage.changes import Change, Commit
from hushcast_runtime.storage.store import (
    MAX_COMMIT,
    MemoryStore,
    Records,
    SqliteStore,
    Store,
    StoreError,
    read_records,
)

Opened = Callable[[], "AsyncIterator[Store]"]


@asynccontextmanager
async def running(store: Store) -> AsyncIterator[Store]:
    async with trio.open_nursery() as nursery:
        nursery.start_soon(store.run)
        yield store
        nursery.cancel_scope.cancel()


class Kind:
    """A kind of store, and how a daemon that restarts opens it again."""

    def __init__(self, name: str, directory: Path) -> None:
        self._memory = MemoryStore() if name == "memory" else None
        self.path = directory / "state.db"

    def open(self) -> Store:
        return self._memory or SqliteStore(self.path)


@pytest.fixture(params=["memory", "sqlite"])
def kind(request: pytest.FixtureRequest, tmp_path: Path) -> Kind:
    return Kind(request.param, tmp_path)


@pytest.fixture
async def store(kind: Kind) -> AsyncIterator[Store]:
    opened = kind.open()
    async with running(opened):
        yield opened
    opened.close()


async def test_a_store_on_disk_commits_until_it_is_cancelled(tmp_path: Path) -> None:
    with trio.move_on_after(0.05) as scope:
        await SqliteStore(tmp_path / "state.db").run()
    assert scope.cancelled_caught


# What both promise


async def test_an_empty_store_holds_nothing(store: Store) -> None:
    assert await store.scan("anything") == []


async def test_what_was_written_is_read_in_order_of_key(store: Store) -> None:
    keys = [b"b", b"", b"\xff", b"a", b"ab", b"\x00", b"aa"]
    await store.write(*(Change("kind", key, b"value of " + key) for key in keys))
    assert await store.scan("kind") == [(key, b"value of " + key) for key in sorted(keys)]


async def test_kinds_are_kept_apart(store: Store) -> None:
    await store.write(Change("one", b"k", b"1"), Change("two", b"k", b"2"), Change("one ", b"k", b"3"))
    assert await store.scan("one") == [(b"k", b"1")]
    assert await store.scan("two") == [(b"k", b"2")]
    assert await store.scan("ONE") == []


async def test_the_last_change_of_a_key_counts(store: Store) -> None:
    await store.write(Change("k", b"1", b"old"), Change("k", b"1", b"new"), Change("k", b"2", b"x"))
    await store.write(Change("k", b"2", None), Change("k", b"3", b"y"), Change("k", b"3", None))
    await store.write(Change("k", b"absent", None))
    assert await store.scan("k") == [(b"1", b"new")]


async def test_a_commit_of_many_kinds_and_deletions_is_what_one_by_one_would_be(store: Store) -> None:
    drawn = random.Random(7)
    expected: dict[tuple[str, bytes], bytes] = {}
    for count in (1, 31, 32, 33, 400):
        changes = [
            Change(drawn.choice("abc"), b"%d" % drawn.randrange(90), drawn.choice([None, b"%d" % number]))
            for number in range(count)
        ]
        for change in changes:
            if change.value is None:
                expected.pop((change.kind, change.key), None)
            else:
                expected[change.kind, change.key] = change.value
        await store.write(*changes)
        for kind in "abc":
            assert dict(await store.scan(kind)) == {
                key: value for (of, key), value in expected.items() if of == kind
            }


async def test_to_delete_costs_the_same_however_many_others_there_are(tmp_path: Path) -> None:
    """Several at a time are easily asked for in a way that looks through all records."""
    store = SqliteStore(tmp_path / "state.db")
    async with running(store):
        steps: list[int] = []

        async def delete(begin: bytes) -> int:
            await store.write(*(Change("k", begin + b"%02d" % number, b"") for number in range(50)))
            steps.clear()
            store._connection.set_progress_handler(lambda: steps.append(1), 10)
            await store.write(*(Change("k", begin + b"%02d" % number, None) for number in range(50)))
            store._connection.set_progress_handler(None, 0)
            return len(steps)

        few = await delete(b"a")
        await store.write(*(Change("k", b"p%05d" % number, b"") for number in range(20_000)))
        assert await delete(b"a") <= 2 * few
    store.close()


async def test_a_deleted_key_can_be_written_again(store: Store) -> None:
    for value in (b"1", None, b"2"):
        await store.write(Change("k", b"key", value))
    assert await store.scan("k") == [(b"key", b"2")]


async def test_empty_keys_and_values_are_records(store: Store) -> None:
    await store.write(Change("k", b"", b""))
    assert await store.scan("k") == [(b"", b"")]
    await store.write(Change("k", b"", None))
    assert await store.scan("k") == []


async def test_large_values_come_back_whole(store: Store) -> None:
    large = os.urandom(600_000)
    await store.write(Change("k", b"key", large))
    assert await store.scan("k") == [(b"key", large)]


PREFIXED = [
    b"",
    b"a",
    b"a\x00",
    b"a\xfe",
    b"a\xff",
    b"a\xff\x00",
    b"a\xff\xff",
    b"b",
    b"\xff",
    b"\xff\xff",
    b"\xff\xff1",
]


@pytest.mark.parametrize("prefix", [*PREFIXED, b"c", b"a\xff\xff\xff", b"\xff\xff\xff"])
async def test_a_prefix_gives_just_the_keys_that_begin_with_it(store: Store, prefix: bytes) -> None:
    """`0xff` at the end of a prefix has no successor of the same length."""
    await store.write(*(Change("k", key, b"") for key in PREFIXED))
    found = [key for key, _ in await store.scan("k", prefix)]
    assert found == sorted(key for key in PREFIXED if key.startswith(prefix))


@pytest.mark.parametrize("after", [b"a", b"a\x00", b"a\xff", b"a\xff\xff", b"b", b"\xff\xff", b"0"])
@pytest.mark.parametrize("prefix", [b"", b"a", b"a\xff", b"\xff"])
async def test_a_scan_begins_above_a_key(store: Store, prefix: bytes, after: bytes) -> None:
    await store.write(*(Change("k", key, b"") for key in PREFIXED))
    found = [key for key, _ in await store.scan("k", prefix, after)]
    assert found == sorted(key for key in PREFIXED if key.startswith(prefix) and key > after)


async def test_pages_of_a_scan_give_every_record_once(store: Store) -> None:
    await store.write(*(Change("k", b"p%03d" % number, b"") for number in range(50)), Change("k", b"q", b""))
    paged: list[bytes] = []
    after = b""
    while page := await store.scan("k", b"p", after, limit=7):
        assert len(page) <= 7
        paged += [key for key, _ in page]
        after = paged[-1]
    assert paged == [b"p%03d" % number for number in range(50)]
    assert await store.scan("k", limit=0) == []


@pytest.mark.parametrize("prefix", [b"", b"p"])
async def test_a_page_costs_the_same_wherever_it_begins(tmp_path: Path, prefix: bytes) -> None:
    """A start that reads all records page by page went through what it had read before with each page."""
    store = SqliteStore(tmp_path / "state.db")
    async with running(store):
        await store.write(*(Change("k", b"p%05d" % number, b"") for number in range(20_000)))
        steps: list[int] = []

        async def read(after: bytes) -> int:
            steps.clear()
            store._connection.set_progress_handler(lambda: steps.append(1), 10)
            page = await store.scan("k", prefix, after, limit=50)
            store._connection.set_progress_handler(None, 0)
            assert len(page) == 50
            return len(steps)

        first, last = await read(b"p00001"), await read(b"p19900")
        assert last <= 2 * first
    store.close()


async def test_records_are_read_to_the_end_or_as_far_as_a_reader_goes(store: Store) -> None:
    everything = [(b"p%03d" % number, b"") for number in range(50)]
    await store.write(*(Change("k", key, value) for key, value in everything), Change("k", b"q", b""))
    for at_once in (1, 7, 50, 1_000):
        assert [record async for record in Records(store, "k", b"p", at_once)] == everything
    assert [record async for record in Records(store, "none")] == []
    async for first in Records(store, "k"):  # a generator would warn that it was not ended
        assert first == everything[0]
        break


async def test_an_empty_write_waits_for_what_was_written_soon(store: Store) -> None:
    store.write_soon(Change("k", b"1", b"a"), Change("k", b"2", b"b"))
    store.write_soon(Change("k", b"1", None))
    await store.write()
    assert await store.scan("k") == [(b"2", b"b")]


async def test_changes_count_in_the_order_they_were_made(store: Store) -> None:
    async with trio.open_nursery() as nursery:
        for number in range(20):
            store.write_soon(Change("k", b"key", b"%d" % number))
            nursery.start_soon(store.write, Change("other", b"%d" % number, b""))
    await store.write()
    assert await store.scan("k") == [(b"key", b"19")]
    assert len(await store.scan("other")) == 20


async def test_records_outlive_a_restart(kind: Kind) -> None:
    first = kind.open()
    async with running(first):
        await first.write(Change("k", b"1", b"a"))
        first.write_soon(Change("k", b"2", b"b"))
    first.close()
    second = kind.open()
    async with running(second):
        assert await second.scan("k") == [(b"1", b"a"), (b"2", b"b")]
    second.close()


async def test_what_is_written_while_it_stops_is_committed_by_closing(kind: Kind) -> None:
    first = kind.open()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(first.run)
        await trio.testing.wait_all_tasks_blocked()
        first.write_soon(Change("k", b"1", b"a"))
        nursery.cancel_scope.cancel()  # the batch has just been taken up, or is about to be
    first.write_soon(Change("k", b"2", b"b"))
    first.close()
    second = kind.open()
    async with running(second):
        assert await second.scan("k") == [(b"1", b"a"), (b"2", b"b")]
    second.close()


# SQLite

WRITER = """
import sys, trio
from pathlib import Path
from hushcast_runtime.storage import store as stores
from hushcast_runtime.storage.changes import Commit, Change
from hushcast_runtime.storage.store import SqliteStore

async def main():
    store = SqliteStore(Path(sys.argv[1]))
    async with trio.open_nursery() as nursery:
        nursery.start_soon(store.run)
        number = 0
        while True:
            await store.write(Change("k", number.to_bytes(8, "big"), b"x" * 1000))
            print(number, flush=True)
            number += 1

trio.run(main)
"""


def write_and_kill(path: Path, count: int) -> int:
    """Kill the writer right after it was told of `count` commits; return how many it was told of in all."""
    with subprocess.Popen([sys.executable, "-c", WRITER, str(path)], stdout=subprocess.PIPE) as child:
        assert child.stdout is not None
        for number in range(count):
            assert child.stdout.readline() == b"%d\n" % number
        os.kill(child.pid, signal.SIGKILL)
        return count + len(child.stdout.read().splitlines())


@pytest.mark.parametrize("count", [1, 40])
async def test_what_a_write_returned_for_survives_a_kill(tmp_path: Path, count: int) -> None:
    path = tmp_path / "state.db"
    told = await trio.to_thread.run_sync(write_and_kill, path, count)
    store = SqliteStore(path)
    keys = [int.from_bytes(key, "big") for key, _ in await store.scan("k")]
    store.close()
    assert keys[: len(keys)] == list(range(len(keys)))
    assert len(keys) in (told, told + 1)  # the one being written may have been committed, too


class CountingStore(SqliteStore):
    """Counts commits; the first waits until the test lets it go."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self.commits: list[int] = []

    def _commit(self, batch: Commit) -> bool:
        self.commits.append(len(batch))
        return super()._commit(batch)


async def test_concurrent_writers_share_commits(tmp_path: Path) -> None:
    store = CountingStore(tmp_path / "state.db")
    async with running(store):
        async with trio.open_nursery() as nursery:
            for number in range(500):
                nursery.start_soon(store.write, Change("k", b"%d" % number, b""))
        assert sum(store.commits) == 500
        assert len(store.commits) <= 5
        assert len(await store.scan("k")) == 500
    store.close()


async def test_nobody_waits_for_a_commit_that_does_not_hold_its_record(tmp_path: Path) -> None:
    """A writer who comes while one commit is on its way is told by the next, and not before."""
    store = CountingStore(tmp_path / "state.db")
    async with running(store), trio.open_nursery() as nursery:
        done: list[int] = []

        async def write(number: int) -> None:
            await store.write(Change("k", b"%d" % number, b""))
            assert (b"%d" % number, b"") in await store.scan("k")
            done.append(number)

        for number in range(30):
            nursery.start_soon(write, number)
            await trio.lowlevel.checkpoint()
    assert sorted(done) == list(range(30))
    store.close()


async def test_only_its_owner_can_read_it(tmp_path: Path) -> None:
    path = tmp_path / "state.db"
    before = os.umask(0)
    try:
        store = SqliteStore(path)
        async with running(store):
            await store.write(Change("k", b"key", b"value"))
            for file in tmp_path.iterdir():
                assert file.stat().st_mode & 0o777 == 0o600, file.name
    finally:
        os.umask(before)
    store.close()


def test_a_path_that_cannot_be_opened_is_named(tmp_path: Path) -> None:
    for path in (tmp_path, tmp_path / "absent" / "state.db"):
        with pytest.raises(StoreError, match=str(path)):
            SqliteStore(path)


def test_a_file_that_is_no_database_is_named_and_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "state.db"
    path.write_bytes(b"not a database, but 512 bytes of something else" * 20)
    before = path.read_bytes()
    with pytest.raises(StoreError, match=str(path)):
        SqliteStore(path)
    assert path.read_bytes() == before


async def test_a_record_that_no_daemon_wrote_is_an_error(tmp_path: Path) -> None:
    path = tmp_path / "state.db"
    SqliteStore(path).close()
    other = sqlite3.connect(path)
    with other:
        other.execute("INSERT INTO records VALUES ('kind', X'00', 'text')")
    other.close()
    store = SqliteStore(path)
    with pytest.raises(StoreError, match="damaged"):
        await store.scan("kind")
    store.close()


def test_a_damaged_schema_is_an_error_even_where_sqlite_cannot_say_so_in_text(tmp_path: Path) -> None:
    path = tmp_path / "state.db"
    SqliteStore(path).close()
    path.write_bytes(path.read_bytes().replace(b"CREATE TABLE records", b"CREATE\x98TABLE records"))
    with pytest.raises(StoreError, match=str(path)):
        SqliteStore(path)


def test_a_damaged_size_for_which_sqlite_finds_no_memory_is_an_error(tmp_path: Path) -> None:
    path = tmp_path / "state.db"
    SqliteStore(path).close()
    with closing(sqlite3.connect(path)) as other:
        other.executescript("PRAGMA journal_mode=DELETE; PRAGMA page_size=512; VACUUM")
    data = path.read_bytes()
    at = data.index(b"tablerecords") - 10  # where the record of the table begins, with its size
    path.write_bytes(data[:at] + b"\xff" * 9 + data[at + 9 :])
    with pytest.raises(StoreError, match="it is damaged"):
        SqliteStore(path)
    with pytest.raises(StoreError, match="it is damaged"):
        read_records(path, "kind")


async def test_deleted_records_leave_no_trace_in_the_file(tmp_path: Path) -> None:
    path = tmp_path / "state.db"
    store = SqliteStore(path)
    async with running(store):
        await store.write(Change("k", b"key", b"a secret that is gone"))
        await store.write(Change("k", b"key", None))
    store.close()
    assert b"a secret that is gone" not in b"".join(file.read_bytes() for file in tmp_path.iterdir())


async def test_a_commit_takes_so_much_and_leaves_the_rest_to_the_next(tmp_path: Path) -> None:
    store = CountingStore(tmp_path / "state.db")
    large, count = bytes(stores.MAX_COMMIT // 4), 20
    for number in range(count):
        store.write_soon(Change("k", b"%02d" % number, large), Change("of", b"%02d" % number, b"one commit"))
    async with running(store):
        await store.write()
        assert len(store.commits) >= count // 4
        assert max(store.commits) <= 2 * 5
        assert all(changes % 2 == 0 for changes in store.commits), "what is written together stays together"
        assert len(await store.scan("k")) == count
    store.close()


async def test_deleting_counts_what_it_frees(tmp_path: Path) -> None:
    store = CountingStore(tmp_path / "state.db")
    for number in range(10):
        store.write_soon(Change("k", b"%02d" % number, None, stores.MAX_COMMIT))
    async with running(store):
        await store.write()
        assert len(store.commits) >= 10
    store.close()


def size_of(directory: Path) -> int:
    return sum(file.stat().st_size for file in directory.iterdir())


@pytest.mark.slow
async def test_space_is_given_back(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "state.db")
    count, large = 200, 262_287
    async with running(store):
        for number in range(count):
            store.write_soon(Change("k", b"%03d" % number, bytes(large)))
        await store.write()
        assert size_of(tmp_path) >= count * large
        for number in range(count):
            store.write_soon(Change("k", b"%03d" % number, None, large))
        await store.write()
        with trio.fail_after(60):
            while size_of(tmp_path) > stores.MAX_FREE + 2 * stores.MAX_WRITE_AHEAD:  # noqa: ASYNC110
                await trio.sleep(0.05)
    store.close()
    assert size_of(tmp_path) <= stores.MAX_FREE + 1_000_000


async def test_nothing_is_committed_behind_what_the_disk_had_no_room_for(tmp_path: Path) -> None:
    """A small change would still find room, and lie there without all that came before it."""
    path = tmp_path / "state.db"
    store = SqliteStore(path)
    pages = store._ask("page_count")
    store._connection.execute(f"PRAGMA max_page_count={pages + 50}")
    store.write_soon(Change("k", b"1", bytes(MAX_COMMIT)))
    store.write_soon(Change("k", b"2", b""))
    with pytest.raises(StoreError, match="full"):
        await store.run()
    store.close()
    again = SqliteStore(path)
    assert await again.scan("k") == []
    again.close()
