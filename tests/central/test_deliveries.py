"""Deliveries: whatever is lost, forged or late, all that waits is heard, and nothing else is deleted."""

from __future__ import annotations

from random import Random

import pytest
import trio
from deliveries_world import World, play


@pytest.mark.parametrize("seed", range(12))
async def test_all_that_waits_is_heard_in_the_end(seed: int) -> None:
    left = iter(range(150))
    await play(Random(seed).randrange, lambda: next(left, None) is not None)


async def test_of_who_is_forgotten_nothing_waits_however_much_it_was() -> None:
    async with trio.open_nursery() as nursery:
        world = World(lambda most: 1, nursery)
        for _ in range(200):
            await world.publish()
        await world.forget()
        world.check()
        nursery.cancel_scope.cancel()
