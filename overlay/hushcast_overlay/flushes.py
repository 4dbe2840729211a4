"""Flushes: one task of a relay writes on all streams that take bytes at once; a task a frame costs more."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

import trio


class Flushed(Protocol):
    """What has something to write now and then."""

    def write(self) -> None:
        """Write it, or start what does; it never waits."""


class Flushes:
    """The writing of all sessions of one relay."""

    def __init__(self, spawn: Callable[..., None]) -> None:
        """`spawn` starts tasks that end with the daemon."""
        self._spawn = spawn
        self._waiting: list[Flushed] = []
        self._asked: trio.lowlevel.ParkingLot | None = None

    def ask(self, session: Flushed) -> None:
        """Have a session written at the scheduler's next step: frames of the same step share a record."""
        self._waiting.append(session)
        if self._asked is None:
            self._asked = trio.lowlevel.ParkingLot()
            self._spawn(self._run, self._asked)
        else:
            self._asked.unpark_all()

    async def _run(self, asked: trio.lowlevel.ParkingLot) -> None:
        while True:
            while self._waiting:
                waiting, self._waiting = self._waiting, []
                for session in waiting:
                    session.write()
            await asked.park()
