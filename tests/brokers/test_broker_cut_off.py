"""A daemon among brokers is ready while root and edge broker answer, and says so when one does not."""

from __future__ import annotations

from broker_daemons import Node, tree_of_daemons
from small_network import ONE, until

from hushcast_protocol.content.bodies import Content

ROWS = (("edge", "edge", "root"),)
WITHIN = 600.0  # seconds: six attempts, with pauses of up to a minute


def reason(node: Node) -> str:
    return str(node.daemon.status()["cut_off"])


async def test_who_receives_finds_out_that_its_edge_broker_is_away() -> None:
    async with tree_of_daemons(1, ROWS) as network:
        (node,) = network.nodes
        await node.listen(ONE)
        await until(lambda: node.daemon.brokers.edge()["reached"], WITHIN, "it is attached")  # type: ignore[index]
        assert node.daemon.is_connected
        await network["edge"].stop()
        await until(lambda: not node.daemon.is_connected, WITHIN, "it finds out")
        assert "the edge broker does not serve this daemon" in reason(node)
        assert node.daemon.status()["ready"] is False
        await network["edge"].start()
        await until(lambda: node.daemon.is_connected, WITHIN, "it is back")
        assert node.daemon.status()["cut_off"] is None


async def test_who_only_publishes_finds_out_and_asks_until_the_root_answers() -> None:
    async with tree_of_daemons(1, ROWS) as network:
        (node,) = network.nodes
        await network.root.stop()
        for number in range(2):
            await node.daemon.service.enqueue(ONE, Content(b"%d" % number))
        await until(lambda: not node.daemon.is_connected, WITHIN, "it finds out")
        assert "the root of the brokers does not answer" in reason(node)
        await network.root.start()
        await until(lambda: node.daemon.is_connected, WITHIN, "it is back")


async def test_what_nobody_wants_any_more_cuts_nobody_off() -> None:
    async with tree_of_daemons(1, ROWS) as network:
        (node,) = network.nodes
        await node.listen(ONE)
        await until(lambda: node.daemon.brokers.edge()["reached"], WITHIN, "it is attached")  # type: ignore[index]
        await network["edge"].stop()
        await until(lambda: not node.daemon.is_connected, WITHIN, "it finds out")
        await node.daemon.service.unsubscribe(ONE)
        await until(lambda: node.daemon.is_connected, WITHIN, "nothing is to be had there")
