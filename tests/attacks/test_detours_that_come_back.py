"""A next hop dies, and a message's way around it leads through a relay below the one that sent it around.

It comes back there over a link of its tree, and must not be taken for a copy of what was sent.
"""

from __future__ import annotations

import pytest
from small_network import ONE, Ear, Node, SmallNetwork, small_network

from hushcast_protocol.base.link.hop import DETOUR_AFTER
from hushcast_protocol.content.bodies import Content
from hushcast_protocol.overlay.tree import Tree

LONG = 4 * 3600  # seconds of an epoch, so long that no tree is mended during a test
MESSAGES = 96  # each comes back with one chance in fifteen or more


def tree_of(node: Node) -> Tree:
    (planned,) = node.route().planned.values()
    return planned.installation.tree


def below(tree: Tree, relay: bytes) -> int:
    return sum(1 + below(tree, child) for child in tree.children.get(relay, ()))


def a_line(net: SmallNetwork) -> tuple[Node, Node]:
    """Return a top relay and the one under it that has the most below."""
    tree = tree_of(net.clients[0])
    tops = tree.children[None]
    under = [child for top in tops for child in tree.children.get(top, ()) if tree.children.get(child)]
    middle = max(under, key=lambda relay: below(tree, relay))
    top = tree.parents[middle]
    assert top is not None
    return net.relay(top), net.relay(middle)


async def all_arrive(net: SmallNetwork, ear: Ear, origin: Node) -> None:
    sent = [b"%d" % number for number in range(MESSAGES)]
    for payload in sent:
        await net.drop_at(origin, ONE, Content(payload))
    assert sorted(await ear.hears(MESSAGES, within=6 * DETOUR_AFTER)) == sorted(sent)
    assert net.count("messages_lost_detour") == 0


@pytest.mark.slow
async def test_what_comes_back_through_a_relay_below_goes_around_again() -> None:
    async with small_network(relays=16, clients=1, origins=1, epoch=LONG, depth=3) as net:
        ear = await net.clients[0].listen()
        top, middle = a_line(net)
        await top.stop()
        await all_arrive(net, ear, middle)
        assert middle.count("messages_detoured") > MESSAGES, "some of them came back"
