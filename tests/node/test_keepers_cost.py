"""What keepers cost a quiet network: links and disk, beside the same network without them."""

from __future__ import annotations

from typing import Any

import pytest
import trio
from hosted_network import subscribed
from kept_network import SIX, kept_network
from small_network import EPOCH_SECONDS, ONE, SmallNetwork

from hushcast_protocol.base.keeping_rule import NOTHING_KEPT, KeepingRule
from hushcast_protocol.content.bodies import Content
from hushcast_protocol.overlay.profile import Root

EPOCHS = 12
OF_A_RECORD = 200  # bytes of a keeper's disk for a message, beside its body


async def links_of_half_a_day(net: SmallNetwork) -> int:
    """Links that daemons opened while two subscribe to a topic and one publishes each epoch."""
    for client in net.clients:
        await subscribed(client)
    await trio.sleep(2 * EPOCH_SECONDS)
    before = net.count("links_opened")
    for _ in range(EPOCHS):
        await net.clients[0].daemon.service.publish(ONE, Content(b"an epoch"))
        await trio.sleep(EPOCH_SECONDS)
    return net.count("links_opened") - before


@pytest.mark.slow
async def test_a_quiet_network_opens_at_most_three_times_the_links_and_keeps_some_kilobytes() -> None:
    links: list[int] = []
    rules: tuple[KeepingRule, ...] = (NOTHING_KEPT, SIX)
    for keeping in rules:
        async with kept_network(10, keeping, clients=2, root=Root.HOST, probes_an_epoch=0.0) as net:
            links.append(await links_of_half_a_day(net))
            stores: list[Any] = [relay.store for relay in net.relays]
            bodies = [one._records.get("kept-body", {}) for one in stores]
            kept = sum(len(body) for one in bodies for body in one.values())
            beside = sum(
                len(key) + len(value)
                for one in stores
                for kind in ("kept", "kept-body")
                for key, value in one._records.get(kind, {}).items()
            )
            assert net.count("messages_kept") <= 3 * EPOCHS
            assert kept <= 3 * EPOCHS * 1200, "three of ten relays have each message"
            count = sum(map(len, bodies))
            assert count == net.count("messages_kept")
            assert beside - kept <= OF_A_RECORD * count, "keys, and what is known of a message"
    without, beside = links
    assert without < beside <= 3 * without, f"{without} without keepers, {beside} with them"
