"""The timetable of a daemon: calls at their own moments, by one task that sleeps."""

from __future__ import annotations

import weakref
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import replace

import pytest
import trio
import trio.testing

from hushcast_runtime.environment import simulated_environment
from hushcast_runtime.timetable import Timetable

BEGIN = 1_000_000.0


class Daemon:
    """A timetable, and what was called when."""

    def __init__(self, nursery: trio.Nursery, now: Callable[[], float] | None = None) -> None:
        env = simulated_environment("timetable", BEGIN, look_every=60.0)
        self.called: list[tuple[str, float]] = []
        self._nursery = nursery
        self._began = trio.current_time()
        self.timetable = Timetable(env if now is None else replace(env, now=now))
        self.spawn(self.timetable.run)

    def spawn(self, job: Callable[[], Awaitable[None]]) -> None:
        self._nursery.start_soon(job)

    def note(self, what: str) -> None:
        self.called.append((what, trio.current_time() - self._began))


@asynccontextmanager
async def daemon() -> AsyncIterator[Daemon]:
    async with trio.open_nursery() as nursery:
        yield Daemon(nursery)
        nursery.cancel_scope.cancel()


async def test_each_is_called_at_its_own_moment_by_one_task(autojump_clock: trio.testing.MockClock) -> None:
    async with daemon() as made:
        table = made.timetable
        for what, seconds in (("late", 500.0), ("soon", 5.25), ("next", 5.5), ("at once", 0.0)):
            table.after(seconds, made.note, what)
        await trio.sleep(100)
        table.after(50, made.note, "sooner than what it sleeps for")
        await trio.sleep(1000)
        assert made.called == [
            ("at once", 0.0),
            ("soon", 5.25),
            ("next", 5.5),
            ("sooner than what it sleeps for", 150.0),
            ("late", 500.0),
        ]
        table.after(10, made.note, "after all were called")
        await trio.sleep(20)
        assert made.called[-1] == ("after all were called", 1110.0)


async def test_what_waits_puts_no_other_off(autojump_clock: trio.testing.MockClock) -> None:
    async with daemon() as made:

        async def wait() -> None:
            made.note("waits")
            await trio.sleep(100)
            made.note("waited")

        made.timetable.after(10, made.spawn, wait)
        made.timetable.after(10, made.note, "same moment")
        made.timetable.after(11, made.note, "beside")
        await trio.sleep(200)
        assert sorted(made.called) == [
            ("beside", 11.0),
            ("same moment", 10.0),
            ("waited", 110.0),
            ("waits", 10.0),
        ]


async def test_a_call_may_plan_the_next(autojump_clock: trio.testing.MockClock) -> None:
    async with daemon() as made:

        def again() -> None:
            made.note("again")
            made.timetable.after(7, again)

        again()
        await trio.sleep(30)
        assert [moment for _, moment in made.called] == [0.0, 7.0, 14.0, 21.0, 28.0]


async def test_a_moment_of_unix_time_holds_though_the_clock_is_set(
    autojump_clock: trio.testing.MockClock,
) -> None:
    ahead = 0.0
    async with trio.open_nursery() as nursery:
        made = Daemon(nursery, lambda: BEGIN + trio.current_time() + ahead)
        begins = BEGIN + trio.current_time()
        for seconds in (90.5, 1000.0, 3000.0):
            made.timetable.at(begins + seconds, made.note, str(seconds))
        await trio.sleep(100)
        assert made.called == [("90.5", 90.5)]
        ahead = 2000.0  # seen at the next look, within a minute
        await trio.sleep(60)
        assert [what for what, _ in made.called] == ["90.5", "1000.0"]
        ahead = 0.0
        await trio.sleep(2830)
        assert [what for what, _ in made.called] == ["90.5", "1000.0"]
        await trio.sleep(20)
        assert made.called[-1] == ("3000.0", 3000.0)
        nursery.cancel_scope.cancel()


async def test_a_moment_gone_by_is_now(autojump_clock: trio.testing.MockClock) -> None:
    async with daemon() as made:
        made.timetable.at(BEGIN - 5, made.note, "past")
        await trio.testing.wait_all_tasks_blocked()
        assert made.called == [("past", 0.0)]


async def test_an_error_ends_the_daemon_as_one_of_a_task_does(autojump_clock: trio.testing.MockClock) -> None:
    async def live() -> None:
        async with daemon() as made:
            made.timetable.after(5, int, "no number")
            await trio.sleep(10)
            raise AssertionError("it goes on")

    with pytest.raises(ExceptionGroup) as caught:
        await live()
    assert caught.group_contains(ValueError, match="no number")
    assert not caught.group_contains(AssertionError)


async def test_calls_of_one_moment_are_made_in_one_pass_beside_tasks_that_are_busy(
    autojump_clock: trio.testing.MockClock,
) -> None:
    """Else a call would be late by how many there are before it, which strangers would see."""
    async with daemon() as made:
        passes = 0

        async def busy() -> None:
            nonlocal passes
            await trio.sleep(10)
            while passes < 50:
                passes += 1
                await trio.lowlevel.checkpoint()

        made.spawn(busy)
        for _ in range(200):
            made.timetable.after(10, lambda: made.note(str(passes)))
        await trio.sleep(20)
        assert len(made.called) == 200
        assert len({what for what, _ in made.called}) == 1
        assert int(made.called[-1][0]) <= 2


async def test_what_was_called_last_is_not_held(autojump_clock: trio.testing.MockClock) -> None:
    class Held:
        def call(self) -> None:
            """Nothing."""

    async with daemon() as made:
        held = Held()
        gone = weakref.ref(held)
        made.timetable.after(10, held.call)
        del held
        assert gone() is not None
        await trio.sleep(20)
        assert gone() is None


async def test_what_is_for_the_end_is_called_when_it_comes(autojump_clock: trio.testing.MockClock) -> None:
    async with daemon() as made:
        made.timetable.at_end(lambda: made.note("first"))
        made.timetable.at_end(lambda: made.note("second"))
        await trio.sleep(5)
        assert made.called == []
    assert [what for what, _ in made.called] == ["first", "second"]
