"""The timetable of a daemon: what it does at moments, for all of which one task sleeps.

A task that only sleeps takes 3 kB, and a daemon has a dozen things to do every epoch or so. Moments are those
that were drawn for each of them: nothing is put off to be done together with something else.
"""

from __future__ import annotations

import heapq
import itertools
import math
from collections.abc import Callable
from typing import Any

import trio

from hushcast_runtime.environment import Environment

_Call = tuple[float, int, Callable[..., None], tuple[Any, ...]]


class Timetable:
    """The calls of one daemon.

    A call is short: what waits for anything is a task that it starts, so that none puts off another. An error
    of one ends the daemon, as it would in a task of its own. Those that are due together are made in one pass
    of the scheduler, as tasks of their own would be woken: so how many they are delays none. Without
    `run` none is made.
    """

    __slots__ = ("_asked", "_calls", "_env", "_last", "_sleep")

    def __init__(self, env: Environment) -> None:
        self._env = env
        self._calls: list[_Call] = []  # a heap, by trio's clock
        self._asked = itertools.count()  # what was asked for first is called first
        self._sleep = trio.CancelScope()  # until the earliest of them
        self._last: tuple[Callable[[], None], ...] = ()

    def after(self, seconds: float, function: Callable[..., None], *args: Any) -> None:
        """Call `function` so many seconds from now, by a clock that may stand while the machine sleeps."""
        moment = trio.current_time() + seconds
        heapq.heappush(self._calls, (moment, next(self._asked), function, args))
        if moment < self._sleep.deadline:
            self._sleep.deadline = moment

    def at(self, moment: float, function: Callable[..., None], *args: Any) -> None:
        """Call `function` when Unix time has come to `moment`, also if the clock is set meanwhile."""
        pause = max(0.0, min(moment - self._env.now(), self._env.look_every))
        self.after(pause, self._look, moment, function, args)

    def at_end(self, function: Callable[[], None]) -> None:
        """Call `function` when `run` is cancelled, as the daemon ends: it starts no more tasks."""
        self._last += (function,)

    def _look(self, moment: float, function: Callable[..., None], args: tuple[Any, ...]) -> None:
        if self._env.now() < moment:
            self.at(moment, function, *args)
        else:
            function(*args)

    async def run(self) -> None:
        """Make the calls, each at its moment, until cancelled."""
        try:
            await self._make_calls()
        finally:
            for function in self._last:
                function()

    async def _make_calls(self) -> None:
        while True:
            with self._sleep:
                await trio.sleep_forever()
            # Sums of floats may differ in the last bit: the moment has come, whatever the clock says.
            now = max(trio.current_time(), self._sleep.deadline)
            while self._calls and self._calls[0][0] <= now:
                _, _, function, args = heapq.heappop(self._calls)
                function(*args)
                del function, args  # of the last one nothing is held until the next
            self._sleep = trio.CancelScope(deadline=self._calls[0][0] if self._calls else math.inf)
