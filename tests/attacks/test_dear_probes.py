"""A writer sends as many of the largest messages as are remembered, so that a quiet topic is probed no more.

It is one with relays that lose messages: each probe was like what came, and so dear that it was waited for
through 32 turns, day after day, until others wrote as much.
"""

from __future__ import annotations

import pytest
import trio
from small_network import ONE, small_network

from hushcast_local.recent_messages import MAX_RECENT
from hushcast_protocol.base.crypto.secrets import TopicKey
from hushcast_protocol.content.bodies import Content, compose
from hushcast_protocol.content.likeness import OTHERS
from hushcast_protocol.content.payload_sizes import MAX_PAYLOAD

EPOCH = 1200
PROBES = 96  # an epoch, in the mean
TURNS = MAX_PAYLOAD // (8 * 1024)  # until one of the largest is paid for


@pytest.mark.slow
async def test_large_messages_do_not_end_all_other_probes() -> None:
    async with small_network(relays=4, clients=1, epoch=EPOCH, probes_an_epoch=float(PROBES)) as net:
        (reader,) = net.clients
        await reader.listen(ONE)
        (subscription,) = reader.daemon.service.subscriber.subscriptions
        message = compose(TopicKey(bytes(32)), 1, (bytes(16),), Content(bytes(MAX_PAYLOAD)), bytes)
        for _ in range(MAX_RECENT):
            subscription.recent.received(message, net.now, {})
        subscription.recent.take_bytes()  # what they paid for is long spent
        await trio.sleep(EPOCH)
        before = reader.count("probes_sent")
        await trio.sleep(2 * EPOCH)
        sent = reader.count("probes_sent") - before
        assert sent >= 2 * PROBES // OTHERS - 4, f"{sent} in {2 * PROBES} turns, {TURNS} for each large one"
