"""A proxy that lost its disk, or a clock that was wrong for a while, costs no subscription what waits."""

from __future__ import annotations

from dataclasses import replace

import trio
from daemons import daemons
from small_network import DAY_SECONDS, EPOCH_SECONDS, ONE, until

from hushcast_protocol.content.bodies import Content
from hushcast_runtime.storage.store import MemoryStore


async def test_what_waits_outlives_the_disk_of_a_proxy_that_is_back_before_the_server() -> None:
    async with daemons(count=0) as network:
        network.add("deliveries-2", "deliveries")
        network.server.daemon.replace_proxies(network.proxies)
        await network.members[-1].start()
        await network.linked()
        here, there = network.node("here"), network.node("there")
        await here.start()
        await there.start()
        await here.listen()
        await until(lambda: network.server.daemon.status()["attached"] == 1)
        used = next(one for one in network.members[2:] if one.daemon.status()["attached"])
        await here.stop()
        await there.daemon.service.publish(ONE, Content(b"x"))
        await network.server.stop()
        await used.stop()
        used.store = MemoryStore()
        await used.start()
        await here.start()
        await trio.sleep(EPOCH_SECONDS)
        await network.server.start()
        await network.linked()
        assert await (await here.listen()).hears(1, within=10 * EPOCH_SECONDS) == [b"x"]


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
