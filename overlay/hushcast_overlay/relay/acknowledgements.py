"""Acknowledgements of what links brought: each once it is on disk, or was acknowledged by all its next hops.

What the next hops take over within a moment need not be written. So a link waits that moment, which begins
with what it brought itself, and a commit is over by then: what others bring does not show.
"""

from __future__ import annotations

from collections.abc import Iterable

import trio

from hushcast_overlay.relay.session import Session
from hushcast_runtime.context import Context
from hushcast_runtime.storage.spool import Spool

WRITE_AFTER = 0.2  # seconds; of a next hop over Tor an acknowledgement takes longer
ACKNOWLEDGE_AFTER = 0.25  # seconds; how long a commit took, of what all links brought, shows only above it
MAX_UNWRITTEN = 2 * 1024 * 1024  # bytes that a link brings before it waits for the disk; half a window


class Acknowledgements:
    """What one relay owes on its links."""

    def __init__(self, spool: Spool, context: Context) -> None:
        self._spool = spool
        self._spawn = context.spawn
        self._timetable = context.timetable

    async def take_over(self, link: Session, count: int, size: int, unrouted: Iterable[int]) -> None:
        """Have messages of `size` bytes, which were put into the spool, acknowledged once that is right.

        Where much is not yet, this waits for it, and whoever reads the link.
        """
        if not link.take_over(count, unrouted):
            link.give_up()
            return
        if link.unwritten is None:
            self._timetable.after(WRITE_AFTER, self._look, link)
        link.unwritten = (link.unwritten or 0) + size
        if link.unwritten >= MAX_UNWRITTEN:
            link.unwritten = 0
            await self._acknowledge(link, trio.current_time())
        else:
            await trio.lowlevel.checkpoint()

    def _look(self, link: Session) -> None:
        link.unwritten = None
        if not link.is_over:
            moment = trio.current_time() + ACKNOWLEDGE_AFTER - WRITE_AFTER
            self._spawn(self._acknowledge, link, moment)

    async def _acknowledge(self, link: Session, moment: float) -> None:
        taken = link.taken
        await self._spool.durable()
        await trio.sleep_until(moment)
        link.owe(taken)
        link.flush()
