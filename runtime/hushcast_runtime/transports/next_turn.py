"""The next turn of the scheduler: calls made once all tasks that can run now have run, by one task for all.

What many links have to write, or to read, would else be a task each, whose making and end take several times
the work.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from contextvars import Context, copy_context

import trio

from hushcast_runtime.logs import log

CALLS_AT_ONCE = 16  # before others have a turn: each may write as much as a millisecond's work


class _NextTurn:
    """The calls of one run of trio."""

    def __init__(self) -> None:
        self._calls: deque[tuple[Context, Callable[[], None]]] = deque()
        self._resting: trio.lowlevel.Task | None = None
        trio.lowlevel.spawn_system_task(self._run)

    def call(self, function: Callable[[], None]) -> None:
        self._calls.append((copy_context(), function))  # as a task would have it
        if self._resting is not None:
            trio.lowlevel.reschedule(self._resting)
            self._resting = None

    async def _run(self) -> None:
        while True:
            for _ in range(min(CALLS_AT_ONCE, len(self._calls))):
                context, function = self._calls.popleft()
                try:
                    context.run(function)
                except Exception:
                    log.exception("what was to be done in the next turn met an error of this program")
            if self._calls:
                await trio.lowlevel.checkpoint()
            else:
                self._resting = trio.lowlevel.current_task()
                await trio.lowlevel.wait_task_rescheduled(self._forget)

    def _forget(self, _: object) -> trio.lowlevel.Abort:
        self._resting = None
        return trio.lowlevel.Abort.SUCCEEDED


_TURNS: trio.lowlevel.RunVar[_NextTurn] = trio.lowlevel.RunVar("next turn")


def in_next_turn(function: Callable[[], None]) -> None:
    """Have `function`, which takes a millisecond at most, called in the next turn; log what it raises."""
    try:
        turn = _TURNS.get()
    except LookupError:
        turn = _NextTurn()
        _TURNS.set(turn)
    turn.call(function)
