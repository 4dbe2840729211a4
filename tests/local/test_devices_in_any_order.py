"""Honest devices come together in whatever order they hear of whom the others let in and removed."""

from __future__ import annotations

import random

import pytest
from devices_in_any_order import CALENDAR, EPOCH, Unconnected, Unordered

from hushcast_protocol.devices.beats import _SIZES

LIVES = 40
MOST = 6  # devices


async def begun(draw: random.Random) -> Unordered:
    """Return three or four devices, let in by any of them."""
    some = Unordered(draw)
    await some.begin()
    for _ in range(draw.choice((2, 3))):
        await draw.choice(some.devices).invite()
        await some.arrive()
    await some.settle()
    return some


async def act(some: Unordered, by: Unconnected, writers: set[bytes]) -> set[bytes]:
    """Have a device let in one, or remove one that has done neither; return who is removed."""
    draw = some.draw
    others = sorted(by.own.living().keys() - writers - {by.key})
    if len(some.devices) < MOST and draw.random() < 0.35:
        await by.invite()
    elif others:
        gone = draw.choice(others)
        await by.circle.remove(gone)
        return {gone}
    return set()


@pytest.mark.slow
@pytest.mark.parametrize("part", range(3))
async def test_who_stands_comes_together_in_whatever_order_it_hears(part: int) -> None:
    """Three or four times one of up to six lets in another or removes one, and what is said comes whenever.

    None is removed that has let in or removed one: who has not heard of that cannot know when it did.
    """
    for number in range(part * LIVES, (part + 1) * LIVES):
        draw = random.Random(number)
        some = await begun(draw)
        removed: set[bytes] = set()
        writers: set[bytes] = set()
        for _ in range(draw.choice((3, 4))):
            by = draw.choice([device for device in some.here if device.key not in removed])
            removed |= await act(some, by, writers)
            writers.add(by.key)
            if draw.random() < 0.2:
                await draw.choice(some.here).circle.speak(CALENDAR.epoch(some.now))
            await some.arrive(draw.choice((0.0, 0.0, 0.3, 0.6, 1.0)))
        await some.settle()
        await some.settle()
        some.check_all_but(removed, f"life {number}")


async def test_a_new_device_removes_the_old_one_that_let_it_in() -> None:
    """As when one is bought: the third one has heard of neither, and of the new one by that one alone."""
    some = await begun(random.Random(1))
    old, other, *_ = some.devices
    new = await old.invite()
    await new.circle.remove(old.key)
    await some.settle()
    assert old.is_over
    assert other.own.keys == new.own.keys
    assert other.own.living().keys() == {device.key for device in some.here}


async def test_a_removal_falls_where_its_writer_is_removed_by_one_that_had_not_heard_of_it() -> None:
    """Of a removed device that says it afterwards nothing tells it: so the list shows one is still in."""
    some = await begun(random.Random(2))
    one, other, third, *_ = some.devices
    await one.circle.remove(third.key)
    some.waiting.clear()
    await other.circle.remove(one.key)
    await some.settle()
    assert one.key in other.own.removed()
    assert third.key in other.own.living()
    await other.circle.remove(third.key)
    await some.settle()
    assert third.is_over
    assert other.own.removed() == {one.key, third.key}


async def test_what_six_devices_say_of_each_other_fits_the_smallest_beat() -> None:
    draw = random.Random(3)
    some = Unordered(draw)
    first = await some.begin()
    for _ in range(6):
        last = await first.invite()
        await some.arrive()
    await some.settle()
    await first.circle.remove(last.key)
    await some.settle()
    some.waiting.clear()
    for device in some.here:
        await device.circle.beat()
    assert len(some.here) == 6
    assert {len(payload) for _, _, payload in some.waiting} == {min(_SIZES)}


@pytest.mark.parametrize("seed", range(5))
async def test_who_knew_of_a_removal_that_falls_warns_of_it(
    seed: int, capsys: pytest.CaptureFixture[str]
) -> None:
    """One removes a stolen device, and is removed by another that was away: then its word falls."""
    world = Unordered(random.Random(seed))
    zero = await world.begin()
    away, remover, stolen = [await zero.invite() for _ in range(3)]
    await world.settle()
    stolen.is_over = True  # it says nothing of its own
    await remover.circle.remove(stolen.key)
    for _ in range(8):
        await remover.circle.speak(CALENDAR.epoch(world.now))
        await zero.circle.speak(CALENDAR.epoch(world.now))
        await world.arrive_but_at(away)
        world.now += EPOCH
    assert stolen.key in zero.own.removed()
    await away.circle.remove(remover.key)
    capsys.readouterr()
    await world.settle()
    told = capsys.readouterr()
    assert stolen.key in zero.own.living()
    assert "a device that was removed stands again" in told.out + told.err
