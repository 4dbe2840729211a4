"""Turns of those who come in any number, as strangers do, beside others who are not to notice it.

One has its turn in a pass of the loop, so that whoever else waits, waits for one of them and not for all.
Where passes are long for other reasons, one more has its turn for each `EACH` seconds of a pass: else few of
them, by what little they take, would keep all who come waiting.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import trio

EACH = 0.001  # seconds of a pass for each turn: more than one takes, so that all of them together take a part

Turn = Callable[[], Awaitable[None]]
"""Returns when it is a task's turn to do what takes a while."""
NO_TURN: Turn = trio.lowlevel.checkpoint
"""That of whoever takes none: others come first, once."""


class Turns:
    """Turns in the order in which they are asked for."""

    def __init__(self) -> None:
        self._waiting = trio.lowlevel.ParkingLot()
        self._called = 0  # of those who wait: they have their turns in the next pass
        self._since = 0.0  # when the first of a pass had its turn

    async def take(self) -> None:
        """Return when it is this task's turn, which lasts until it waits for anything."""
        if self._called:
            await self._waiting.park()
        else:
            self._called, self._since = 1, trio.current_time()
            await trio.lowlevel.cancel_shielded_checkpoint()  # whoever is called calls others
        self._called -= 1
        self._call()

    def _call(self) -> None:
        """Call those whose turns are in the next pass."""
        now = trio.current_time()
        count = int((now - self._since) / EACH)
        if count or not self._called:
            self._since = now
            self._called += len(self._waiting.unpark(count=max(1, count)))
