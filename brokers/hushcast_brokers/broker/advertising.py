"""Advertising: tells the parent what this broker's children have asked for, and knows what is confirmed."""

from __future__ import annotations

from bisect import bisect_right, insort
from collections.abc import Callable, Iterable
from operator import attrgetter

import trio

from hushcast_brokers.upstream import Upstream
from hushcast_protocol.base import observations
from hushcast_protocol.base.errors import Refusal
from hushcast_protocol.base.wire import encode
from hushcast_protocol.brokers.items import Item, ItemChanges
from hushcast_protocol.brokers.parent_table import ParentTable
from hushcast_runtime.counters import Counters
from hushcast_runtime.logs import log
from hushcast_runtime.time_slices import in_steps
from hushcast_runtime.tracing import Tracer

AFTER_REFUSAL = 60.0  # seconds before a parent that had no room is told everything again
_SAID_AT_ONCE = 16  # advertisements written in one step: some 3 ms
AFTER_TREE = 5.0  # seconds before one is that held another tree: it is told the newer one just now


class _Waiting:
    """A request that waits for a version to be confirmed."""

    __slots__ = ("is_refused", "over", "version")

    def __init__(self, version: int) -> None:
        self.version = version
        self.over = trio.Event()
        self.is_refused = False


_VERSION = attrgetter("version")

Rest = Callable[[], ItemChanges]
"""Takes more of what changed in a table, as much as one step has time for."""


class Advertising:
    """One broker's table on its way up; the root has nobody to tell, and confirms at once."""

    def __init__(self, is_root: bool, counters: Counters, tracer: Tracer) -> None:
        self._is_root = is_root
        self._counters = counters
        self._tracer = tracer
        self._upward = ParentTable()
        self._changed = trio.Event()
        self._waiting: list[_Waiting] = []  # in the order of versions
        self._turn = 0
        self._rest: dict[Rest, None] = {}  # of tables of which more is to be shown
        self._more = trio.Event()

    def __len__(self) -> int:
        """The number of items shown."""
        return len(self._upward.shown)

    @property
    def version(self) -> int:
        """The version of what is shown now."""
        return self._upward.version

    def recall(self, items: Iterable[Item]) -> None:
        """Show what the parent had before a restart, before the first link to it opens."""
        self._upward.recall(items)

    def change(self, changes: ItemChanges, rest: Rest | None = None) -> int:
        """Show what changed; return the version of it, which `confirmed` takes.

        Where there is more of it, `rest` is asked for that in the next steps.
        """
        version = self._upward.change(changes, rest)
        if rest is not None and changes.has_more:
            self._rest[rest] = None
            self._more.set()
        elif rest is not None:
            self._rest.pop(rest, None)
        self._changed.set()
        return version

    async def run(self) -> None:
        """Show what there was no time for, until cancelled."""
        while True:
            self._more = trio.Event()
            await self.show_rest()
            await self._more.wait()

    async def show_rest(self) -> None:
        """Show all that there was no time for, step by step."""
        while self._rest:
            for rest in list(self._rest):
                self.change(rest(), rest)
                await trio.lowlevel.checkpoint()

    def forget(self, names: Iterable[bytes]) -> None:
        """Say nothing more of items that the parent drops by itself."""
        self._upward.forget(names)

    async def confirmed(self, version: int) -> None:
        """Return once the parent has confirmed a version; raise `Refusal` where it has no room for it."""
        if self._is_root or self._upward.confirmed >= version:
            return
        waiting = _Waiting(version)
        insort(self._waiting, waiting, key=_VERSION)  # it may have waited for a disk longer than a later one
        try:
            await waiting.over.wait()
        finally:
            if not waiting.over.is_set():
                self._waiting.remove(waiting)
        if waiting.is_refused:
            raise Refusal("quota")

    async def say(self, upstream: Upstream, digest: bytes) -> None:
        """Bring a parent up to date that has a table with this digest; until the link ends."""
        self._turn += 1
        turn = self._turn
        try:
            await in_steps(self._upward.linked(digest))
            while True:
                self._settle(self._upward.confirmed)
                self._changed = trio.Event()
                if not (batch := self._upward.next()):
                    await self._changed.wait()
                    continue
                self._counters.add("advertisements_sent", sum(not said.is_question for said in batch))
                for said in batch if self._tracer.is_on else ():
                    self._tracer.observe(
                        observations.Advertised(None, tuple(map(encode, said.add)), said.remove)
                    )
                awaited = []
                for number, said in enumerate(batch, 1):
                    awaited.append(upstream.post(said.frame))
                    if number % _SAID_AT_ONCE == 0:
                        await trio.lowlevel.checkpoint()
                verdicts = [await upstream.answer(one) for one in awaited]
                refused = sum(verdict != "accepted" for verdict in verdicts)
                version = self._upward.answered(not refused)
                if refused and all(verdict in ("accepted", "tree") for verdict in verdicts):
                    await trio.sleep(AFTER_TREE)
                elif refused:
                    self._counters.add("advertisements_refused", refused)
                    log.warning("the parent has no room for what is asked for here", count=refused)
                    self._settle(version, is_refused=True)
                    await trio.sleep(AFTER_REFUSAL)
        finally:
            if turn == self._turn:
                self._upward.unlinked()

    def _settle(self, version: int, is_refused: bool = False) -> None:
        count = bisect_right(self._waiting, version, key=_VERSION)
        for waiting in self._waiting[:count]:
            waiting.is_refused = is_refused
            waiting.over.set()
        del self._waiting[:count]
