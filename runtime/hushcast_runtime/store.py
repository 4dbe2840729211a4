"""The store: what a daemon must not forget, as records (kind, key, value) in order of key.

Writes are committed in batches: whoever asks for durability waits for the commit that holds its record, and
all who ask while one commit is on its way share the next.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol, TypeVar

import msgspec
import trio

from hushcast_protocol.errors import HushcastError

_FAILURES = (sqlite3.Error, UnicodeDecodeError)
"""A damaged schema is quoted in SQLite's message, which then may be no text."""

T = TypeVar("T")

SOON = 0.2  # seconds that a change waits for company before it is committed alone


class StoreError(HushcastError):
    """The disk did not take or give what it should; the text says what the database said."""


def record_reader(kind: type[T], name: str) -> Callable[[bytes], T]:
    """Return a function that decodes a record into `kind`, or raises `StoreError` if it is damaged."""
    inner = msgspec.msgpack.Decoder(kind)

    def read(data: bytes) -> T:
        try:
            return inner.decode(data)
        except (msgspec.MsgspecError, ValueError, RecursionError):
            raise StoreError(
                f"a record in the database is damaged ({name}): restore the state directory from a backup"
            ) from None

    return read


class Change(msgspec.Struct, frozen=True, gc=False):
    """A record to put, or to delete where `value` is `None`."""

    kind: str
    key: bytes
    value: bytes | None


class Store(Protocol):
    """Ordered records that survive the process, or, in simulations, live as long as it."""

    async def run(self) -> None:
        """Commit what is written until cancelled; one task of the daemon."""

    async def write(self, *changes: Change) -> None:
        """Make changes and return once they are durable."""

    def write_soon(self, *changes: Change) -> None:
        """Make changes that may be lost if the process dies within the next moments."""

    async def scan(
        self, kind: str, prefix: bytes = b"", after: bytes | None = None, limit: int = -1
    ) -> list[tuple[bytes, bytes]]:
        """Return the records of a kind whose keys begin with `prefix` and, if given, lie above `after`.

        In order of key, at most `limit` of them (-1: all).
        """

    def close(self) -> None:
        """Commit what was written, and close."""


class MemoryStore:
    """A store for simulations; it outlives a simulated daemon's restart if the caller keeps it."""

    def __init__(self) -> None:
        self._records: dict[str, dict[bytes, bytes]] = {}

    async def run(self) -> None:
        """Nothing to do."""
        await trio.sleep_forever()

    async def write(self, *changes: Change) -> None:
        """Make changes."""
        self.write_soon(*changes)
        await trio.lowlevel.checkpoint()

    def write_soon(self, *changes: Change) -> None:
        """Make changes."""
        for change in changes:
            records = self._records.setdefault(change.kind, {})
            if change.value is None:
                records.pop(change.key, None)
            else:
                records[change.key] = change.value

    async def scan(
        self, kind: str, prefix: bytes = b"", after: bytes | None = None, limit: int = -1
    ) -> list[tuple[bytes, bytes]]:
        """Return records in order."""
        await trio.lowlevel.checkpoint()
        records = self._records.get(kind, {})
        found = sorted(
            item
            for item in records.items()
            if item[0].startswith(prefix) and (after is None or item[0] > after)
        )
        return found if limit < 0 else found[:limit]

    def close(self) -> None:
        """Nothing to do."""


@dataclass
class _Batch:
    """Changes that go into one commit, and who waits for it."""

    changes: list[Change] = field(default_factory=list)
    done: trio.Event = field(default_factory=trio.Event)


