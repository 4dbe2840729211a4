"""A relay opens links to another without end: it must not take the room of all the others."""

from __future__ import annotations

import trio
from small_network import ONE, small_network

from hushcast_protocol.base.link.hop import MAX_LINKS_A_PEER
from hushcast_protocol.content.bodies import Content


async def test_one_relay_holds_a_few_links_and_messages_go_on() -> None:
    async with small_network(relays=4, clients=2, epoch=3600) as net:
        ear = await net.clients[0].listen()
        victim, mole = net.relays[:2]
        assert victim.daemon.overlay.relay is not None
        assert mole.identity is not None
        await trio.sleep(5)  # links to next hops open meanwhile
        before = victim.daemon.overlay.relay.peers.open_links()

        async def open_one() -> None:
            await net.knock(victim, mole.identity.seed)  # type: ignore[union-attr]

        async with trio.open_nursery() as nursery:
            for _ in range(10 * MAX_LINKS_A_PEER):
                nursery.start_soon(open_one)
        await trio.sleep(1)
        assert victim.daemon.overlay.relay.peers.open_links() - before <= MAX_LINKS_A_PEER
        for number, relay in enumerate(net.relays):
            await net.drop_at(relay, ONE, Content(b"%d" % number))
        await ear.hears(4)
