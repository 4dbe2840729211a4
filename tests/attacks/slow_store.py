"""A store whose commits take their time, one after the other."""

from __future__ import annotations

import trio

from hushcast_runtime.storage.changes import Change
from hushcast_runtime.storage.store import SOON, MemoryStore


class SlowStore(MemoryStore):
    """In memory, with a disk's pace."""

    def __init__(self, a_change: float, a_commit: float = 0.0) -> None:
        """Take so many seconds for each change, and for each commit that has any."""
        super().__init__()
        self._a_change, self._a_commit = a_change, a_commit
        self._changes = 0
        self._turn = trio.Lock()

    async def run(self) -> None:
        while True:
            await trio.sleep(SOON)
            await self.write()

    async def write(self, *changes: Change) -> None:
        self.write_soon(*changes)
        async with self._turn:
            waiting, self._changes = self._changes, 0
            if waiting:
                await trio.sleep(waiting * self._a_change + self._a_commit)

    def write_soon(self, *changes: Change) -> None:
        self._changes += len(changes)
        super().write_soon(*changes)