class SqliteStore:
    """Records in one SQLite database, readable by its owner only."""

    def __init__(self, path: Path) -> None:
        """Open or create the database; raise `StoreError` if that fails."""
        try:
            path.touch(mode=0o600, exist_ok=True)
            self._connection = sqlite3.connect(path, check_same_thread=False, isolation_level=None)
            # One connection: several of them under WAL can corrupt before SQLite 3.51.3.
            self._connection.execute("PRAGMA journal_mode=WAL")
            self._connection.execute("PRAGMA synchronous=FULL")
            self._connection.execute("PRAGMA secure_delete=ON")
            self._connection.execute(
                "CREATE TABLE IF NOT EXISTS records"
                " (kind TEXT NOT NULL, key BLOB NOT NULL, value BLOB NOT NULL, PRIMARY KEY (kind, key))"
            )
        except (*_FAILURES, OSError) as error:
            raise StoreError(f"the database {path} cannot be opened: {error}") from error
        self._threads = trio.CapacityLimiter(1)  # the connection is used by one thread at a time
        self._pending = _Batch()
        self._arrival = trio.Event()
        self._urgent = trio.Event()

    async def run(self) -> None:
        """Commit batches one after the other until cancelled."""
        while True:
            await self._arrival.wait()
            # What nobody waits for travels with what somebody does, or goes alone a moment later.
            with trio.move_on_after(SOON):
                await self._urgent.wait()
            self._arrival, self._urgent = trio.Event(), trio.Event()
            batch, self._pending = self._pending, _Batch()
            with trio.CancelScope(shield=True):  # a batch that was taken is committed, even while stopping
                await trio.to_thread.run_sync(self._commit, batch.changes, limiter=self._threads)
            batch.done.set()

    async def write(self, *changes: Change) -> None:
        """Make changes and return once they are committed."""
        batch = self._pending
        self.write_soon(*changes)
        self._urgent.set()
        await batch.done.wait()

    def write_soon(self, *changes: Change) -> None:
        """Make changes with the next commit."""
        self._pending.changes.extend(changes)
        self._arrival.set()

    async def scan(
        self, kind: str, prefix: bytes = b"", after: bytes | None = None, limit: int = -1
    ) -> list[tuple[bytes, bytes]]:
        """Return committed records in order."""
        return await trio.to_thread.run_sync(self._select, kind, prefix, after, limit, limiter=self._threads)

    def close(self) -> None:
        """Commit what is waiting, and close. Call it when `run` has ended."""
        self._commit(self._pending.changes)
        self._pending.done.set()
        self._connection.close()

    def _select(self, kind: str, prefix: bytes, after: bytes | None, limit: int) -> list[tuple[bytes, bytes]]:
        query = "SELECT key, value FROM records WHERE kind = ? AND key >= ?"
        bounds: list[object] = [kind, prefix]
        if after is not None:
            query += " AND key > ?"
            bounds.append(after)
        if (end := _end_of(prefix)) is not None:
            query += " AND key < ?"
            bounds.append(end)
        try:
            found = self._connection.execute(query + " ORDER BY key LIMIT ?", (*bounds, limit)).fetchall()
        except _FAILURES as error:
            raise StoreError(f"the database cannot be read: {error}") from error
        if not all(type(key) is type(value) is bytes for key, value in found):
            raise StoreError("the database is damaged: it holds records that no daemon wrote")
        return found

    def _commit(self, changes: Iterable[Change]) -> None:
        try:
            self._connection.execute("BEGIN")
            for change in changes:
                if change.value is None:
                    self._connection.execute(
                        "DELETE FROM records WHERE kind = ? AND key = ?", (change.kind, change.key)
                    )
                else:
                    self._connection.execute(
                        "INSERT OR REPLACE INTO records VALUES (?, ?, ?)",
                        (change.kind, change.key, change.value),
                    )
            self._connection.execute("COMMIT")
        except _FAILURES as error:
            raise StoreError(f"the database cannot be written: {error}") from error


def _end_of(prefix: bytes) -> bytes | None:
    """Return the least key above all that begin with `prefix`, `None` where there is none."""
    stem = prefix.rstrip(b"\xff")
    return stem[:-1] + bytes([stem[-1] + 1]) if stem else None
