"""Strangers show relays digests that they made up, so that operators read that the directory lies."""

from __future__ import annotations

import trio
from small_network import small_network, until

from hushcast_protocol.base.crypto.secrets import Seed
from hushcast_protocol.base.roster import RosterView


async def test_strangers_views_prove_nothing() -> None:
    async with small_network(relays=3, clients=1) as net:
        relay = net.relays[0]
        view = relay.daemon.overlay.rosters.view()
        assert view is not None
        unlisted = Seed.draw(net.env.randomness)
        for us in (None, unlisted, None, unlisted):
            channel = await net.knock(relay, us, RosterView(view.epoch, bytes(32)))
            await trio.sleep(1)
            await channel.aclose()
        assert relay.count("roster_mismatches") == 0
        assert relay.count("views_passed_over") == 4


async def test_a_listed_relays_view_still_does() -> None:
    async with small_network(relays=3, clients=1) as net:
        relay, other = net.relays[:2]
        view = relay.daemon.overlay.rosters.view()
        assert view is not None
        assert other.identity is not None
        channel = await net.knock(relay, other.identity.seed, RosterView(view.epoch, bytes(32)))
        await until(lambda: relay.count("roster_mismatches") == 1, 5)
        await channel.aclose()
