"""Contact: what became of a daemon's last attempts at those who carry its messages."""

from __future__ import annotations

import math
from collections.abc import Callable

import trio

LOST_AFTER = 6  # attempts in a row: all that two publications make; on the overlay, at relays drawn at random


class Contact:
    """Attempts at whoever does the same for a daemon, such as relays, or proxies of a role."""

    def __init__(self, elapsed: Callable[[], float]) -> None:
        """`elapsed` tells seconds of a clock that nobody sets."""
        self._elapsed = elapsed
        self._was_lost: trio.Event | None = None  # made for those who wait for it
        self._worked_at: float | None = None
        self.failed = 0
        """Attempts that failed since one worked."""

    @property
    def is_lost(self) -> bool:
        """Whether so many failed in a row that the network, or this daemon's way to it, is gone."""
        return self.failed >= LOST_AFTER

    @property
    def age(self) -> float:
        """Seconds since an attempt worked; infinite where none did."""
        return math.inf if self._worked_at is None else self._elapsed() - self._worked_at

    def note(self, worked: bool) -> None:
        """Note how an attempt went."""
        if worked:
            self._worked_at, self.failed = self._elapsed(), 0
        else:
            self.failed += 1
            if self.is_lost and self._was_lost is not None:
                self._was_lost.set()
                self._was_lost = None

    async def lost(self) -> None:
        """Return once so many failed in a row, at once where that is so."""
        if self.is_lost:
            await trio.lowlevel.checkpoint()
            return
        self._was_lost = self._was_lost or trio.Event()
        await self._was_lost.wait()
