"""A tree of brokers under `full`: they route what they cannot read, as they come and go and start again."""

from __future__ import annotations

import pytest
import trio
from broker_daemons import Node, TreeOfDaemons, tree_of_daemons
from small_network import ONE, TWO, until
from small_tree import Member

from hushcast_brokers.attachments import ATTACH_WITHIN
from hushcast_protocol.base.errors import Refusal
from hushcast_protocol.content.bodies import Content
from hushcast_protocol.content.topics import make_topic

PLACES = make_topic("places", ["kind", "lat:-90..90:1"])
ROWS = (
    ("top", "inner", "root"),
    ("inner 1", "inner", "top"),
    ("inner 2", "inner", "top"),
    ("edge 1", "edge", "inner 1"),
    ("edge 2", "edge", "inner 1"),
    ("edge 3", "edge", "inner 2"),
)
PROFILES = ["full/2", "full/3", "full/4", "full/3/apart", "full/3/paper", "full/2/paper/a"]

# Without factors only what lies under the same keys is compared: what comes of one owner by one way.
SHOWN = {"full/3/apart": [5, 7, 8], "full/2/paper/a": [5, 6, 6]}


async def started(network: TreeOfDaemons, edges: tuple[str, ...]) -> list[Node]:
    """Start a daemon at each of these edge brokers."""
    nodes = []
    for number, edge in enumerate(edges):
        node = network.node(f"at {edge} {number}")
        node.edge = network[edge].key
        await node.start()
        nodes.append(node)
    return nodes


async def sent(node: Node, payload: bytes, topic=ONE, **values) -> None:  # type: ignore[no-untyped-def]
    """Publish, and wait for the receipt."""
    await node.daemon.service.publish(topic, Content(payload, values))


async def is_compared(network: TreeOfDaemons) -> None:
    """Wait until each broker that can has one row for what is one word."""

    def are_settled() -> bool:
        return all(
            member.daemon._matching._rows is not None and not member.daemon._matching._rows.missing()
            for member in network.members
            if member.is_up
        )

    await until(are_settled, 120.0, "all is compared")


SIX = ("edge 1", "edge 1", "edge 2", "edge 2", "edge 3", "edge 3")


@pytest.mark.parametrize("profile", PROFILES)
async def test_six_daemons_get_what_they_asked_for_and_nothing_else(profile: str) -> None:
    async with tree_of_daemons(0, ROWS, profile=profile) as network:
        nodes = await started(network, SIX)
        ears = [await node.listen(ONE if number % 2 else TWO) for number, node in enumerate(nodes)]
        both = await nodes[0].listen(ONE)
        north = await nodes[1].listen(PLACES, "lat in [60, 63], kind = fire")
        await is_compared(network)
        shown = [network[name].status("filters_shown") for name in ("edge 1", "inner 1", "top")]
        assert shown == SHOWN.get(profile, [4, 4, 4]), "one for each word: the range takes two"
        await sent(nodes[5], b"one", ONE)
        await sent(nodes[4], b"two", TWO)
        await sent(nodes[4], b"fire", PLACES, kind="fire", lat=62 + 90)
        await sent(nodes[4], b"south", PLACES, kind="fire", lat=0 + 90)
        for number, ear in enumerate(ears):
            assert await ear.hears(1) == [b"one" if number % 2 else b"two"]
        assert await both.hears(1) == [b"one"]
        assert await north.hears(1) == [b"fire"]
        await trio.sleep(60)
        assert all(len(ear.heard) == 1 for ear in (*ears, both, north))
        assert network.count("refused_form") + network.count("refused_tree") == 0
        assert network.count("messages_unmatched") == 1
        assert network.count_at_nodes("deliveries_refused") == 0
