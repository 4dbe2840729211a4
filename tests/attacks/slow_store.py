"""A store whose commits take their time, one after the other: as much as is in them."""

from __future__ import annotations

import trio

from hushcast_runtime.storage.store import SOON, Change, MemoryStore


class SlowStore(MemoryStore):
    """In memory, with a disk's pace."""

    def __init__(self, seconds: float) -> None:
        """`seconds` are what each change takes."""
        super().__init__()
        self._seconds = seconds
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
            await trio.sleep(waiting * self._seconds)

    def write_soon(self, *changes: Change) -> None:
        self._changes += len(changes)
        super().write_soon(*changes)
