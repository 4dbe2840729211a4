"""Requests under `full` that an edge broker answers only after their day has lapsed."""

from __future__ import annotations

from typing import Any

import pytest
import trio
from broker_daemons import tree_of_daemons
from small_network import ONE, TWO, until
from test_lying_brokers import ROWS, agree, lie_at

from hushcast_protocol.brokers.frames import ParentHello, RequestAnswer, Subscribe, Unsubscribe
from hushcast_runtime.transports.channel import Channel


@pytest.mark.parametrize("late", [Subscribe, Unsubscribe])
async def test_an_answer_after_the_day_has_lapsed_is_of_nothing(late: type) -> None:
    held: list[tuple[Channel[Any], int]] = []

    async def answer(channel: Channel[Any], frame: Any) -> None:
        if is_late and isinstance(frame, late):
            held.append((channel, frame.serial))
        else:
            await agree(channel, frame)

    is_late = False
    async with tree_of_daemons(1, ROWS, profile="full/3") as network:
        await network["liar"].stop()
        await lie_at(network, network["liar"], answer, ParentHello(bytes(16), 0, 1))
        [node] = network.nodes
        await node.listen(TWO)
        if late is Unsubscribe:
            (await node.listen(ONE)).close()
        is_late, day = True, network.today
        network.nursery.start_soon(
            node.daemon.service.unsubscribe if late is Unsubscribe else node.listen, ONE
        )
        await until(lambda: held, 10.0, "it is asked for")
        is_late = False
        await trio.sleep(network.calendar.lapse(day) - network.now + 120)
        for channel, serial in held:
            await channel.send(RequestAnswer(serial, "accepted"))
        await trio.sleep(10)
        assert node.is_up
        [place] = [node.daemon.brokers.routes.attachments.current]
        records = {key[32:] for key, _ in await node.store.scan("asked")}
        assert records == set(place.kept.asked)
        assert place.is_reached, "the link is the same"
