"""A stranger has more messages rest at relays than these remember, so that others' rest there for ever.

His leases at all relays lead to one that is away, so whatever goes around comes back until it rests. What did
so longest was forgotten before it was looked at again, and whatever was not remembered rested, others' too.
"""

from __future__ import annotations

import pytest
import trio
from flooded_origin import HIS, LONG, FloodedOrigin
from small_network import ONE, Node, SmallNetwork, small_network, until

from hushcast_overlay.relay import detour_pace
from hushcast_overlay.relay.detour_pace import AROUND_WITHIN, REST
from hushcast_protocol.base.link.hop import DETOUR_AFTER
from hushcast_protocol.content.bodies import Content
from hushcast_protocol.overlay.elements import ORIGIN, element
from hushcast_protocol.overlay.frames import Receipt
from hushcast_protocol.overlay.hops import relay_hop
from hushcast_protocol.overlay.leases import Install, ToRelay, lease_mark

ROOM = 4  # of messages that relays remember here
BYPASS = b"b" * 16


def a_line(net: SmallNetwork) -> tuple[Node, Node]:
    """Return a top relay of the first client's tree, and one under it."""
    (planned,) = net.clients[0].route().planned.values()
    children = planned.installation.tree.children
    top = next(relay for relay in children[None] if children.get(relay))
    return net.relay(top), net.relay(children[top][0])


async def lead_round(net: SmallNetwork, dead: Node) -> None:
    """Have all relays send his messages to one that is away, and what goes around there, too."""
    day, draw = net.calendar.day(net.now), net.env.randomness
    for relay in [node for node in net.relays if node.is_up]:
        enters = tuple(element(net.profile, token, relay.id, ORIGIN) for token in (HIS, BYPASS))
        mark = lease_mark(HIS, relay.id)
        install = Install(draw(16), day, ToRelay(dead.id), enters, mark, BYPASS)
        await FloodedOrigin(net, relay, dead).install(install)


@pytest.mark.slow
async def test_who_fills_what_is_remembered_of_those_that_rest_stops_nobody_else(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(detour_pace, "MAX_PACED", ROOM)
    async with small_network(relays=7, clients=1, origins=1, epoch=LONG) as net:
        ear = await net.clients[0].listen()
        top, below = a_line(net)
        (planned,) = net.clients[0].route().planned.values()
        host = net.root_hop(net.clients[0])[1:]
        tree = planned.installation.tree
        dead = next(
            node
            for node in net.relays
            if node.id not in (top.id, below.id, host) and not tree.children.get(node.id)
        )
        await dead.stop()
        await lead_round(net, dead)
        his = FloodedOrigin(net, below, dead)
        for relay in [node for node in net.relays if node.is_up]:
            for _ in range(30):
                await FloodedOrigin(net, relay, dead).drop(HIS)
        await until(lambda: relay_hop(dead.id) in his.relay.peers.away, 4 * DETOUR_AFTER, "it is away")
        await trio.sleep(4 * REST)
        await top.stop()
        for number in range(3):
            await net.drop_at(below, ONE, Content(b"%d" % number))
        assert sorted(await ear.hears(3, within=6 * REST)) == [b"0", b"1", b"2"]


@pytest.mark.parametrize("is_back", [True, False])
async def test_what_relays_gave_up_can_be_dropped_anew(is_back: bool) -> None:
    async with small_network(relays=3, clients=0, origins=1, epoch=LONG) as net:
        origin, other, dead = net.relays
        await dead.stop()
        await lead_round(net, dead)
        scene = FloodedOrigin(net, origin, other)
        dropped = await scene.drop(HIS)
        await trio.sleep(AROUND_WITHIN + 4 * REST)
        assert net.count("messages_lost_detour") == 1
        if is_back:
            await dead.start()
            await until(lambda: scene.relay.peers.is_linked(relay_hop(dead.id)), 600, "it is back")
        else:
            await trio.sleep(AROUND_WITHIN)
        gone_around, received = net.count("messages_detoured"), dead.count("messages_received")
        assert await scene.relay.drops.take(dropped) == Receipt("accepted")
        await trio.sleep(AROUND_WITHIN / 2)
        if is_back:
            assert dead.count("messages_received") == received + 1
        else:
            assert net.count("messages_detoured") > gone_around + 10
            assert net.count("messages_lost_detour") == 1
