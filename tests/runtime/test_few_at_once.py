"""Few at once: so many at once, in order, and none is lost."""

from __future__ import annotations

import trio
import trio.testing

from hushcast_runtime.few_at_once import FewAtOnce


async def test_so_many_are_in_at_once_and_the_others_follow_in_order(
    autojump_clock: trio.testing.MockClock,
) -> None:
    few, inside, order, most = FewAtOnce(3), 0, list[int](), 0

    async def come(number: int) -> None:
        nonlocal inside, most
        await trio.sleep(number / 100)
        async with few:
            order.append(number)
            inside += 1
            most = max(most, inside)
            await trio.sleep(10)
            inside -= 1

    async with trio.open_nursery() as nursery:
        for number in range(10):
            nursery.start_soon(come, number)
    assert order == list(range(10))
    assert most == 3


async def test_who_gives_up_while_waiting_or_inside_takes_no_turn_along(
    autojump_clock: trio.testing.MockClock,
) -> None:
    few, came = FewAtOnce(), list[str]()

    async def come(name: str, seconds: float, patience: float) -> None:
        with trio.move_on_after(patience):
            async with few:
                came.append(name)
                await trio.sleep(seconds)

    for _ in range(2):
        async with trio.open_nursery() as nursery:
            for one in (("first", 10, 100), ("gives up waiting", 10, 5), ("gives up inside", 50, 15)):
                nursery.start_soon(come, *one)
                await trio.sleep(0.1)
            nursery.start_soon(come, "last", 1, 100)
        assert came == ["first", "gives up inside", "last"]
        came.clear()


async def test_one_whose_turn_came_as_it_gave_up_hands_it_on() -> None:
    few, scope, came = FewAtOnce(), trio.CancelScope(), list[str]()

    async def come(name: str, scope: trio.CancelScope) -> None:
        with scope:
            async with few:
                await trio.lowlevel.checkpoint()
                came.append(name)

    async with trio.open_nursery() as nursery:
        async with few:
            nursery.start_soon(come, "gives up", scope)
            await trio.testing.wait_all_tasks_blocked()
            nursery.start_soon(come, "last", trio.CancelScope())
            await trio.testing.wait_all_tasks_blocked()
        scope.cancel()
    assert came == ["last"]


async def test_others_have_a_turn_of_the_scheduler_with_each() -> None:
    few, seen = FewAtOnce(), 0

    async def beside() -> None:
        nonlocal seen
        while True:
            seen += 1
            await trio.lowlevel.checkpoint()

    async with trio.open_nursery() as nursery:
        nursery.start_soon(beside)
        for _ in range(20):
            async with few:
                pass
        nursery.cancel_scope.cancel()
    assert seen in (19, 20)  # which of two is first in a round is drawn
