"""A disk that commits a moment later, as a real one does: who is killed before loses what was written."""

from __future__ import annotations

import trio

from hushcast_protocol.base.record_kinds import RecordKind
from hushcast_runtime.environment import Environment
from hushcast_runtime.storage.changes import Change
from hushcast_runtime.storage.store import MemoryStore, Store

COMMITS_WITHIN = 0.2  # seconds


class LateDisk(MemoryStore):
    """A store whose changes are committed in order, all of a moment together."""

    def __init__(self, before: Store, env: Environment) -> None:
        """Hold what a store in memory held."""
        super().__init__()
        assert isinstance(before, MemoryStore)
        self.version, self._records = before.version, before._records
        self._env = env
        self._waiting: list[Change] = []
        self._written = trio.Event()
        self._committed = trio.Event()
        self.lost = 0
        """Changes that were written and never committed."""

    @property
    def is_behind(self) -> bool:
        """Whether something was written and is not committed."""
        return bool(self._waiting)

    async def run(self) -> None:
        try:
            while True:
                await self._written.wait()
                await trio.sleep(self._env.uniform(0.001, COMMITS_WITHIN))
                self._commit()
        finally:  # it is killed
            self.lost += len(self._waiting)
            self._waiting.clear()

    def _commit(self) -> None:
        super().write_soon(*self._waiting)
        self._waiting.clear()
        self._written = trio.Event()
        self._committed.set()
        self._committed = trio.Event()

    async def write(self, *changes: Change) -> None:
        self.write_soon(*changes)
        if self._waiting:
            await self._committed.wait()
        else:
            await trio.lowlevel.checkpoint()

    def write_soon(self, *changes: Change) -> None:
        self._waiting += changes
        if self._waiting:
            self._written.set()

    async def scan(
        self, kind: RecordKind, prefix: bytes = b"", after: bytes | None = None, limit: int = -1
    ) -> list[tuple[bytes, bytes]]:
        await trio.sleep(self._env.uniform(0.0, 0.01))
        return await super().scan(kind, prefix, after, limit)
