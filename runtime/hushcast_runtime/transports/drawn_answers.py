"""Drawn answers: an end says at drawn moments how far it has taken what the other one brings.

Were it said at once, the other end would see of each thing how long it took: what is wanted is opened and
goes on disk, what is not is thrown away. And it would see how busy the daemon is with everything else.
"""

from __future__ import annotations

import trio

from hushcast_protocol.base.buckets import TokenBucket
from hushcast_runtime.environment import Environment

# What is heard of one end. Who could keep a daemon busy by more would see how far it has come with what.
HEARD_A_SECOND, HEARD_AT_ONCE = 500.0, 100.0


class DrawnAnswers:
    """The answers over one link."""

    def __init__(self, env: Environment, within: float) -> None:
        """`within` are the seconds that an answer takes at most, twice as many as in the mean."""
        self._env = env
        self._within = within
        self._bucket = TokenBucket(HEARD_A_SECOND, HEARD_AT_ONCE, trio.current_time())
        self._came = self._taken = self._said = 0
        self._since = self._last = -within  # when the first came of what is not answered; the last answer
        self._owes = trio.Event()

    def came(self, count: int) -> None:
        """Owe an answer, by which so many more are taken; 0: that this end is there."""
        self._came += count
        if not self._owes.is_set():
            self._since = trio.current_time()
            self._owes.set()

    def take(self, count: int) -> None:
        """Note that so many more of those that came are taken."""
        self._taken += count

    async def rest(self, count: int) -> None:
        """Wait, having heard so many, until more may be heard."""
        if debt := self._bucket.owe(trio.current_time(), count):
            await trio.sleep(debt)

    async def next(self) -> int:
        """Return, when an answer is to be said, how many are taken; for one task.

        These are all that had come at an earlier moment, at which the other end sees nothing: how long they
        took is in neither moment. Where some are not taken yet, it is those that were at the earlier one.
        """
        await self._owes.wait()
        while True:
            # Behind the one before, and not behind what was late, unless it was for long.
            begun = max(self._since, self._last, trio.current_time() - self._within)
            first = begun + self._drawn()
            self._last = first + self._drawn()
            await trio.sleep_until(first)
            came, taken, self._owes = self._came, self._taken, trio.Event()
            await trio.sleep_until(self._last)
            number = came if self._taken >= came else taken
            if number < came:
                self._owes.set()
            if number == came or number > self._said:
                self._said = number
                return number

    def quiet(self, seconds: float) -> float:
        """Return the seconds of silence, nearly so many, after which to show a sign of life unasked."""
        return seconds - self._env.uniform(0.0, self._within)

    def _drawn(self) -> float:
        """Draw half of the time; a sum of two draws has no edge, by which few would tell as much as many."""
        return sum(self._env.uniform(0.0, self._within / 4) for _ in range(2))
