"""Few at once: so many at once, and the others in the order in which they came."""

from __future__ import annotations

import trio


class FewAtOnce:
    """Lets so many into `async with` at once.

    A daemon has a dozen of these, most of which nobody ever waits for: what few need is made when they need
    it. Each takes 60 bytes, a lock or limiter of trio's 330 and 625.
    """

    __slots__ = ("_free", "_waiting")

    def __init__(self, most: int = 1) -> None:
        self._free = most
        self._waiting: trio.lowlevel.ParkingLot | None = None

    async def __aenter__(self) -> None:
        await trio.lowlevel.checkpoint_if_cancelled()
        if self._free:
            self._free -= 1
            await trio.lowlevel.cancel_shielded_checkpoint()
            return
        if self._waiting is None:
            self._waiting = trio.lowlevel.ParkingLot()
        await self._waiting.park()  # until it is handed on

    async def __aexit__(self, *_: object) -> None:
        if self._waiting:
            self._waiting.unpark()
        else:
            self._waiting = None
            self._free += 1
