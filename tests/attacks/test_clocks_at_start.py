"""A daemon starts with a wrong clock, by a forged time service: it throws away nothing that others gave it.

Nobody has vouched for its time yet, so it acts on the wrong one. What it then takes for a message of another
day may be one of today.
"""

from __future__ import annotations

from typing import Any

import trio
from small_network import (
    DAY_SECONDS,
    EPOCH_SECONDS,
    ONE,
    TWO,
    Node,
    SmallNetwork,
    network_with_clocks_set,
    until,
)

from hushcast_overlay.relay.forwarding import FULL_PAUSE
from hushcast_overlay.routes.route import OverlayRoute
from hushcast_overlay.routes.upkeep import ASK_WITHIN
from hushcast_protocol.base.versions.manner import NEWEST
from hushcast_protocol.content.bodies import Content

WRONG = 2.0 * DAY_SECONDS


async def start_wrong(net: SmallNetwork, node: Node) -> None:
    """Start a daemon whose clock is ahead, and which does not hear of it at first."""
    net.skews = {node.name: WRONG}
    net.waits = False
    await node.start()
    net.skews, net.waits = {}, True


async def test_a_relay_keeps_what_it_accepted() -> None:
    async with network_with_clocks_set(relays=3, origins=1) as net:
        ear = await net.clients[0].listen()
        relay = net.relays[0]
        assert relay.daemon.overlay.relay is not None

        async def keep_all(*_: object) -> bool:
            return False

        relay.daemon.overlay.relay.drops._route = keep_all  # type: ignore[method-assign]
        await net.drop_at(relay, ONE, Content(b"accepted"))
        await trio.sleep(1)
        await relay.stop()
        await net.directory.stop()
        await start_wrong(net, relay)
        await trio.sleep(3 * FULL_PAUSE)
        assert len(await relay.store.scan("intake")) == 1
        relay.set_clock(0.0)
        await net.directory.start()
        assert await ear.hears(1) == [b"accepted"]
        assert relay.count("messages_expired") == 0


async def test_a_relay_does_not_confirm_what_it_would_throw_away() -> None:
    async with network_with_clocks_set(relays=4, origins=1, depth=2) as net:
        ear = await net.clients[0].listen()
        tree = next(iter(net.clients[0].route().planned.values())).installation.tree
        below, top = next((below, top) for below, top in tree.parents.items() if top is not None)
        relay, wrong = net.relay(below), net.relay(top)
        await wrong.stop()
        await net.directory.stop()
        await start_wrong(net, wrong)
        for number in range(3):
            await net.drop_at(relay, ONE, Content(b"%d" % number))
            await trio.sleep(5)
        wrong.set_clock(0.0)
        await net.directory.start()
        assert sorted(await ear.hears(3)) == [b"0", b"1", b"2"]
        assert wrong.count("refused_day") == 0


async def test_a_client_does_not_confirm_what_it_would_throw_away() -> None:
    async with network_with_clocks_set(relays=3) as net:
        client = net.clients[0]
        (await client.listen()).close()
        await client.stop()
        await net.directory.stop()
        await start_wrong(net, client)
        for number in range(3):
            await net.clients[1].daemon.service.publish(ONE, Content(b"%d" % number))
            await trio.sleep(5)
        client.set_clock(0.0)
        await net.directory.start()
        await until(lambda: client.count("messages_delivered") == 3)
        assert client.count("refused_day") == 0


async def test_subscriptions_that_waited_for_a_roster_do_not_go_on_together() -> None:
    """The directory could choose the moment, and see in the parcels which boxes are one daemon's."""
    async with network_with_clocks_set(relays=3, clients=1) as net:
        client = net.clients[0]
        await client.listen(ONE)
        await client.listen(TWO)
        await client.stop()
        await net.directory.stop()
        net.skews, net.waits = (
            {client.name: -20.0 * EPOCH_SECONDS},
            False,
        )  # its rosters are for a time to come
        await client.start()
        assert client.daemon.overlay.rosters.newest is None
        moments: dict[bytes, float] = {}
        upkeep = client.daemon.overlay.routes._upkeep
        complete = upkeep._complete

        async def note(route: OverlayRoute, *others: Any) -> None:
            moments.setdefault(route.wanted.name, trio.current_time())
            await complete(route, *others)

        upkeep._complete = note  # type: ignore[method-assign]
        await trio.sleep(ASK_WITHIN + NEWEST.retell_within + 1)
        client.set_clock(0.0)
        await net.directory.start()
        await until(lambda: len(moments) == 2)
        one, two = moments.values()
        assert abs(one - two) > 0.01
