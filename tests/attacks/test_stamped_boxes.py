"""Strangers with many stamps take every place that is free, and fill their boxes: small ones lose nothing.

Half of a host's boxes cost nothing, each of the others a stamp of 2^16 tries a day, 33 ms of a core. So all
places at 500 hosts cost 500 · 655 · 33 ms = 3 core-hours a day. Here are strangers with 46 core-hours for two
days, eight times what two days cost, at one host with few boxes: stamps buy places and no bytes of others.
"""

from __future__ import annotations

import os

import pytest
from owner_end import OwnerEnd, drop, message
from small_network import SmallNetwork, small_network, until

from hushcast_overlay.relay.boxes import kept_boxes
from hushcast_protocol.base.crypto.proof_of_work import MAX_INSIDE, mint
from hushcast_protocol.overlay import box_shares
from hushcast_protocol.overlay.box_frames import Hold, held_out, hold_price

LONG = 4 * 3600
BOXES = 12
SMALL = 8 * 1024  # bytes, as `SMALL_BOX` of a box that is small
SPENT = 46 / 6  # of what the places that cost a stamp cost
STRANGERS = b"s" * 16


async def stamped(net: SmallNetwork, stranger: OwnerEnd) -> str | None:
    """Ask for a box with a stamp; return why it is refused."""
    await stranger.attach()
    frame = stranger.hold_of(trunk=STRANGERS)
    bits = hold_price(frame, MAX_INSIDE)
    stamp = mint(stranger.host.id, net.calendar.epoch(net.now), held_out(frame), bits, os.urandom)
    return await stranger.ask(
        Hold(frame.number, frame.lease, frame.day, frame.elements, frame.children, stamp)
    )


def test_what_a_host_has_is_divided_so_that_each_box_may_be_small() -> None:
    assert box_shares.SMALL_BOX * box_shares.MAX_BOXES <= box_shares.MAX_ALL_BOXES
    tries = (box_shares.MAX_BOXES // 2) << MAX_INSIDE
    core_hours = 500 * 2 * tries * 0.5e-6 / 3600
    assert 5.5 < core_hours < 6.5


@pytest.mark.slow
async def test_stamps_buy_places_and_no_bytes_of_others(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kept_boxes, "MAX_BOXES", BOXES)
    monkeypatch.setattr(box_shares, "MAX_BOX", 4 * SMALL)
    monkeypatch.setattr(box_shares, "MAX_ALL_BOXES", BOXES * SMALL)
    async with small_network(relays=2, clients=0, epoch=LONG) as net:
        host = net.relays[0]
        day = net.calendar.day(net.now)
        honest = [OwnerEnd(net, host) for _ in range(3)]
        free = [OwnerEnd(net, host) for _ in range(BOXES // 2 - len(honest))]
        for number, owner in enumerate((*honest, *free)):
            await owner.attach()
            await owner.hold(trunk=bytes([number]) * 16 if owner in honest else STRANGERS)
            await owner.detach()
        assert host.daemon.overlay.relay is not None
        boxes = host.daemon.overlay.relay.boxes
        sent = [[message(day, bytes([number]) * 16) for _ in range(5)] for number in range(len(honest))]
        for owner, messages in zip(honest, sent, strict=True):
            await drop(net, host, *messages)
            assert SMALL / 2 < boxes.size_of(owner.box) <= SMALL
        price = host.daemon.overlay.shards.least_price
        await until(lambda: price(host.id) == MAX_INSIDE, 4 * LONG, "it has a price")
        places = BOXES - len(boxes)
        paid = [OwnerEnd(net, host) for _ in range(round(SPENT * places))]
        refused = [await stamped(net, stranger) for stranger in paid]
        assert refused == [None] * places + ["quota"] * (len(paid) - places)
        assert len(boxes) == BOXES
        for stranger in (*free, *paid[:places]):
            await stranger.detach()
        room = BOXES * SMALL // 1167
        await drop(net, host, *(message(day, STRANGERS) for _ in range(room)))
        assert host.count("messages_gave_way") > 5 * room
        for owner, messages in zip(honest, sent, strict=True):
            assert (await owner.attach()).gave_way == 0
            await owner.hears(*messages)
