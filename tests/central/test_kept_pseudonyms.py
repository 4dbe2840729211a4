"""A proxy that lost its disk, or a clock that was wrong for a while, costs no subscription what waits."""

from __future__ import annotations

from dataclasses import replace

import trio
from daemons import daemons
from small_network import DAY_SECONDS, EPOCH_SECONDS, ONE, until

from hushcast_protocol.content.bodies import Content


async def test_a_subscription_is_served_again_once_a_clock_that_was_ahead_is_right() -> None:
    async with daemons() as network:
        here, there = network.nodes
        await here.listen()
        await until(lambda: network.server.daemon.status()["attached"] == 1)
        await here.stop()
        environment = network.environment
        ahead = 2 * DAY_SECONDS
        network.environment = lambda name: replace(
            environment(name), now=lambda: network.now + ahead, look_every=EPOCH_SECONDS
        )
        here.is_vouched = False
        await here.start()
        await trio.sleep(EPOCH_SECONDS)
        ahead = 0
        await trio.sleep(EPOCH_SECONDS)
        await there.daemon.service.publish(ONE, Content(b"x"))
        assert await (await here.listen()).hears(1, within=10 * EPOCH_SECONDS) == [b"x"]
