"""The store: a durable key-value store of records (kind, key, value), ordered by key, with group commit.

A task that asks for durability waits for the commit that holds its record; all tasks that ask while one
commit is in progress share the next.
"""

from __future__ import annotations

import sqlite3
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Protocol, Self, TypeVar

import msgspec
import trio

from hushcast_protocol.base.errors import HushcastError
from hushcast_protocol.base.record_kinds import RecordKind
from hushcast_protocol.base.wire import Wire
from hushcast_runtime.storage.changes import Change, Commit, packed
from hushcast_runtime.storage.failures import FAILURES, told

T = TypeVar("T")
_WAY_OUT = "restore a backup with `hushcast admin restore`"
SOON = 0.2  # seconds that a change waits for others before it is committed alone
MAX_COMMIT = 8 * 1024 * 1024  # bytes after which further changes are left to the next commit; some 0.2 s
MAX_WRITE_AHEAD = 16 * 1024 * 1024  # bytes that the write-ahead log keeps on disk when it is not used
MAX_FREE = 16 * 1024 * 1024  # bytes of free pages that the file keeps for new records
_SHRINK_STEP = 1024  # pages given back at once; commits wait meanwhile
AT_ONCE = 1024  # records read at once, where they are small
_TABLE = (
    "CREATE TABLE IF NOT EXISTS records"
    " (kind TEXT NOT NULL, key BLOB NOT NULL, value BLOB NOT NULL, PRIMARY KEY (kind, key))"
)

_PUT = "INSERT OR REPLACE INTO records VALUES "
_DELETE = "DELETE FROM records WHERE kind = ? AND key IN "
_ROWS = 32  # records of one statement: after each its thread waits for its turn, which a busy loop delays


class StoreError(HushcastError):
    """The disk failed to write or read; the text is the database's."""


def damaged(name: str, without: str = "") -> StoreError:
    """Return the error of a damaged record; `without` says why nothing goes on without what it held."""
    return StoreError(f"a record in the database is damaged ({name}): {without}{_WAY_OUT}")


def record_reader(kind: type[T], name: str, without: str = "") -> Callable[[bytes], T]:
    """Return a function that decodes a record into `kind`, or raises what `damaged` returns."""
    inner = msgspec.msgpack.Decoder(kind)

    def read(data: bytes) -> T:
        try:
            return inner.decode(data)
        except (msgspec.MsgspecError, ValueError, RecursionError):
            raise damaged(name, without) from None

    return read


class Store(Protocol):
    """Ordered records that survive the process, or, in simulations, live as long as it."""

    @property
    def version(self) -> int:
        """The version of the records' layout; 0 in a new store, and where no program has written one."""

    async def run(self) -> None:
        """Commit what is written until cancelled, in a task of the daemon; return if nothing is to commit."""

    async def write(self, *changes: Change) -> None:
        """Make changes and return once they, and all that were made before, are durable."""

    def write_soon(self, *changes: Change) -> None:
        """Make changes without waiting: a crash within the next moments loses all of them or none."""

    async def advance(self, version: int, *changes: Change) -> None:
        """Make changes and set the layout's version, in one commit; durable on return."""

    async def scan(
        self, kind: RecordKind, prefix: bytes = b"", after: bytes | None = None, limit: int = -1
    ) -> list[tuple[bytes, bytes]]:
        """Return the records of a kind whose keys begin with `prefix` and, if given, lie above `after`.

        In order of key, at most `limit` of them (-1: all).
        """

    def close(self) -> None:
        """Commit what was written, and close."""


class Records:
    """All records of a kind as `Store.scan` has them, for `async for`; so many are read at once.

    It is no generator: a loop that a damaged record ends would leave one unfinished.
    """

    def __init__(self, store: Store, kind: RecordKind, prefix: bytes = b"", at_once: int = AT_ONCE) -> None:
        self._scan = partial(store.scan, kind, prefix, limit=at_once)
        self._read: deque[tuple[bytes, bytes]] = deque()
        self._after: bytes | None = None

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> tuple[bytes, bytes]:
        if not self._read:
            self._read.extend(await self._scan(after=self._after))
        if not self._read:
            raise StopAsyncIteration
        record = self._read.popleft()
        self._after = record[0]
        return record


