"""How many messages a broker takes from its parent, for all that are below it."""

from __future__ import annotations

import pytest
import trio
from posed_child import posing
from small_tree import small_tree
from talk import Talk

from hushcast_protocol.base.versions.manner import NEWEST
from hushcast_protocol.brokers.frames import Ack, Forward, ParentHello
from hushcast_runtime.transports.drawn_answers import HEARD_A_SECOND, HEARD_AT_ONCE

COUNT = 1100


@pytest.mark.slow
async def test_a_broker_takes_so_many_messages_a_second_and_loses_none() -> None:
    took: list[float] = []
    async with small_tree((("inner", "inner", "root"), ("edge", "edge", "inner"))) as network:
        client = await network.client("edge", "")

        async def script(talk: Talk) -> None:
            await talk.say(ParentHello(bytes(16), 0, 1))
            await trio.sleep(5)
            began = trio.current_time()
            await talk.say(*(Forward(network.message(lat=1)) for _ in range(COUNT)))
            frame = None
            while not isinstance(frame, Ack) or frame.number < COUNT:
                frame = await talk.hear()
            took.append(trio.current_time() - began)

        async with posing(network, network["inner"], script):
            while not took:  # noqa: ASYNC110 - it tells nobody
                await trio.sleep(1)
            await trio.sleep(5)
    least = (COUNT - HEARD_AT_ONCE) / HEARD_A_SECOND
    assert least < took[0] < least + 3 * NEWEST.acknowledges_within
    assert len({*client.ids()}) == COUNT
