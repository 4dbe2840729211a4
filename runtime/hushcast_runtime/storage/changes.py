"""Changes to a store's records, and the commits that make them durable."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import msgspec
import trio

from hushcast_protocol.base.record_kinds import RecordKind
from hushcast_protocol.base.wire import Wire, encode

_CHANGE = 100  # bytes that a change counts beside its value


class Change(msgspec.Struct, frozen=True, gc=False):
    """A record to put, or to delete if `value` is `None`."""

    kind: RecordKind
    key: bytes
    value: bytes | Wire | None
    """What is not bytes is encoded when it is committed, which need never be."""
    size: int = 0
    """Bytes that are written beside: of a value that is not bytes, or of a large record that is deleted,
    which are overwritten."""
    is_new: bool = False
    """Whether its place never had a record. If it is deleted before the commit, nothing is written."""


def packed(value: bytes | Wire) -> bytes:
    """Return a value as it lies in a store."""
    return value if type(value) is bytes else encode(value)


class Commit:
    """Changes that are made together, of which the last one to a record counts, and who waits for them."""

    __slots__ = ("_changes", "done", "size", "version")

    def __init__(self, changes: Iterable[Change] = ()) -> None:
        self._changes: dict[RecordKind, dict[bytes, Change]] = {}
        self.size = 0
        """Bytes to be written, about."""
        self.version: int | None = None
        """The layout's, if this sets it."""
        self.done = trio.Event()
        self.add(changes)

    def add(self, changes: Iterable[Change]) -> None:
        """Add changes, each behind those before."""
        kind: RecordKind | None = None
        held: dict[bytes, Change] = {}
        for change in changes:
            if change.kind is not kind:
                kind = change.kind
                held = self._changes.setdefault(kind, {})
            value = change.value
            if value is None and (put := held.get(change.key)) is not None and put.is_new:
                del held[change.key]
                self.size -= _size(put)
            else:
                held[change.key] = change
                self.size += _size(change)

    def __len__(self) -> int:
        """Return how many records it changes."""
        return sum(map(len, self._changes.values()))

    def puts(self) -> Iterator[tuple[RecordKind, bytes, bytes]]:
        """Yield kind, key and value of all records that it puts."""
        for kind, held in self._changes.items():
            for key, change in held.items():
                if change.value is not None:
                    yield kind, key, packed(change.value)

    def gone(self) -> Iterator[tuple[RecordKind, list[bytes]]]:
        """Yield the keys that it deletes, by kind."""
        for kind, held in self._changes.items():
            if keys := [key for key, change in held.items() if change.value is None]:
                yield kind, keys


def _size(change: Change) -> int:
    return _CHANGE + change.size + (len(change.value) if type(change.value) is bytes else 0)
