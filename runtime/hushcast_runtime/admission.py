"""Admission: prices and limits what whoever shows no name hands in, before any other work for it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

import trio

from hushcast_protocol.base.buckets import TokenBucket
from hushcast_protocol.base.crypto.proof_of_work import (
    LOAD_WINDOW,
    Load,
    ProofOfWork,
    ProofOfWorkCheck,
    next_difficulty,
)
from hushcast_protocol.base.epochs import Calendar
from hushcast_protocol.base.wire import PublicKey
from hushcast_runtime.environment import Environment

# Five times what a daemon serves at ease with its tor (`CAPACITY`), as at a relay.
HANDED_IN_A_SECOND, HANDED_IN_AT_ONCE = 100.0, 1000.0


class Admission:
    """Admission at one daemon, which stamps name by its key."""

    def __init__(
        self, key: PublicKey, calendar: Calendar, env: Environment, by_room: Callable[[], int]
    ) -> None:
        """`by_room` tells the bits of stamps that the room which lasts asks for (`difficulty_of`)."""
        now = env.elapsed()
        self._calendar = calendar
        self._env = env
        self._by_room = by_room
        self._stamps = ProofOfWorkCheck(key)
        self._load = Load(now)
        self._bucket = TokenBucket(HANDED_IN_A_SECOND, HANDED_IN_AT_ONCE, now)
        self._by_load = 0
        self._before = 0
        self.difficulty = 0
        """Bits of the stamps that are asked for; who heard the ones of a minute ago need not mint again."""

    def refusal(self, stamp: ProofOfWork | None, content: bytes) -> Literal["stamp", "quota"] | None:
        """Tell why what a digest names is not taken, `None` if it is."""
        now = self._env.elapsed()
        needed = min(self.difficulty, self._before)
        epoch = self._calendar.epoch(self._env.now())
        if needed and not self._stamps.spend(stamp, content, epoch, needed):
            return "stamp"
        if not self._bucket.take(now):
            return "quota"
        self._load.note(now)
        return None

    async def run(self) -> None:
        """Set the difficulty by load and room every minute, until cancelled."""
        while True:
            await trio.sleep(LOAD_WINDOW)
            self._by_load = next_difficulty(self._load.peak(self._env.elapsed()), self._by_load)
            self._before = self.difficulty
            self.difficulty = max(self._by_load, self._by_room())
