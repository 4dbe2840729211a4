"""A disk that hangs, for daemons that are to die meanwhile."""

from __future__ import annotations

import trio

from hushcast_runtime.storage.changes import Change
from hushcast_runtime.storage.store import MemoryStore, Store


class Disk(MemoryStore):
    """A store whose disk can hang: what is written then is lost if the daemon dies."""

    def __init__(self, before: Store) -> None:
        """Hold what a store in memory held."""
        super().__init__()
        assert isinstance(before, MemoryStore)
        self._records = before._records
        self._turns = trio.Event()
        self._turns.set()
        self._waiting: list[Change] = []

    def hang(self) -> None:
        self._turns = trio.Event()

    def turn(self) -> None:
        """Turn again, with all that was written meanwhile."""
        self._turns.set()
        self.write_soon(*self._waiting)
        self._waiting.clear()

    def lose(self) -> None:
        """Turn again, without what was written meanwhile."""
        self._waiting.clear()
        self._turns.set()

    async def write(self, *changes: Change) -> None:
        self.write_soon(*changes)
        await self._turns.wait()
        await trio.lowlevel.checkpoint()

    def write_soon(self, *changes: Change) -> None:
        if self._turns.is_set():
            super().write_soon(*changes)
        else:
            self._waiting += changes
