"""Turns of users: their clients are served one after the other, however many, and others in between."""

from __future__ import annotations

from weakref import WeakValueDictionary

import trio

TURN = 0.005  # seconds after which a user whose packets take long lets the others have a turn
TURN_PACKETS = 256  # packets after which any user does; some 1.5 ms
AT_ONCE = 256  # packets of a client that are taken apart at once; a turn that has begun is for all of them


class Turn:
    """One user's turn: `async with` it, one of the user's clients has it, first come, first served.

    Whoever brings it to its end keeps it until all others have been served: none of the user's clients goes
    on before.
    """

    def __init__(self) -> None:
        self.clock = trio.lowlevel.current_clock().current_time
        """Trio's clock, which is looked at after each packet."""
        self._lock = trio.Lock()
        self._is_mine = False  # whether who has the turn waited for it
        self._began = 0.0
        self._left = TURN
        self.packets_left = TURN_PACKETS
        """Packets that the user's clients may send until it ends; what is taken apart already goes on."""

    @property
    def ends(self) -> float:
        """When it ends, of its clock."""
        return self._began + self._left

    async def __aenter__(self) -> None:
        # Within a turn nobody waits, so it is locked only while its end keeps the user's others waiting.
        if self._lock.locked():
            await self._lock.acquire()
            self._is_mine = True
        self._began = self.clock()

    async def __aexit__(self, *_: object) -> None:
        self._left -= self.clock() - self._began
        is_mine, self._is_mine = self._is_mine, False
        if self._left > 0 and self.packets_left > 0:
            if is_mine:
                self._lock.release()
            return
        self._left, self.packets_left = TURN, TURN_PACKETS
        if not is_mine:
            self._lock.acquire_nowait()
        try:
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
