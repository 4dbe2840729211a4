"""A stranger has hundreds of boxes at one host, for one topic: to make long steps, or to fill the disk.

A large message is put into all of them at once, and where together they take all the room that there is for
boxes, each copy had others give way in the same step. What a box takes of the spool beside the bodies of its
messages was not counted: boxes took two thirds of it, where the relay's own messages are to have half.
"""

from __future__ import annotations

import os

import pytest
import trio
from owner_end import BODY, OwnerEnd, drop, message
from small_network import small_network, until
from steps import Steps

from hushcast_protocol.content.hops import HopMessage
from hushcast_protocol.content.messages import MAX_BODY
from hushcast_protocol.overlay import box_shares
from hushcast_protocol.overlay.box_frames import Hold, box_lease
from hushcast_protocol.overlay.box_shares import MAX_ALL_BOXES, MAX_BOXES
from hushcast_protocol.overlay.elements import element
from hushcast_protocol.overlay.frames import Ack, Forward
from hushcast_protocol.overlay.hops import box_hop

LONG = 4 * 3600
BOXES = MAX_BOXES // 2  # whoever pays nothing has as many


@pytest.mark.slow
async def test_a_message_for_many_full_boxes_takes_no_long_step() -> None:
    async with small_network(relays=2, clients=0, epoch=LONG) as net:
        host, hostile = net.relays
        assert hostile.identity is not None
        assert host.daemon.overlay.relay is not None
        boxes, spool = host.daemon.overlay.relay.boxes, host.daemon.overlay.relay.peers._spool
        trunk, day = os.urandom(16), net.calendar.day(net.now)
        keys = [os.urandom(32) for _ in range(BOXES)]
        elements = (element(net.profile, trunk, host.id, hostile.id),)
        for key in keys:
            hold = Hold(1, os.urandom(16), day, elements, (), None)
            await boxes.hold(key, box_lease(key, hold), paid=False)
        for _ in range(MAX_ALL_BOXES // (BOXES * BODY) + 1):
            one = message(day, trunk)
            boxes.take(spool.put([HopMessage(box_hop(key), one) for key in keys]))
            await spool.durable()
        link = await net.knock(host, hostile.identity.seed)
        await trio.sleep(1)
        steps = Steps()
        trio.lowlevel.add_instrument(steps)
        await link.send(Forward(message(day, trunk, MAX_BODY)))
        assert Ack(1, ()) in await link.receive()
        trio.lowlevel.remove_instrument(steps)
        steps.check()
        assert boxes._shares.size <= MAX_ALL_BOXES
        assert host.count("messages_gave_way") > MAX_ALL_BOXES // 2 // BODY


async def test_boxes_take_no_more_of_a_disk_than_they_may(monkeypatch: pytest.MonkeyPatch) -> None:
    most = 40 * BODY
    monkeypatch.setattr(box_shares, "MAX_ALL_BOXES", most)
    async with small_network(relays=2, clients=0, epoch=LONG) as net:
        host = net.relays[0]
        keeps, takes = OwnerEnd(net, host), OwnerEnd(net, host)
        for owner in (keeps, takes):
            await owner.attach()
            await owner.hold()
        await keeps.detach()
        sent = [message(net.calendar.day(net.now)) for _ in range(45)]
        await drop(net, host, *sent)
        await takes.hears(*sent)
        await until(lambda: takes.waiting() == 0, 10, "one of the two has taken all")
        assert host.daemon.overlay.relay is not None
        assert most // 2 < host.daemon.overlay.relay.peers._spool.size <= most
        await host.restart()
        assert host.daemon.overlay.relay.boxes._shares.size == host.daemon.overlay.relay.peers._spool.size
