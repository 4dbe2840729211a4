"""A relay at the top of a tree keeps a mailbox busy, to see which others become slow: it alone is slowed."""

from __future__ import annotations

import os

import pytest
import trio
from small_network import ONE, TWO, Node, SmallNetwork, small_network

from hushcast_overlay.routes import mailbox
from hushcast_protocol.base.addresses import Address
from hushcast_protocol.base.links import Link
from hushcast_protocol.content.bodies import Content
from hushcast_protocol.content.messages import TRAIL_SIZE, Message, message_id
from hushcast_protocol.overlay.frames import MAX_OVERLAY_FRAME, Ack, Forward, Ping, decode_overlay
from hushcast_protocol.overlay.profile import Root
from hushcast_runtime.transports.channel import open_channel


def top_of(net: SmallNetwork, client: Node) -> Node:
    (planned,) = client.route(ONE).planned.values()
    return next(net.relay(key) for key, above in planned.installation.tree.parents.items() if above is None)


@pytest.mark.slow
@pytest.mark.parametrize("with_pings", [False, True])
@pytest.mark.parametrize("links", [1, 3])
async def test_a_top_relay_brings_so_many_frames_and_no_more(
    monkeypatch: pytest.MonkeyPatch, with_pings: bool, links: int
) -> None:
    monkeypatch.setattr(mailbox, "MESSAGES_A_SECOND", 5.0)
    monkeypatch.setattr(mailbox, "MESSAGES_AT_ONCE", 50.0)
    async with small_network(relays=4, clients=1, epoch=3600, origins=1, root=Root.MAILBOX) as net:
        reader = net.clients[0]
        ear, other = await reader.listen(ONE), await reader.listen(TWO)
        mole = top_of(net, reader)
        (subscription,) = reader.route(ONE).mailboxes
        address = subscription.address
        assert address is not None
        assert mole.identity is not None
        day = net.calendar.day(net.now)
        taken = [0]

        async def flood(address: Address) -> None:
            key = subscription.seed.public()
            link = Link.initiate(net.net.id, key, os.urandom, MAX_OVERLAY_FRAME, mole.identity.seed)  # type: ignore[union-attr]
            channel, _ = await open_channel(net.wires.transport(), address, "x", link, decode_overlay)
            while True:
                frame: Ping | Forward = Ping()
                if not with_pings:
                    body = os.urandom(1167)
                    frame = Forward(
                        Message(message_id(day, body), day, (bytes(16),), bytes(TRAIL_SIZE), body)
                    )
                await channel.send(frame)
                for answer in await channel.receive():
                    assert isinstance(answer, Ack)
                    taken[0] += 1

        async with trio.open_nursery() as attack:
            for _ in range(links):
                attack.start_soon(flood, address)
            await trio.sleep(60)
            assert taken[0] <= 50 + 60 * 5 + links
            began = net.now
            for number, relay in enumerate(net.relays):
                if relay is not mole:
                    await net.drop_at(relay, TWO, Content(b"%d" % number))
            await other.hears(3)
            assert net.now - began < 10
            attack.cancel_scope.cancel()
        await net.drop_at(mole, ONE, Content(b"later"))
        await ear.hears(1)
