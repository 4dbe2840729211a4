"""The ledger: what a broker wants written to disk, and how far that has been done."""

from __future__ import annotations

from typing import NamedTuple


class Change(NamedTuple):
    """A record to put, or to delete if `value` is `None`."""

    kind: str
    key: bytes
    value: bytes | None


class Ledger:
    """Changes in order. What depends on them waits until `durable` reaches the `made` of their moment."""

    def __init__(self) -> None:
        self._changes: list[Change] = []
        self.made = 0
        """Changes made so far."""
        self.durable = 0
        """How many of them are on disk."""

    def put(self, kind: str, key: bytes, value: bytes) -> None:
        """Write a record."""
        self._changes.append(Change(kind, key, value))
        self.made += 1

    def delete(self, kind: str, key: bytes) -> None:
        """Delete a record."""
        self._changes.append(Change(kind, key, None))
        self.made += 1

    def take(self) -> list[Change]:
        """Return the changes that were not taken yet; whoever takes them writes them, all or none."""
        taken, self._changes = self._changes, []
        return taken

    def __len__(self) -> int:
        """Return how many were not taken yet."""
        return len(self._changes)
