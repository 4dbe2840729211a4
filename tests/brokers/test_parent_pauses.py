"""How often a broker comes back to a parent that ends its links."""

from __future__ import annotations

import pytest
import trio
from small_tree import small_tree
from talk import Talk
from test_broker_hostile import posing

from hushcast_brokers.upstream import LONGEST_PAUSE
from hushcast_protocol.brokers.frames import Done


@pytest.mark.parametrize(
    "says", [(), (Done(1, "accepted"),)], ids=["does not list it", "breaks the protocol"]
)
async def test_a_parent_that_ends_each_link_is_asked_less_and_less_often(says: tuple[Done, ...]) -> None:
    count = 0

    async def script(talk: Talk) -> None:
        nonlocal count
        count += 1
        for frame in says:
            await talk.say(frame)

    async with (
        small_tree((("inner", "inner", "root"), ("edge", "edge", "inner"))) as network,
        posing(network, network["inner"], script),
    ):
        await trio.sleep(600.0)
        assert 600 / LONGEST_PAUSE <= count < 60
