"""Turns: one in a pass of the loop, and more of them where passes are long for other reasons."""

from __future__ import annotations

from collections import Counter

import trio
import trio.testing

from hushcast_runtime.transports.turns import EACH, Turns

STRANGERS = 40


class Passes(trio.abc.Instrument):
    """Counts passes of the loop."""

    number = 0

    def before_io_wait(self, timeout: float) -> None:
        self.number += 1


async def taken(clock: trio.testing.MockClock, busy: int, cancelled: int = 0) -> Counter[int]:
    """How many strangers had their turn in each pass, beside tasks that take two of `EACH` a pass each."""
    turns, passes = Turns(), Passes()
    had: Counter[int] = Counter()

    async def work() -> None:
        while True:
            clock.jump(2 * EACH)
            await trio.lowlevel.checkpoint()

    async def stranger(scope: trio.CancelScope) -> None:
        with scope:
            await turns.take()
            had[passes.number] += 1

    trio.lowlevel.add_instrument(passes)
    async with trio.open_nursery() as nursery:
        for _ in range(busy):
            nursery.start_soon(work)
        async with trio.open_nursery() as strangers:
            scopes = [trio.CancelScope() for _ in range(STRANGERS)]
            for scope in scopes:
                strangers.start_soon(stranger, scope)
            await trio.lowlevel.checkpoint()
            for scope in scopes[:cancelled]:
                scope.cancel()
        nursery.cancel_scope.cancel()
    trio.lowlevel.remove_instrument(passes)
    return had


async def test_one_has_its_turn_in_a_pass(mock_clock: trio.testing.MockClock) -> None:
    had = await taken(mock_clock, busy=0)
    assert len(had) == had.total() == STRANGERS


async def test_long_passes_have_more(mock_clock: trio.testing.MockClock) -> None:
    had = await taken(mock_clock, busy=5)
    assert had.total() == STRANGERS
    assert 4 <= len(had) <= 6  # of ten, as a pass takes ten times as long as a turn's share


async def test_who_gives_up_waiting_holds_up_nobody(mock_clock: trio.testing.MockClock) -> None:
    had = await taken(mock_clock, busy=0, cancelled=STRANGERS // 2)
    assert STRANGERS // 2 <= had.total() <= STRANGERS // 2 + 1  # the first had its turn already