class MemoryStore:
    """A store for simulations; it outlives a simulated daemon's restart if the caller keeps it."""

    def __init__(self) -> None:
        self.version = 0
        self._records: dict[RecordKind, dict[bytes, bytes | Wire]] = {}

    async def run(self) -> None:
        """Return: there is nothing to commit."""

    async def write(self, *changes: Change) -> None:
        """Make changes."""
        self.write_soon(*changes)
        await trio.lowlevel.checkpoint()

    def write_soon(self, *changes: Change) -> None:
        """Make changes."""
        for change in changes:
            if (records := self._records.get(change.kind)) is None:
                records = self._records[change.kind] = {}
            if change.value is None:
                records.pop(change.key, None)
            else:
                records[change.key] = change.value

    async def advance(self, version: int, *changes: Change) -> None:
        """Make changes and set the version."""
        await self.write(*changes)
        self.version = version

    async def scan(
        self, kind: RecordKind, prefix: bytes = b"", after: bytes | None = None, limit: int = -1
    ) -> list[tuple[bytes, bytes]]:
        """Return records in order."""
        records = self._records.get(kind) or {}  # most kinds are empty at a start, and cost no turn
        checkpoint = trio.lowlevel.checkpoint if records else trio.lowlevel.checkpoint_if_cancelled
        await checkpoint()
        keys = sorted(key for key in records if key.startswith(prefix) and (after is None or key > after))
        return [(key, packed(records[key])) for key in keys[: None if limit < 0 else limit]]

    def close(self) -> None:
        """Nothing to do."""


class SqliteStore:
    """Records in one SQLite database, readable by its owner only."""

    def __init__(self, path: Path) -> None:
        """Open or create the database; raise `StoreError` if that fails."""
        try:
            path.touch(mode=0o600, exist_ok=True)
            self._connection = sqlite3.connect(path, check_same_thread=False, isolation_level=None)
            # It counts before the first page is written, and never again.
            self._connection.execute("PRAGMA auto_vacuum=INCREMENTAL")
            # One connection: several of them under WAL can corrupt before SQLite 3.51.3.
            self._connection.execute("PRAGMA journal_mode=WAL")
            self._connection.execute(f"PRAGMA journal_size_limit={MAX_WRITE_AHEAD}")
            self._connection.execute("PRAGMA synchronous=FULL")
            self._connection.execute("PRAGMA secure_delete=ON")
            self._connection.execute(_TABLE)
            self._page = self._ask("page_size")
            self._version = self._ask("user_version")
        except (*FAILURES, OSError) as error:
            raise StoreError(f"the database {path} cannot be opened: {told(error)}") from error
        self._threads = trio.CapacityLimiter(1)  # the connection is used by one thread at a time
        self._commits = deque([Commit()])  # the first is committed next, the last takes what comes
        self._arrival = trio.Event()
        self._urgent = trio.Event()
        self._failed = False

    @property
    def version(self) -> int:
        """The layout's version, which SQLite keeps in the file's header for the programs that use it."""
        return self._version

    async def run(self) -> None:
        """Make commits one after the other until cancelled; between them give back what is free."""
        has_free = True  # perhaps, of before
        while True:
            if has_free:
                has_free = await self._in_thread(self._shrink)
                if has_free and not self._arrival.is_set():
                    continue
            await self._arrival.wait()
            # Changes that nobody waits for are committed with ones that somebody does, or alone a moment
            # later.
            if not self._urgent.is_set():
                with trio.move_on_after(SOON):
                    await self._urgent.wait()
            commit = self._take()
            has_free = await self._in_thread(self._commit, commit)
            commit.done.set()

    async def write(self, *changes: Change) -> None:
        """Make changes and return once they are committed, and all before them."""
        self.write_soon(*changes)
        commit = self._commits[-1]
        self._urgent.set()
        await commit.done.wait()

    async def advance(self, version: int, *changes: Change) -> None:
        """Make changes and set the version, in one commit."""
        self.write_soon(*changes)
        self._commits[-1].version = version
        await self.write()

    def write_soon(self, *changes: Change) -> None:
        """Make changes, atomically in one of the next commits."""
        commit = self._commits[-1]
        if commit.size >= MAX_COMMIT:
            commit = Commit()
            self._commits.append(commit)
            self._urgent.set()
        commit.add(changes)
        self._arrival.set()

    async def scan(
        self, kind: RecordKind, prefix: bytes = b"", after: bytes | None = None, limit: int = -1
    ) -> list[tuple[bytes, bytes]]:
        """Return committed records in order."""
        return await trio.to_thread.run_sync(self._select, kind, prefix, after, limit, limiter=self._threads)

    def close(self) -> None:
        """Commit what is waiting, unless a commit failed before, and close. Call it when `run` has ended."""
        for commit in () if self._failed else self._commits:
            self._commit(commit)
            commit.done.set()
        self._connection.close()

    def _take(self) -> Commit:
        commit = self._commits.popleft()
        if not self._commits:
            self._commits.append(Commit())
            self._arrival, self._urgent = trio.Event(), trio.Event()
        return commit

    async def _in_thread(self, work: Callable[..., T], *args: object) -> T:
        results: list[T] = []
        with trio.CancelScope(shield=True):  # a commit that was taken is made, even while stopping
            results.append(await trio.to_thread.run_sync(work, *args, limiter=self._threads))
        return results[0]

    def _ask(self, pragma: str) -> int:
        return int(self._connection.execute(f"PRAGMA {pragma}").fetchone()[0])

    def _shrink(self) -> bool:
        """Give back some of the free pages above `MAX_FREE`; return whether there are more."""
        try:
            before = self._ask("freelist_count")
            if before * self._page <= MAX_FREE:
                return False
            # Each row that is fetched is a page given back.
            self._connection.execute(f"PRAGMA incremental_vacuum({_SHRINK_STEP})").fetchall()
            left = self._ask("freelist_count")
        except FAILURES as error:
            raise StoreError(f"the database cannot be written: {told(error)}") from error
        return left < before and left * self._page > MAX_FREE

    def _select(
        self, kind: RecordKind, prefix: bytes, after: bytes | None, limit: int
    ) -> list[tuple[bytes, bytes]]:
        # One bound from below: of two SQLite seeks by the first, and goes through all that was read before.
        is_behind = after is not None and after >= prefix
        query = f"SELECT key, value FROM records WHERE kind = ? AND key {'>' if is_behind else '>='} ?"  # noqa: S608
        bounds: list[object] = [kind, after if is_behind else prefix]
        if (end := _end_of(prefix)) is not None:
            query += " AND key < ?"
            bounds.append(end)
        try:
            found = self._connection.execute(query + " ORDER BY key LIMIT ?", (*bounds, limit)).fetchall()
        except FAILURES as error:
            raise StoreError(f"the database cannot be read: {told(error)}") from error
        if not all(type(key) is type(value) is bytes for key, value in found):
            raise StoreError("the database is damaged: it holds records that no daemon wrote")
        return found

    def _commit(self, commit: Commit) -> bool:
        """Make changes durable; return whether there are more free pages than `MAX_FREE`."""
        try:
            self._connection.execute("BEGIN")
            _apply(self._connection, commit)
            if commit.version is not None:
                self._connection.execute(f"PRAGMA user_version={commit.version:d}")
            free = self._ask("freelist_count")  # within: it would lock the file once more by itself
            self._connection.execute("COMMIT")
            self._version = self._version if commit.version is None else commit.version
        except FAILURES as error:
            self._failed = True
            raise StoreError(f"the database cannot be written: {told(error)}") from error
        return free * self._page > MAX_FREE


