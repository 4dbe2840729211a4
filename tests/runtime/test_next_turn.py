"""Calls in the next turn: in order, after those who can run now, and some at a time."""

from __future__ import annotations

import trio
import trio.testing

from hushcast_runtime.transports.next_turn import CALLS_AT_ONCE, in_next_turn


async def test_calls_are_made_in_order_when_the_asking_task_rests() -> None:
    made: list[int] = []
    for number in range(3):
        in_next_turn(lambda number=number: made.append(number))
    assert made == []
    await trio.testing.wait_all_tasks_blocked()
    assert made == [0, 1, 2]
    in_next_turn(lambda: made.append(3))  # the task that makes them rested
    await trio.testing.wait_all_tasks_blocked()
    assert made == [0, 1, 2, 3]


async def test_others_have_a_turn_between_many_calls() -> None:
    made: list[int] = []
    for number in range(3 * CALLS_AT_ONCE):
        in_next_turn(lambda number=number: made.append(number))
    seen: set[int] = set()
    while len(made) < 3 * CALLS_AT_ONCE:
        await trio.lowlevel.checkpoint()
        seen.add(len(made))
    assert any(0 < so_far < 3 * CALLS_AT_ONCE for so_far in seen)


def test_each_run_has_calls_of_its_own() -> None:
    for _ in range(2):
        trio.run(test_calls_are_made_in_order_when_the_asking_task_rests)


async def test_a_call_that_fails_costs_no_other() -> None:
    made: list[int] = []
    in_next_turn(lambda: made.append([][1]))
    in_next_turn(lambda: made.append(2))
    await trio.testing.wait_all_tasks_blocked()
    assert made == [2]
