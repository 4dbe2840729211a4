"""Calls at a moment of trio's mock clock, which cost a simulation less than deadlines do."""

from __future__ import annotations

import functools
import heapq
import math
from collections.abc import Callable
from typing import Any

import trio
import trio.testing

from hushcast_runtime.transports.memory import CallAt

_RUN: Any = trio._core._run


class ClockCalls:
    """What is to be called when a mock clock that jumps by itself shows a moment.

    Every frame on its way is waited for. trio's sleep enters a cancel scope, cancels it and unwinds an
    exception, which takes four times as long as a call.
    """

    def __init__(self, clock: trio.testing.MockClock) -> None:
        """`clock` has calls once; its rate is 0 and stays so, its `autojump_threshold` finite."""
        self._clock = clock
        self._calls: list[tuple[float, int, Callable[[], None]]] = []
        self._asked = 0  # breaks ties: what was asked for first is called first
        # trio asks this of the clock when no task can run. There is no public way, and a mock clock has no
        # subclasses.
        clock._autojump = self._pass_time  # type: ignore[method-assign]
        # A clock that only jumps shows its base: to compute that took a twentieth of a simulation's time.
        clock.current_time = lambda: clock._virtual_base  # type: ignore[method-assign]

    def call_at(self, moment: float, function: Callable[[], None]) -> None:
        """Call `function`, which only wakes somebody, when the clock shows `moment`."""
        self._asked += 1
        heapq.heappush(self._calls, (moment, self._asked, function))

    def _pass_time(self) -> None:
        moment = _RUN.GLOBAL_RUN_CONTEXT.runner.deadlines.next_deadline()
        if self._calls:
            moment = min(moment, self._calls[0][0])
        if moment == math.inf:
            return
        self._clock.jump(max(0.0, moment - self._clock.current_time()))
        # Sums of floats may differ in the last bit: the moment has come, whatever the clock says.
        now = max(moment, self._clock.current_time())
        while self._calls and self._calls[0][0] <= now:
            heapq.heappop(self._calls)[2]()


def call_at() -> CallAt | None:
    """Return `call_at` of the clock of this run; `None` if it does not jump by itself."""
    clock = trio.lowlevel.current_clock()
    jumps = isinstance(clock, trio.testing.MockClock) and clock.autojump_threshold < math.inf
    return _calls_of(clock).call_at if jumps else None


@functools.lru_cache(maxsize=1)
def _calls_of(clock: trio.testing.MockClock) -> ClockCalls:
    """All networks of a run share them, as a clock has them once."""
    return ClockCalls(clock)
