"""How often a broker comes back to a parent that ends its links."""

from __future__ import annotations

from typing import Any

import pytest
import trio
from broker_daemons import tree_of_daemons
from posed_child import posing
from small_network import until
from small_tree import small_tree
from talk import Talk
from test_lying_brokers import lie_at

from hushcast_brokers.upstream import LONGEST_PAUSE
from hushcast_protocol.brokers.filter_routes import NOTHING
from hushcast_protocol.brokers.frames import Join, ParentHello, RequestAnswer
from hushcast_runtime.transports.channel import Channel


@pytest.mark.parametrize(
    "says", [(), (RequestAnswer(1, "accepted"),)], ids=["does not list it", "breaks the protocol"]
)
async def test_a_parent_that_ends_each_link_is_asked_less_and_less_often(
    says: tuple[RequestAnswer, ...],
) -> None:
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


async def test_a_link_that_breaks_is_opened_again_at_once_though_the_parent_was_away_before() -> None:
    async with small_tree((("inner", "inner", "root"), ("edge", "edge", "inner"))) as network:
        await network["inner"].stop()
        await trio.sleep(10 * LONGEST_PAUSE)
        await network["inner"].start()
        await network.linked()
        upstream = network["edge"].daemon._upstream
        broken = upstream._open
        await broken.channel._stream.aclose()
        await until(lambda: upstream.is_open and upstream._open is not broken, 5.0, "there is another link")


async def test_an_edge_broker_that_asks_for_more_and_more_work_is_asked_less_and_less_often() -> None:
    count = 0

    async def answer(channel: Channel[Any], frame: Any) -> None:
        nonlocal count
        if isinstance(frame, Join):
            count += 1
            await channel.send(RequestAnswer(frame.serial, "stamp"))

    async with tree_of_daemons(1, (("liar", "edge", "root"),)) as network:
        await network["liar"].stop()
        await lie_at(network, network["liar"], answer, ParentHello(NOTHING, 0, 1))
        network.nursery.start_soon(network.nodes[0].listen)
        await trio.sleep(600.0)
        assert 600 / LONGEST_PAUSE <= count < 60
