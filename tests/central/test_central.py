"""Server and proxies in memory: what is published arrives, once, whoever restarts meanwhile."""

from __future__ import annotations

import trio
from small_central import OTHER, TOPIC, hears, small_central
from small_network import until


async def test_what_is_published_is_delivered_to_those_who_asked_for_it() -> None:
    async with small_central() as network:
        ear, other = await network.subscriber(), await network.subscriber(OTHER)
        both = await network.subscriber(TOPIC, OTHER)
        first = await network.published()
        second = await network.published(OTHER)
        await until(lambda: hears(both, first, second)() and hears(ear, first)() and hears(other, second)())
        await trio.sleep(60)
        assert [message.id for message in ear.person.heard] == [first.id]
        assert [message.id for message in other.person.heard] == [second.id]
        await until(lambda: network.server.daemon.status()["deliveries_waiting"] == 0)
        assert network.count("deliveries_acknowledged") == 4
