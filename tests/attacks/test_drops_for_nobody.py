"""A stranger drops what nobody subscribes to, and it is handed on, to fill what relays keep for others."""

from __future__ import annotations

from small_network import ONE, small_network

from hushcast_overlay.relay.placement import HANDED_ON_UP_TO
from hushcast_protocol.content.bodies import Content
from hushcast_runtime.storage.spool import MAX_SPOOL


async def test_what_is_handed_on_takes_a_quarter_of_the_spool_and_no_more() -> None:
    async with small_network(relays=3, clients=1) as net:
        relay = net.relays[0]
        assert relay.daemon.overlay.relay is not None
        spool = relay.daemon.overlay.relay.forwarding._spool
        await net.drop_at(relay, ONE, Content(b"with room"))
        assert relay.count("drops_handed_on") == 1
        spool.reserve(HANDED_ON_UP_TO)
        await net.drop_at(relay, ONE, Content(b"without"))
        assert relay.count("drops_handed_on") == 1
        assert relay.count("messages_dropped_here") == 2, "it waits for a lease all the same"
        assert not spool.is_full(MAX_SPOOL // 2), "and what has a way has room"
        spool.reserve(-HANDED_ON_UP_TO)
        await net.drop_at(relay, ONE, Content(b"with room again"))
        assert relay.count("drops_handed_on") == 2
