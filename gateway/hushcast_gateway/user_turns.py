"""Turns of users: their clients are served one after the other, however many, and others in between."""

from __future__ import annotations

from weakref import WeakValueDictionary

import trio

TURN = 0.005  # seconds after which a user whose packets take long lets the others have a turn
TURN_PACKETS = 512  # packets after which any user does; some 3 ms


class Turn:
    """One user's turn: `async with` it, one of the user's clients has it, first come, first served.

    Whoever brings it to its end keeps it until all others have been served: none of the user's clients goes
    on before.
    """

    def __init__(self) -> None:
        self._lock = trio.Lock()
        self._began = 0.0
        self._left = TURN
        self.packets_left = TURN_PACKETS
        """Packets that the user's clients may send until it ends."""

    @property
    def ends(self) -> float:
        """When it ends, of trio's clock."""
        return self._began + self._left

    async def __aenter__(self) -> None:
        try:
            self._lock.acquire_nowait()
        except trio.WouldBlock:
            await self._lock.acquire()
        self._began = trio.current_time()

    async def __aexit__(self, *_: object) -> None:
        try:
            self._left -= trio.current_time() - self._began
            if self._left <= 0 or self.packets_left <= 0:
                self._left, self.packets_left = TURN, TURN_PACKETS
                await trio.lowlevel.checkpoint()
        finally:
            self._lock.release()


class ServingTurns:
    """The turns of all users with clients."""

    def __init__(self) -> None:
        self._of: WeakValueDictionary[str, Turn] = WeakValueDictionary()

    def of(self, user: str) -> Turn:
        """Return a user's turn, which all of its clients have in common."""
        turn = self._of.get(user)
        if turn is None:
            turn = self._of[user] = Turn()
        return turn
