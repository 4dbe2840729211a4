"""Daemons over a tree of brokers: publish, subscribe, restart, and another edge broker."""

from __future__ import annotations

from broker_daemons import tree_of_daemons
from small_network import ONE

from hushcast_protocol.content.bodies import Content


async def test_what_one_publishes_another_gets() -> None:
    async with tree_of_daemons() as network:
        one, other = network.nodes
        ear = await one.listen()
        await other.daemon.service.publish(ONE, Content(b"hello"))
        await ear.hears(1)
        assert ear.payloads == [b"hello"]
