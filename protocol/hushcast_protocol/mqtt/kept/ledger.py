"""The ledger: what a broker wants written to disk, and how far that has been done."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import NamedTuple

from hushcast_protocol.base.record_kinds import RecordKind


class LedgerChange(NamedTuple):
    """A record to put, or to delete if `value` is `None`."""

    kind: RecordKind
    key: bytes
    value: bytes | None


class Ledger:
    """Changes in order. What depends on them waits until `durable` reaches the `made` of their moment."""

    def __init__(self) -> None:
        self._changes: list[LedgerChange] = []
        self.made = 0
        """Changes made so far."""
        self.durable = 0
        """How many of them are on disk."""
        self._awaited: deque[tuple[int, Callable[[], None]]] = deque()

    def put(self, kind: RecordKind, key: bytes, value: bytes) -> None:
        """Write a record."""
        self._changes.append(LedgerChange(kind, key, value))
        self.made += 1

    def delete(self, kind: RecordKind, key: bytes) -> None:
        """Delete a record."""
        self._changes.append(LedgerChange(kind, key, None))
        self.made += 1

    def once_stored(self, before: int, call: Callable[[], None]) -> None:
        """Call a function when all changes are on disk that were made after `made` was `before`."""
        if self.made == before:
            call()
        else:
            self._awaited.append((self.made, call))

    @property
    def is_awaited(self) -> bool:
        """Whether something is to be called."""
        return bool(self._awaited)

    @property
    def is_due(self) -> bool:
        """Whether something is to be called now: what it waits for is `durable`."""
        return bool(self._awaited) and self._awaited[0][0] <= self.durable

    def call(self) -> None:
        """Call the first that is due."""
        self._awaited.popleft()[1]()

    def take(self) -> list[LedgerChange]:
        """Return the changes that were not taken yet; whoever takes them writes them, all or none."""
        taken, self._changes = self._changes, []
        return taken

    def __len__(self) -> int:
        """Return how many were not taken yet."""
        return len(self._changes)
