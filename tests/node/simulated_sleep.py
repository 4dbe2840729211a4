"""Sleep that is a call at a moment of the virtual clock: days in these networks are mostly sleep.

trio's own enters a cancel scope, cancels it and unwinds an exception, which takes four times as long.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import trio
import trio.testing

from hushcast_runtime.transports.memory import CallAt
from hushcast_testnet.simulations.clock_calls import call_at


@contextmanager
def sleep_by_calls(clock: trio.testing.MockClock) -> Iterator[None]:
    """Have `trio.sleep` wait for a call while a run has this clock, which jumps by itself."""
    before, calls = trio.sleep, None

    async def sleep(seconds: float) -> None:
        nonlocal calls
        # Another run of this process, in another thread, has a clock of its own.
        if trio.lowlevel.current_clock() is not clock:
            await before(seconds)
            return
        calls = calls or call_at()
        assert calls is not None
        await sleep_until_called(calls, seconds)

    trio.sleep = sleep
    try:
        yield
    finally:
        trio.sleep = before


async def sleep_until_called(calls: CallAt, seconds: float) -> None:
    """Wait, as `trio.sleep` does; raise `ValueError` where it does."""
    if not seconds >= 0:
        raise ValueError("`seconds` must be non-negative")
    if not seconds:
        await trio.lowlevel.checkpoint()
        return
    waits = [trio.lowlevel.current_task()]

    def wake() -> None:
        for task in waits:
            trio.lowlevel.reschedule(task)

    def give_up(_: object) -> trio.lowlevel.Abort:
        waits.clear()
        return trio.lowlevel.Abort.SUCCEEDED

    calls(trio.current_time() + seconds, wake)
    await trio.lowlevel.wait_task_rescheduled(give_up)
