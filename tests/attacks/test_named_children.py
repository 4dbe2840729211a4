"""An owner names whom it likes as children of its box: these bring messages for boxes, and may nothing else.

A host cannot know whether they are relays: on a day that is cut they may be of another shard.
"""

from __future__ import annotations

import os
from typing import Any

import pytest
import trio
from owner_end import OwnerEnd, message
from small_network import Node, SmallNetwork, counted, small_network

from hushcast_overlay.relay.boxes import box_children
from hushcast_protocol.base.crypto.secrets import Seed
from hushcast_protocol.base.errors import DecodeError
from hushcast_protocol.base.wire import Wire
from hushcast_protocol.content.messages import Message
from hushcast_protocol.overlay.box_frames import BoxStanding, Forget, box_lease
from hushcast_protocol.overlay.elements import element
from hushcast_protocol.overlay.frame_directions import ToChild, decode_to_child, decode_to_owner
from hushcast_protocol.overlay.frames import Ack, Drop, Forward, ParcelAnswer, ParcelFrame, Ping
from hushcast_protocol.overlay.leases import Install, ToRelay, lease_mark
from hushcast_runtime.transports.base import TransportError
from hushcast_runtime.transports.channel import Channel

LONG = 4 * 3600  # seconds of an epoch
TRUNK = b"t" * 16


async def linked(net: SmallNetwork, host: Node, child: Seed) -> Channel[ToChild]:
    channel: Channel[Any] = await net.knock(host, child)
    return channel.speaking(decode_to_child)


async def owner_of(net: SmallNetwork, host: Node, *children: Seed) -> OwnerEnd:
    """An owner whose box these keys are children of."""
    owner = OwnerEnd(net, host)
    await owner.attach()
    hold = owner.hold_of()
    came_from = tuple(element(net.profile, TRUNK, host.id, child.public()) for child in children)
    named = tuple(child.public() for child in children)
    hold = type(hold)(hold.number, hold.lease, hold.day, (*hold.elements, *came_from), named, None)
    assert await owner.ask(hold) is None
    return owner


def today(net: SmallNetwork) -> int:
    return net.calendar.day(net.now)


async def test_a_named_child_brings_messages_for_the_box_and_hears_what_leads_nowhere() -> None:
    async with small_network(relays=2, clients=0, epoch=LONG) as net:
        host, child = net.relays[0], Seed(os.urandom(32))
        owner = await owner_of(net, host, child)
        link = await linked(net, host, child)
        first, second = message(today(net)), message(today(net))
        stray = message(today(net), trunk=b"s" * 16)
        await link.send(Forward(first), Forward(stray), Forward(second))
        assert await link.one(10) == Ack(3, (2,))
        await link.send(Ping())
        assert await link.one(10) == Ack(3, ())
        await owner.hears(first, second)
        await host.restart()
        link = await linked(net, host, child)
        third = message(today(net))
        await link.send(Forward(third))
        assert await link.one(10) == Ack(1, ())
        await owner.attach()
        await owner.hears(third)


async def test_who_is_named_by_nobody_is_taken_for_an_owner_and_brings_nothing() -> None:
    async with small_network(relays=2, clients=0, epoch=LONG) as net:
        host, named, other = net.relays[0], Seed(os.urandom(32)), Seed(os.urandom(32))
        owner = await owner_of(net, host, named)
        link = (await net.knock(host, other)).speaking(decode_to_owner)
        assert isinstance(await link.one(10), BoxStanding)
        await link.send(Forward(message(today(net))))
        assert await counted(host, "refused_form", 1)
        assert host.count("messages_received") == 0
        assert owner.heard == []


SAID: dict[str, Wire] = {
    "parcel": ParcelFrame(1, b"x" * 400, None),
    "parcel answer": ParcelAnswer(1, None, ()),
    "acknowledgement": Ack(0, ()),
    "drop": Drop(message(1), None),
    "forget": Forget(1),
}


@pytest.mark.parametrize("what", [*SAID, "detour"])
async def test_a_named_child_says_nothing_else(what: str) -> None:
    async with small_network(relays=2, clients=0, epoch=LONG) as net:
        host, child = net.relays[0], Seed(os.urandom(32))
        owner = await owner_of(net, host, child)
        link = await linked(net, host, child)
        one = message(today(net))
        detour = Forward(Message(one.id, one.day, (TRUNK, TRUNK), one.trail, one.body))
        await link.send(SAID.get(what, detour))
        with trio.fail_after(10):
            assert await link.receive() == []
        assert await counted(host, "refused_form", 1)
        await trio.sleep(10)
        assert owner.heard == []


async def test_what_a_named_child_brings_goes_to_no_relay() -> None:
    """Else whoever names itself would send past the price of drops, by leases that it has paid for once."""
    async with small_network(relays=2, clients=0, epoch=LONG) as net:
        host, other = net.relays
        child = Seed(os.urandom(32))
        await owner_of(net, host, child)
        relay = host.daemon.overlay.relay
        assert relay is not None
        trunk, hop = b"o" * 16, ToRelay(other.id)
        leads = (element(net.profile, trunk, host.id, child.public()),)
        lease = Install(os.urandom(16), today(net), hop, leads, lease_mark(trunk, host.id), os.urandom(16))
        await relay.leases.install(lease, paid=True)
        link = await linked(net, host, child)
        await link.send(Forward(message(today(net), trunk=trunk)))
        assert await link.one(10) == Ack(1, (1,))
        await trio.sleep(10)
        assert other.count("messages_received") == 0


async def test_there_are_so_many_links_of_children_and_a_newer_one_of_one_ends_the_older(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(box_children, "MAX_CHILDREN", 4)
    async with small_network(relays=2, clients=0, epoch=LONG) as net:
        host, children = net.relays[0], [Seed(os.urandom(32)) for _ in range(8)]
        await owner_of(net, host, *children)
        one, again = await linked(net, host, children[0]), await linked(net, host, children[0])
        with trio.fail_after(10):
            assert await one.receive() == []
        assert host.count("box_children_dropped") == 0
        links = [again, *[await linked(net, host, child) for child in children[1:]]]
        await trio.sleep(1)
        assert host.count("box_children_dropped") == 4
        alive = 0
        for link in links:
            try:
                await link.send(Ping())
                alive += await link.one(10) == Ack(0, ())
            except TransportError:
                pass
        assert alive == 4


def test_a_box_has_no_more_children_than_elements() -> None:
    class Shape:
        lease, day, elements, children = b"l" * 16, 1, (b"e" * 16,), (b"c" * 32, b"d" * 32)

    with pytest.raises(DecodeError):
        box_lease(b"b" * 32, Shape)  # type: ignore[arg-type]
