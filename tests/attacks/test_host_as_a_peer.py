"""A stranger says that it is a host, has a relay dial it by a lease, and speaks there as relays do.

It wants messages and parcels taken without stamps and past what is let in of strangers, and all the room in
which parcels wait.
"""

from __future__ import annotations

import os

import pytest
import trio
from small_network import Node, SmallNetwork, small_network
from strangers_host import open_host

from hushcast_protocol.base.crypto.secrets import Seed
from hushcast_protocol.base.wire import Wire
from hushcast_protocol.content.messages import TRAIL_SIZE, Message, message_id
from hushcast_protocol.overlay.frames import (
    Ack,
    Drop,
    Forward,
    OverlayFrame,
    ParcelAnswer,
    ParcelFrame,
    Ping,
    Receipt,
)
from hushcast_protocol.overlay.host_cards import make_host_card
from hushcast_protocol.overlay.leases import Install, ToHost, Withdraw
from hushcast_protocol.overlay.parcels import OnwardParcel, Parcel, seal_parcel
from hushcast_protocol.shards.shard_requests import AskSlice
from hushcast_runtime.transports.channel import Channel

CONTENT = os.urandom(1167)


def parcel_for(
    net: SmallNetwork, relay: Node, instruction: Install | Withdraw, *onward: OnwardParcel
) -> ParcelFrame:
    assert relay.identity is not None
    epoch = net.calendar.epoch(net.now)
    parcel = Parcel(net.net.id, relay.id, epoch, instruction, 100, onward, os.urandom(16))
    return ParcelFrame(1, seal_parcel(parcel, relay.identity.parcel_key.public(), os.urandom), None)


async def dialled(net: SmallNetwork, relay: Node) -> Channel[OverlayFrame]:
    """Install one lease for an end of ours; return the link by which the relay dials it."""
    box, lease, day = Seed(os.urandom(32)), os.urandom(16), net.calendar.day(net.now)
    address, links = await open_host(net, box)
    next_hop = ToHost(make_host_card(box, box, address))
    install = Install(lease, day, next_hop, (os.urandom(16),), os.urandom(16), os.urandom(16))
    channel = await net.knock(relay)
    await channel.send(parcel_for(net, relay, install))
    answer = await channel.one(60)
    assert isinstance(answer, ParcelAnswer)
    assert answer.refused is None
    await channel.aclose()
    return await links.receive()


def forward(net: SmallNetwork, relay: Node) -> Wire:
    day = net.calendar.day(net.now)
    tokens = (os.urandom(16), os.urandom(16))
    return Forward(Message(message_id(day, CONTENT), day, tokens, bytes(TRAIL_SIZE), CONTENT))


def parcel(net: SmallNetwork, relay: Node) -> Wire:
    return parcel_for(net, relay, Withdraw(os.urandom(16)), OnwardParcel(net.relays[1].id, b"x"))


SAID = {
    "forward": forward,
    "parcel": parcel,
    "ping": lambda net, relay: Ping(),
    "answer": lambda net, relay: ParcelAnswer(1, None, ()),
    "drop": lambda net, relay: Drop(forward(net, relay).message, None),
    "receipt": lambda net, relay: Receipt("accepted"),
    "question": lambda net, relay: AskSlice(1, 0),
}


@pytest.mark.parametrize("what", SAID)
async def test_an_unlisted_host_may_acknowledge_and_nothing_else(what: str) -> None:
    async with small_network(relays=2, clients=0, epoch=36000) as net:
        relay, other = net.relays
        assert relay.daemon.overlay.relay is not None
        other.gate.shut()
        link = await dialled(net, relay)
        opened = relay.count("parcels_opened")
        await link.send(Ack(0, ()))
        await link.send(*[SAID[what](net, relay) for _ in range(20)])
        with trio.fail_after(5):
            await link.finish()  # what it has still to say, and its end
        assert relay.count("refused_form") == 1
        assert relay.count("messages_received") == 0
        assert relay.count("parcels_opened") == opened
        assert len(relay.daemon.overlay.relay.parcels._passing) == 0
