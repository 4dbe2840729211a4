"""A removed device says that it had let in others, and these remove others yet: those that stand take none.

It tells that whoever does not know of its removal, in any order among what the others say of each other.
"""

from __future__ import annotations

import random

import pytest
from devices_in_any_order import CALENDAR, Unconnected, Unordered

from hushcast_protocol.base.crypto.secrets import Seed
from hushcast_protocol.devices.beats import Beat, seal_beat
from hushcast_protocol.devices.circle_secrets import CircleSecret
from hushcast_protocol.devices.shared_entries import DeviceValue, SharedEntry, write_entry

LIVES = 60


def lies(draw: random.Random, thief: Seed, made_up: Seed, about: list[bytes]) -> tuple[SharedEntry, ...]:
    """Draw what a thief says, in its own name or that of a device that it made up."""
    said = [write_entry(made_up, 1, DeviceValue("not yours", bytes(range(32))))]
    said.append(write_entry(thief, 900, DeviceValue("not yours", bytes(range(32))), made_up.public()))
    for key in draw.sample(about, min(2, len(about))):
        by, is_removed = draw.choice((thief, made_up)), draw.random() < 0.6
        said.append(write_entry(by, 901, DeviceValue("x", bytes(range(32)), is_removed), key))
    return tuple(draw.sample(said, len(said)))


async def say(some: Unordered, thief: Seed, secret: CircleSecret, entries: tuple[SharedEntry, ...]) -> None:
    """Have a thief say entries under a secret that it knows, to all that listen there."""
    beat = Beat(thief.public(), CALENDAR.day(some.now), bytes(512), entries)
    payload = seal_beat(secret, thief, beat, some.draw.randbytes)
    for device in some.here:
        if secret in device.secrets and device.key != thief.public():
            some.waiting.append((device, secret, payload))


@pytest.mark.slow
@pytest.mark.parametrize("part", range(2))
async def test_whatever_a_removed_device_says_the_same_devices_stand(part: int) -> None:
    """One removes it, and may let in a new one; another, which has not heard, may remove one.

    Of who removed it the thief says nothing: who is told by it that this one was removed is led away.
    """
    led = 0
    for number in range(part * LIVES, (part + 1) * LIVES):
        draw = random.Random(number)
        some = Unordered(draw)
        first = await some.begin()
        one, two, old, stolen = [await first.invite() for _ in range(4)]
        await some.settle()
        thief, former, made_up = stolen.own.seed, one.own.keys.secret, Seed(draw.randbytes(32))
        removed = {stolen.key}
        some.devices.remove(stolen)
        await one.circle.remove(stolen.key)
        await some.arrive_but_at(two)
        news: list[Unconnected] = [await one.invite()] if draw.random() < 0.5 else []
        about = [first.key, two.key, old.key, *(new.key for new in news)]
        await say(some, thief, former, lies(draw, thief, made_up, about))
        await some.arrive(draw.choice((0.2, 0.5, 0.8)))
        if draw.random() < 0.5 and old.key in two.own.living():
            removed.add(old.key)
            await two.circle.remove(old.key)
        await say(some, thief, former, lies(draw, thief, made_up, about))
        led += any(made_up.public() in device.own.living() for device in some.here)
        for _ in range(3):
            await some.settle()
            await say(some, thief, former, lies(draw, thief, made_up, about))
        await some.settle()
        some.check_all_but(removed, f"life {number}")
    assert led > LIVES // 10, "no attack"