def change_records(path: Path, *changes: Change) -> None:
    """Make changes to the database of a daemon that does not run, in one commit; raise `StoreError`."""
    try:
        with closing(sqlite3.connect(path)) as connection, connection:
            connection.execute(_TABLE)
            _apply(connection, Commit(changes))
    except FAILURES as error:
        raise StoreError(f"the database {path} cannot be written: {told(error)}") from error


def _apply(connection: sqlite3.Connection, commit: Commit) -> None:
    for some in _in_rows(list(commit.puts())):
        connection.execute(_PUT + ",".join(["(?,?,?)"] * len(some)), [*chain(*some)])
    for kind, keys in commit.gone():
        for few in _in_rows(keys):
            connection.execute(_DELETE + f"({','.join('?' * len(few))})", [kind, *few])


def _in_rows(rows: list[T]) -> Iterator[list[T]]:
    return (rows[start : start + _ROWS] for start in range(0, len(rows), _ROWS))


def forget_kinds(path: Path, kinds: Sequence[str]) -> None:
    """Delete all records of some kinds from the database of a daemon that does not run; `StoreError`."""
    try:
        with closing(sqlite3.connect(path, isolation_level=None)) as connection:
            connection.execute("PRAGMA secure_delete=ON")
            marks = ",".join("?" * len(kinds))
            connection.execute(f"DELETE FROM records WHERE kind IN ({marks})", kinds)  # noqa: S608 - marks alone
    except FAILURES as error:
        raise StoreError(f"the database {path} cannot be written: {told(error)}") from error


def read_records(path: Path, kind: RecordKind) -> list[tuple[bytes, bytes]]:
    """Return all records of a kind, in order, from a database, in use or not; raises `StoreError`."""
    try:
        # Changes nothing; what is only in the write-ahead log is seen, too.
        with closing(sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True)) as connection:
            rows = connection.execute("SELECT key, value FROM records WHERE kind = ? ORDER BY key", (kind,))
            return [(bytes(key), bytes(value)) for key, value in rows]
    except (*FAILURES, OSError) as error:
        raise StoreError(f"the database {path} cannot be read: {told(error)}") from error


def _end_of(prefix: bytes) -> bytes | None:
    """Return the least key above all that begin with `prefix`, `None` where there is none."""
    stem = prefix.rstrip(b"\xff")
    return stem[:-1] + bytes([stem[-1] + 1]) if stem else None
