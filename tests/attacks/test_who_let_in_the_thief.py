"""Who let in a device that was removed since says so still: that undoes no removal, whoever made it."""

from __future__ import annotations

import random

import pytest
from devices_in_any_order import CALENDAR, EPOCH, SETTLED, Unordered

from hushcast_protocol.devices.circle_secrets import sealed_to


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(8))
async def test_no_secret_is_sealed_to_a_removed_device_again(seed: int) -> None:
    """One removes the thief, its sponsor removes that one, and one that was away removes a third."""
    some = Unordered(random.Random(seed))
    sponsor = await some.begin()
    other, thief, remover, away, third = [await sponsor.invite() for _ in range(5)]
    await some.settle()
    some.devices.remove(thief)
    for by, gone in ((remover, thief), (sponsor, remover)):
        await by.circle.remove(gone.key)
        for _ in range(4):
            some.now += EPOCH
            for device in some.here:
                if device is not away:
                    await device.circle.speak(CALENDAR.epoch(some.now))
                await some.arrive_but_at(away)
    await away.circle.remove(third.key)
    for _ in range(SETTLED):
        some.now += EPOCH
        for device in some.draw.sample(some.here, len(some.here)):
            await device.circle.speak(CALENDAR.epoch(some.now))
            await some.arrive(some.draw.random())
            for one in (sponsor, other):
                assert thief.key not in one.own.living()
            for one in (sponsor, other, away):
                change = one.own.change
                assert change is not None
                assert thief.key not in sealed_to(change) or remover.key in sealed_to(change)
        await some.arrive()
