"""A long step is told by where it ended and by what it took, and short ones are not."""

from __future__ import annotations

import gc
import time
from collections.abc import Iterator

import pytest
import trio
import trio.testing
from steps import BUDGET, one_step
from steps import Steps as EveryStep

from hushcast_runtime.logs import configure_logs
from hushcast_runtime.processes.process import _settle
from hushcast_runtime.processes.readiness import Health
from hushcast_runtime.processes.steps import (
    COMPLAIN_EVERY,
    LONG,
    LOOKED_AT,
    RENEWED_AFTER,
    Steps,
    place_of,
    steps,
)


@pytest.fixture(autouse=True)
def _nothing_is_collected() -> Iterator[None]:
    """Else what all tests before have left is looked through in one of the steps."""
    gc.collect()
    gc.disable()
    yield
    gc.enable()


def work(seconds: float) -> None:
    until = time.thread_time() + seconds
    while time.thread_time() < until:
        pass


async def work_in_steps(*seconds: float) -> None:
    for each in seconds:
        work(each)
        await trio.lowlevel.checkpoint()


def longest(measured: Steps) -> float:
    return measured.take_longest()[0]


def run(measured: Steps, *seconds: float) -> None:
    trio.run(work_in_steps, *seconds, instruments=[measured])


def test_the_longest_step_since_the_last_look_is_told() -> None:
    own = Steps()
    assert longest(own) == 0
    run(own, 0.03, 0.02, 0.001)
    assert 0.03 <= longest(own) < 0.06
    assert longest(own) == 0
    run(own, LOOKED_AT / 3, LOOKED_AT / 3, LOOKED_AT / 3)
    assert longest(own) == 0


def test_waiting_for_a_processor_is_no_work() -> None:
    async def wait() -> None:
        time.sleep(2 * LONG)  # noqa: ASYNC251 - as a step does that waits for its turn on a busy machine

    own = Steps()
    trio.run(wait, instruments=[own])
    assert longest(own) < LOOKED_AT


def test_waiting_for_something_to_do_is_no_work() -> None:
    """Nor is it the step's behind it, however much was done before."""

    async def wait() -> None:
        await work_in_steps(*[LOOKED_AT / 20] * 30)
        await trio.sleep(2 * LONG)
        work(LOOKED_AT / 3)
        await trio.lowlevel.checkpoint()

    own = Steps()
    trio.run(wait, instruments=[own])
    assert longest(own) == 0


async def test_short_steps_do_not_ask_the_kernel_each(monkeypatch: pytest.MonkeyPatch) -> None:
    """A gateway has some ten thousand a second, and to ask takes as long as to pass a message on."""
    task = trio.lowlevel.current_task()
    own, asked, ask = Steps(), 0, time.thread_time

    def counted() -> float:
        nonlocal asked
        asked += 1
        return ask()

    monkeypatch.setattr(time, "thread_time", counted)
    began = time.perf_counter()
    for _ in range(20_000):
        own.after_task_step(task)
    assert asked <= 1 + (time.perf_counter() - began) / RENEWED_AFTER


def test_a_long_step_is_logged_once_in_a_while(capsys: pytest.CaptureFixture[str]) -> None:
    configure_logs("info", as_json=False)
    own = Steps()
    run(own, 1.2 * LONG, 1.5 * LONG, 1.2 * LONG)
    (line,) = capsys.readouterr().err.splitlines()
    assert "count=1" in line
    own._complained = time.perf_counter() - COMPLAIN_EVERY
    run(own, 1.2 * LONG)
    (line,) = capsys.readouterr().err.splitlines()
    assert "count=3" in line  # the two that were not told, and this one
    seconds = float(line.partition("seconds=")[2].split()[0])
    assert seconds > 1.4 * LONG


async def test_a_place_is_told_by_the_innermost_code_of_ours() -> None:
    """And by nothing that a task was given."""
    assert "secret" not in place_of(trio.lowlevel.current_task())

    async def waits(secret: str) -> None:
        await _settle(lambda: Health(False, secret))

    async with trio.open_nursery() as nursery:
        nursery.start_soon(waits, "secret topic")
        await trio.testing.wait_all_tasks_blocked()
        (place,) = [place_of(child) for child in nursery.child_tasks]
        nursery.cancel_scope.cancel()
    assert place.startswith("hushcast_runtime.processes.process._settle:")


async def test_collecting_garbage_is_told_apart() -> None:
    own = Steps()
    own.begin()
    await trio.lowlevel.checkpoint()
    held = [[number] for number in range(200_000)]
    gc.collect()
    work(2 * LOOKED_AT)
    await trio.lowlevel.checkpoint()
    own.end()
    step, collection = own.take_longest()
    assert collection >= LOOKED_AT
    assert step >= 2 * LOOKED_AT
    assert len(held) == 200_000


def test_the_measure_of_tests_finds_what_is_long() -> None:
    with one_step():
        pass
    with pytest.raises(AssertionError, match="one step took"), one_step():
        work(1.1 * BUDGET)


def test_it_finds_steps_of_the_program_and_no_others() -> None:
    """What a test does in one step is the attacker's own work."""
    every = EveryStep()
    trio.run(work_in_steps, 1.1 * BUDGET, instruments=[every])
    every.check()

    def works() -> Health:
        work(1.1 * BUDGET)
        return Health(False, "working")

    async def settles() -> None:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(_settle, works)
            await trio.testing.wait_all_tasks_blocked()
            nursery.cancel_scope.cancel()

    trio.run(settles, instruments=[every])
    with pytest.raises(AssertionError, match="_settle"):
        every.check()


async def test_a_start_is_not_measured(autojump_clock: trio.testing.MockClock) -> None:
    is_ready = False
    async with trio.open_nursery() as nursery:
        nursery.start_soon(_settle, lambda: Health(is_ready, "starting"))
        await trio.sleep(5)
        work(2 * LOOKED_AT)
        await trio.sleep(5)
        assert steps.take_longest() == (0, 0)
        is_ready = True
        await trio.sleep(5)
        work(2 * LOOKED_AT)
        await trio.lowlevel.checkpoint()
        assert longest(steps) >= 2 * LOOKED_AT
    steps.end()
