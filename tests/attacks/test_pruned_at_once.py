"""A stranger points thousands of leases at a relay that knows none of them, so that all are pruned at once.

He publishes eight messages that follow them, and the relay that has the leases stands still. A mailbox on its
machine answers late meanwhile, and so shows whose it is.
"""

from __future__ import annotations

import os

import pytest
from small_network import Node, SmallNetwork, small_network, until

from hushcast_overlay.relay.detours import PRUNE_AFTER
from hushcast_protocol.content.messages import TRAIL_SIZE, Message, message_id
from hushcast_protocol.overlay.elements import ORIGIN, element
from hushcast_protocol.overlay.frames import Drop, Receipt
from hushcast_protocol.overlay.leases import Install, LeaseBook, ToRelay, lease_mark

LEASES, ELEMENTS = 150, 250  # as many elements as 1,900 leases of usual size have: 0.2 s in one step
TRUNK = b"t" * 16


def install(net: SmallNetwork, relay: Node, below: Node) -> LeaseBook:
    """Have a relay hold leases that send what is dropped there to another, which holds none."""
    assert relay.daemon.overlay.relay is not None
    book, day = relay.daemon.overlay.relay.leases.book, net.calendar.day(net.now)
    entry = element(net.profile, TRUNK, relay.id, ORIGIN)
    for _ in range(LEASES):
        elements = (entry, *[os.urandom(16) for _ in range(ELEMENTS - 1)])
        mark = lease_mark(TRUNK, relay.id)
        instruction = Install(os.urandom(16), day, ToRelay(below.id), elements, mark, os.urandom(16))
        book.install(instruction, net.now)
    return book


@pytest.mark.slow
async def test_leases_are_pruned_in_steps() -> None:
    async with small_network(relays=3, clients=0, epoch=36000) as net:
        relay, below, _ = net.relays
        book, day = install(net, relay, below), net.calendar.day(net.now)
        assert len(book) == LEASES
        for _ in range(PRUNE_AFTER):
            body = os.urandom(1167)
            channel = await net.knock(relay)
            message = Message(message_id(day, body), day, (TRUNK,), bytes(TRAIL_SIZE), body)
            await channel.send(Drop(message, None))
            assert await channel.one(30) == Receipt("accepted")
            await channel.aclose()
        await until(lambda: len(book) == 0, 120.0)
        assert relay.count("leases_pruned") == LEASES
