"""Calls at a moment: a network whose bytes wait for them behaves as one whose readers sleep."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import pytest
import trio
import trio.testing

from hushcast_protocol.base.crypto.secrets import Seed
from hushcast_runtime.transports.memory import MemoryNetwork
from hushcast_testnet.simulations.clock_calls import ClockCalls

WAY = 0.125  # seconds, exact in binary
SEED = Seed(bytes(range(32)))


@pytest.fixture(params=["calls", "sleep"])
def play(request: pytest.FixtureRequest) -> Callable[[Callable[[MemoryNetwork], Any]], None]:
    """Run a function with a network in virtual time, which passes by calls or by trio's sleep."""

    def run(played: Callable[[MemoryNetwork], Any]) -> None:
        clock = trio.testing.MockClock(autojump_threshold=0)
        call_at = ClockCalls(clock).call_at if request.param == "calls" else None
        trio.run(played, MemoryNetwork(lambda: WAY, call_at), clock=clock)

    return run


async def connected(network: MemoryNetwork, nursery: trio.Nursery) -> tuple[trio.abc.Stream, trio.abc.Stream]:
    """Return both ends of a stream."""
    accepted: list[trio.abc.Stream] = []

    async def keep(stream: trio.abc.Stream) -> None:
        accepted.append(stream)
        await trio.sleep_forever()

    listener = await network.transport().listen(SEED)
    nursery.start_soon(listener.serve, keep)
    ours = await network.transport().connect(listener.address, "test")
    await trio.testing.wait_all_tasks_blocked()
    return ours, accepted[0]


def test_bytes_arrive_after_their_way_and_not_before(play):
    async def played(network: MemoryNetwork) -> None:
        async with trio.open_nursery() as nursery:
            began = trio.current_time()
            ours, theirs = await connected(network, nursery)
            assert trio.current_time() - began == 2 * WAY
            began, heard = trio.current_time(), []

            async def hear() -> None:
                while data := await theirs.receive_some():
                    heard.append((trio.current_time() - began, data))
                heard.append((trio.current_time() - began, b"end"))
                nursery.cancel_scope.cancel()

            nursery.start_soon(hear)
            await ours.send_all(b"a")
            await trio.sleep(WAY / 2)
            await ours.send_all(b"b")
            await trio.sleep(WAY)
            await ours.send_all(b"c")  # on its way when the stream is closed
            await ours.aclose()
        assert heard == [(WAY, b"a"), (1.5 * WAY, b"b"), (2.5 * WAY, b"c"), (2.5 * WAY, b"end")]

    play(played)


def test_who_stops_reading_loses_nothing_to_the_next(play):
    async def played(network: MemoryNetwork) -> None:
        async with trio.open_nursery() as nursery:
            ours, theirs = await connected(network, nursery)
            with trio.move_on_after(10) as idle:
                await theirs.receive_some()
            assert idle.cancelled_caught
            await ours.send_all(b"late")
            with trio.move_on_after(WAY / 2) as early:
                await theirs.receive_some()
            assert early.cancelled_caught
            began = trio.current_time()
            assert await theirs.receive_some() == b"late"
            assert trio.current_time() - began == WAY / 2
            nursery.cancel_scope.cancel()

    play(played)


def test_calls_and_deadlines_come_in_the_order_of_their_moments():
    clock = trio.testing.MockClock(autojump_threshold=0)
    calls, heard = ClockCalls(clock), []

    async def sleep(seconds: float) -> None:
        await trio.sleep(seconds)
        heard.append((trio.current_time(), "slept"))

    async def played() -> None:
        began = trio.current_time()
        assert began == 0
        for moment in (3.0, 1.0, 5.0, 1.0):
            calls.call_at(moment, lambda: heard.append((trio.current_time(), "called")))
        async with trio.open_nursery() as nursery:
            for seconds in (2.0, 4.0, 6.0):
                nursery.start_soon(sleep, seconds)

    trio.run(played, clock=clock)
    assert heard == [(at, "called" if at % 2 else "slept") for at in (1.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0)]


def test_a_call_whose_moment_has_passed_comes_at_once():
    clock = trio.testing.MockClock(autojump_threshold=0)
    calls = ClockCalls(clock)

    async def played() -> None:
        over = trio.Event()
        calls.call_at(-1.0, over.set)
        with trio.fail_after(math.inf):
            await over.wait()
        assert trio.current_time() == 0

    trio.run(played, clock=clock)
