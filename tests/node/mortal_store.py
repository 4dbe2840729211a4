"""A store in memory that can be killed."""

from __future__ import annotations

import trio

from hushcast_runtime.storage.changes import Change
from hushcast_runtime.storage.store import MemoryStore


class MortalStore(MemoryStore):
    """Forgets, when it dies, what nobody waited for: as a database whose process is killed."""

    def __init__(self) -> None:
        super().__init__()
        self._unwritten: list[Change] = []

    def write_soon(self, *changes: Change) -> None:
        self._unwritten += changes

    async def write(self, *changes: Change) -> None:
        self._unwritten += changes
        await trio.lowlevel.checkpoint()  # whoever is cancelled here has handed them over all the same
        super().write_soon(*self._unwritten)
        self._unwritten = []

    def die(self) -> None:
        self._unwritten = []
