"""A daemon of a central network is ready while proxies get through to the server, and says when none does."""

from __future__ import annotations

import trio
from daemons import Node, daemons
from small_network import ONE, until

from hushcast_protocol.content.bodies import Content
from hushcast_runtime.carriers.contact import LOST_AFTER

WITHIN = 600.0  # seconds: six attempts, with pauses of up to a minute


def reason(node: Node) -> str:
    return str(node.daemon.status()["cut_off"])


async def test_who_receives_finds_out_and_hears_of_proxies_that_are_back() -> None:
    async with daemons(1) as network:
        (node,) = network.nodes
        await node.listen()
        assert node.daemon.is_connected
        await network.deliveries.stop()
        await until(lambda: not node.daemon.is_connected, WITHIN, "it finds out")
        assert "nothing gets through proxies for deliveries" in reason(node)
        assert node.daemon.status()["ready"] is False
        await network.deliveries.start()
        await until(lambda: node.daemon.is_connected, WITHIN, "one answers again")
        assert node.daemon.status()["cut_off"] is None


async def test_proxies_without_a_server_are_of_no_use() -> None:
    async with daemons(1) as network:
        (node,) = network.nodes
        await node.listen()
        await network.server.stop()
        await until(lambda: not node.daemon.is_connected, WITHIN, "it finds out")
        assert "the server is away" in reason(node)
        await network.server.start()
        await until(lambda: node.daemon.is_connected, WITHIN, "it is back")


async def test_who_only_publishes_finds_out_and_asks_until_somebody_answers() -> None:
    async with daemons(1) as network:
        (node,) = network.nodes
        await network.publications.stop()
        for number in range(LOST_AFTER):
            await node.daemon.service.enqueue(ONE, Content(b"%d" % number))
        await until(lambda: not node.daemon.is_connected, WITHIN, "it finds out")
        assert "proxies for publications" in reason(node)
        await network.publications.start()
        await until(lambda: node.daemon.is_connected, WITHIN, "one answers again")


async def test_a_restart_among_the_silent_is_found_out() -> None:
    async with daemons(1) as network:
        (node,) = network.nodes
        await node.listen()
        for member in network.members:
            await member.stop()
        network.waits = False
        await node.restart()
        await until(lambda: not node.daemon.is_connected, WITHIN, "it finds out")
        await trio.sleep(WITHIN)
        assert not node.daemon.is_connected
