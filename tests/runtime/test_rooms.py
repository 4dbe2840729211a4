"""A room: never more than its size, none who waits, and how many come through a flood of silent strangers."""

from __future__ import annotations

import math
import random

import pytest
import trio
import trio.testing

from hushcast_runtime.transports.base import TransportError
from hushcast_runtime.transports.connection_slots import ConnectionSlots


async def stay(room: ConnectionSlots, outcomes: list[str], seconds: float, within: float = math.inf) -> None:
    try:
        with room.place(within):
            await trio.sleep(seconds)
    except TransportError as error:
        outcomes.append(str(error))
    else:
        outcomes.append("through")


async def test_a_newcomer_takes_the_place_of_the_one_drawn(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    noted: list[str] = []
    room = ConnectionSlots(3, lambda below: below - 2, lambda: noted.append("one"))
    stays: list[list[str]] = [[] for _ in range(4)]
    for outcomes in stays:
        nursery.start_soon(stay, room, outcomes, 5.0)
        await trio.testing.wait_all_tasks_blocked()
        assert len(room) <= 3
    await trio.sleep(6)
    assert stays == [["through"], ["the connection gave way to newer ones"], ["through"], ["through"]]
    assert noted == ["one"]
    assert len(room) == 0


async def test_a_place_has_a_deadline(autojump_clock: trio.testing.MockClock) -> None:
    room, outcomes = ConnectionSlots(1), list[str]()
    before = trio.current_time()
    await stay(room, outcomes, 5.0, within=2.0)
    assert outcomes == ["the other end took too long"]
    assert trio.current_time() - before == pytest.approx(2.0)
    assert len(room) == 0


async def test_whoever_leaves_by_an_error_or_from_outside_leaves_its_place(
    autojump_clock: trio.testing.MockClock,
) -> None:
    room = ConnectionSlots(1)
    with pytest.raises(ZeroDivisionError), room.place():
        raise ZeroDivisionError
    with trio.move_on_after(1), room.place():
        await trio.sleep(5)
    assert len(room) == 0


async def test_many_at_once_are_never_more_than_the_size(autojump_clock: trio.testing.MockClock) -> None:
    chance, outcomes = random.Random(1), list[str]()
    dropped: list[None] = []
    room = ConnectionSlots(7, chance.randrange, lambda: dropped.append(None))
    async with trio.open_nursery() as nursery:
        for _ in range(500):
            nursery.start_soon(stay, room, outcomes, chance.uniform(0.0, 2.0))
            if chance.random() < 0.3:
                await trio.sleep(chance.uniform(0.0, 0.5))
            assert len(room) <= 7
    assert len(outcomes) == 500
    assert outcomes.count("through") == 500 - len(dropped)


@pytest.mark.slow
@pytest.mark.parametrize("load", [0.5, 1.0, 2.0, 3.0])
async def test_a_flood_lets_through_as_many_as_the_formula_says(
    load: float, autojump_clock: trio.testing.MockClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`load` is how many strangers come for each place while somebody honest needs one."""
    # Who wakes first among many is chance, too: all of it replays.
    monkeypatch.setattr(trio._core._run, "_r", random.Random(2))
    monkeypatch.setattr(trio._core._run, "_ALLOW_DETERMINISTIC_SCHEDULING", True)
    size, seconds, tries = 40, 2.0, 300
    room, outcomes, ignored = ConnectionSlots(size, random.Random(2).randrange), list[str](), list[str]()
    async with trio.open_nursery() as nursery:
        for number in range(int(tries * seconds * load * size / 8)):
            nursery.start_soon(stay, room, ignored, math.inf)
            await trio.sleep(seconds / (load * size))
            if number % round(load * size / 8) == 0:
                nursery.start_soon(stay, room, outcomes, seconds)
        await trio.sleep(2 * seconds)
        nursery.cancel_scope.cancel()
    share = outcomes.count("through") / len(outcomes)
    # The honest ones, eight at a time, push each other out as well.
    assert share == pytest.approx(math.exp(-load - 8 / size), abs=0.07)
