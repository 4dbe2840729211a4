"""A relay sends another a read full of messages, for which leases name many next hops, to hold it up.

Each message is placed for each of them: a read holds two hundred messages, and strangers install leases.
"""

from __future__ import annotations

import os

import pytest
import trio
from small_network import Node, SmallNetwork, small_network
from steps import Steps

from hushcast_overlay.relay import dials, forwarding
from hushcast_protocol.base.addresses import memory_address
from hushcast_protocol.base.crypto.secrets import Seed
from hushcast_protocol.content.messages import TRAIL_SIZE, Message, message_id
from hushcast_protocol.overlay.elements import element
from hushcast_protocol.overlay.frames import Ack, Forward
from hushcast_protocol.overlay.host_cards import make_host_card
from hushcast_protocol.overlay.leases import Install, ToHost
from hushcast_runtime.storage import spool as spools

HOPS, MESSAGES = 250, 180


def point_at_many(net: SmallNetwork, relay: Node, previous: Node) -> bytes:
    """Install leases for hosts that nobody runs; return the token that leads there from a relay."""
    assert relay.daemon.overlay.relay is not None
    token, day = os.urandom(16), net.calendar.day(net.now)
    for _ in range(HOPS):
        host, lease = Seed(os.urandom(32)), os.urandom(16)
        card = make_host_card(host, host, memory_address(host.public()))
        elements = (element(net.profile, token, relay.id, previous.id),)
        install = Install(lease, day, ToHost(card), elements, os.urandom(16), os.urandom(16))
        relay.daemon.overlay.relay.leases.book.install(install, net.now)
    return token


@pytest.mark.slow
async def test_many_next_hops_of_many_messages_take_no_long_step(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dials, "MAX_DIALS", 8)
    async with small_network(relays=2, clients=0, epoch=36000) as net:
        relay, hostile = net.relays
        assert hostile.identity is not None
        token, day = point_at_many(net, relay, hostile), net.calendar.day(net.now)
        bodies = [os.urandom(1167) for _ in range(MESSAGES)]
        link = await net.knock(relay, hostile.identity.seed)
        await trio.sleep(1)  # the handshake's last read is over: all comes in another
        steps = Steps()
        trio.lowlevel.add_instrument(steps)
        await link.send(
            *[
                Forward(Message(message_id(day, body), day, (token,), bytes(TRAIL_SIZE), body))
                for body in bodies
            ]
        )
        assert Ack(MESSAGES, ()) in await link.receive()
        trio.lowlevel.remove_instrument(steps)
        steps.check()
        assert relay.daemon.overlay.relay is not None
        spool = relay.daemon.overlay.relay.peers._spool
        assert len(spool) == HOPS * MESSAGES


async def test_placed_in_pieces_each_message_goes_everywhere_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(forwarding, "COPIES_AT_ONCE", HOPS + 1)
    async with small_network(relays=2, clients=0, epoch=36000) as net:
        relay, hostile = net.relays
        assert hostile.identity is not None
        token, day = point_at_many(net, relay, hostile), net.calendar.day(net.now)
        bodies = [os.urandom(1167) for _ in range(5)]
        frames = [
            Forward(Message(message_id(day, body), day, (token,), bytes(TRAIL_SIZE), body)) for body in bodies
        ]
        link = await net.knock(relay, hostile.identity.seed)
        await trio.sleep(1)  # the handshake's last read is over: all comes in another
        await link.send(*frames, *frames)
        assert Ack(2 * len(bodies), ()) in await link.receive()
        assert relay.count("messages_duplicate") == len(bodies)
        assert relay.daemon.overlay.relay is not None
        assert len(relay.daemon.overlay.relay.peers._spool) == HOPS * len(bodies)


async def test_what_a_share_has_no_room_for_takes_nothing_of_its_batch_along(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(spools, "MAX_SHARE", 3 * 1167)
    async with small_network(relays=2, clients=0, epoch=36000) as net:
        relay, hostile = net.relays
        assert hostile.identity is not None
        assert relay.daemon.overlay.relay is not None
        full, free = (point_at_many(net, relay, hostile) for _ in range(2))
        day = net.calendar.day(net.now)
        tokens = [*[full] * 5, free]
        bodies = [os.urandom(1167) for _ in tokens]
        link = await net.knock(relay, hostile.identity.seed)
        await trio.sleep(1)  # the handshake's last read is over: all comes in another
        await link.send(
            *[
                Forward(Message(message_id(day, body), day, (token,), bytes(TRAIL_SIZE), body))
                for token, body in zip(tokens, bodies, strict=True)
            ]
        )
        assert Ack(len(tokens), ()) in await link.receive()
        assert relay.count("messages_over_share") == 2 * HOPS
        assert len(relay.daemon.overlay.relay.peers._spool) == 4 * HOPS
