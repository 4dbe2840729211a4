"""Simulated sleep is as trio's."""

from __future__ import annotations

import math

import pytest
import trio
import trio.testing
from simulated_sleep import sleep_by_calls


def test_sleep_by_calls_is_trios_and_who_gave_up_is_not_woken():
    clock = trio.testing.MockClock(autojump_threshold=0)
    heard = []

    async def sleep(seconds: float) -> None:
        await trio.sleep(seconds)
        heard.append((trio.current_time(), seconds))

    async def played() -> None:
        async with trio.open_nursery() as nursery:
            for seconds in (3.0, 1.0, 0.0):
                nursery.start_soon(sleep, seconds)
            with trio.move_on_after(2.0) as early:
                await trio.sleep(1000.0)
            assert early.cancelled_caught
            assert trio.current_time() == 2.0
        assert heard == [(0.0, 0.0), (1.0, 1.0), (3.0, 3.0)]
        with trio.CancelScope() as ended:
            ended.cancel()
            await trio.sleep(1.0)
        assert ended.cancelled_caught
        for wrong in (-1.0, math.nan):
            with pytest.raises(ValueError, match="non-negative"):
                await trio.sleep(wrong)
        await trio.sleep(2000.0)
        assert trio.current_time() == 2003.0

    before = trio.sleep
    with sleep_by_calls(clock):
        trio.run(played, clock=clock)
    assert trio.sleep is before
