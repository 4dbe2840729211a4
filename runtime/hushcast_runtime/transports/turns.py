"""Turns that tasks take one after the other, one a pass of the loop: others wait for one of them, not all."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import trio

Turn = Callable[[], Awaitable[None]]
"""Returns when it is a task's turn to do what takes a while."""
NO_TURN: Turn = trio.lowlevel.checkpoint
"""That of whoever takes none: others come first, once."""


class Turns:
    """Turns of those who come in any number, as strangers do, beside those who are not to notice it."""

    def __init__(self) -> None:
        self._lock = trio.Lock()

    async def take(self) -> None:
        """Return when it is this task's turn, which lasts until it waits for anything."""
        async with self._lock:  # it goes to the next one in the next pass
            pass
