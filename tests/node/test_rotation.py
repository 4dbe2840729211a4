"""A relay may replace any of its keys: the network goes on, and uses the new ones from the next roster on."""

from __future__ import annotations

from dataclasses import replace

import pytest
from small_network import EPOCH_SECONDS, ONE, TWO, small_network, until

from hushcast_protocol.base.crypto.secrets import FilterKey, ParcelKey, Seed
from hushcast_protocol.content.bodies import Content


@pytest.mark.parametrize(
    ("name", "kind"),
    [("parcel_key", ParcelKey), ("service", Seed), ("filter_key", FilterKey), ("seed", Seed)],
)
async def test_a_key_is_replaced(name: str, kind: type[ParcelKey | Seed | FilterKey]) -> None:
    async with small_network(relays=4, clients=2) as net:
        reader, writer = net.clients
        ear = await reader.listen(ONE)
        relay = net.relays[0]
        assert relay.identity is not None
        old = relay.id
        await relay.stop()
        relay.identity = replace(relay.identity, **{name: kind.draw(net.env.randomness)})
        await relay.start()
        rosters = [node.daemon.overlay.rosters for node in net.nodes]
        await until(
            lambda: all(held.newest and relay.id in held.newest.relays for held in rosters),
            4 * EPOCH_SECONDS,
            "all know the relay by its new keys",
        )
        assert (relay.id == old) == (name != "seed")
        await net.sleep_until(net.calendar.epoch_start(net.calendar.epoch(net.now) + 3))
        later = await reader.listen(TWO)
        for number in range(8):
            await writer.daemon.service.publish((ONE, TWO)[number % 2], Content(b"still there"))
        await ear.hears(4)
        await later.hears(4)
