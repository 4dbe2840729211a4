"""Turns of users: their clients are served one after the other, however many, and others in between."""

from __future__ import annotations

from weakref import WeakValueDictionary

import trio

TURN = 0.005  # seconds after which a user whose packets take long lets the others have a turn
TURN_PACKETS = 384  # packets after which any user does; some 2 ms
AT_ONCE = 128  # packets of a client that are taken apart at once; a turn that has begun is for all of them

CALLED = 16  # clients that waited and go on together at most: each alone takes a round of the scheduler


class Turn:
    """One user's turn: `async with` it, the user's clients have it one by one, about as they come.

    Whoever brings it to its end keeps it until all others have been served: none of the user's clients goes
    on before.
    """

    def __init__(self) -> None:
        self.clock = trio.lowlevel.current_clock().current_time
        """Trio's clock, which is looked at after each packet."""
        self._waiting = trio.lowlevel.ParkingLot()
        self._late = trio.lowlevel.ParkingLot()  # those of them who were called when a turn was just over
        self._called = 0  # those who go on in the next steps
        self._at_once = 1
        self._is_over = False
        self._began = 0.0
        self._left = TURN
        self.packets_left = TURN_PACKETS
        """Packets that the user's clients may send until it ends; what is taken apart already goes on."""

    @property
    def ends(self) -> float:
        """When it ends, of its clock."""
        return self._began + self._left

    async def __aenter__(self) -> None:
        # Within a turn nobody waits: others come while its end keeps them waiting, and queue behind those.
        if self._is_over or self._called or self._late or self._waiting:
            await self._wait()
        self._began = self.clock()

    async def __aexit__(self, *_: object) -> None:
        self._left -= self.clock() - self._began
        if self._left <= 0 or self.packets_left <= 0:
            self._left, self.packets_left = TURN, TURN_PACKETS
            self._is_over, self._at_once = True, 1  # lest one comes twice before another
            try:
                await trio.lowlevel.checkpoint()
            finally:
                self._is_over = False
                self._call()
        elif self._late or self._waiting:
            self._call()

    async def _wait(self) -> None:
        lot = self._waiting
        while True:
            await lot.park()
            self._called -= 1
            if not self._is_over:
                return
            lot = self._late

    def _call(self) -> None:
        """Let the first of those who wait go on, once all that were called before have had their turn."""
        if not self._called:
            self._called = len((self._late or self._waiting).unpark(count=self._at_once))
            self._at_once = min(2 * self._at_once, CALLED)


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
