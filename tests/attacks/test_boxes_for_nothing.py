"""A stranger has boxes at a host, and goes on having them, or their links, when nothing leads to them.

A lease has its price each day. A box was kept as long as its owner came by, once in two days: whoever took
all places once, while that was cheap, kept everybody else out for ever. The link of a box that was forgotten
was nobody's: it took no stranger's place and no box's, and such links took all room for links.
"""

from __future__ import annotations

import os

import pytest
import trio
from owner_end import OwnerEnd
from small_network import EPOCH_SECONDS, small_network

from hushcast_overlay.relay.boxes import kept_boxes
from hushcast_protocol.base.crypto.proof_of_work import mint
from hushcast_protocol.overlay.box_frames import Hold, held_out, hold_price
from hushcast_protocol.overlay.frames import Ack


def paid(owner: OwnerEnd, day: int) -> Hold:
    """A hold with the stamp that its host asks for now."""
    net, host, frame = owner.net, owner.host, owner.hold_of(day=day)
    bits = hold_price(frame, host.daemon.overlay.shards.least_price(host.id))
    if not bits:
        return frame
    stamp = mint(host.id, net.calendar.epoch(net.now), held_out(frame), bits, os.urandom)
    return Hold(frame.number, frame.lease, frame.day, frame.elements, frame.children, stamp)


@pytest.mark.slow
async def test_a_place_for_a_box_is_kept_by_leases_and_by_nothing_else(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(kept_boxes, "MAX_BOXES", 4)
    monkeypatch.setattr(kept_boxes, "NEEDED_FROM", 1.0)  # as if all had been paid for, on the first day
    async with small_network(relays=2, clients=0) as net:
        host = net.relays[0]
        day = net.calendar.day(net.now)
        cheap, honest = [OwnerEnd(net, host) for _ in range(3)], OwnerEnd(net, host)
        for owner in (*cheap, honest):
            await owner.attach()
            await owner.hold()
        await net.sleep_until(net.calendar.day_start(day + 1) - EPOCH_SECONDS)
        assert await honest.ask(paid(honest, day + 1)) is None
        late = OwnerEnd(net, host)
        await late.attach()
        assert await late.ask(paid(late, day)) == "quota"
        await net.sleep_until(net.calendar.day_start(day + 1) + 2 * EPOCH_SECONDS)
        assert honest.links_ended == 0
        assert len((await honest.attach()).leases) == 1
        for owner in cheap:
            await owner.attach()
        await late.attach()
        assert await late.ask(paid(late, day + 1)) is None
        assert host.count("boxes_forgotten") == len(cheap)


@pytest.mark.slow
async def test_the_link_of_a_box_that_is_forgotten_ends() -> None:
    async with small_network(relays=2, clients=0, later=16) as net:
        host = net.relays[0]
        day = net.calendar.day(net.now)
        owner = OwnerEnd(net, host)
        await owner.attach()
        await owner.hold()
        await owner.forget()

        async def speak() -> None:
            while not owner.links_ended:
                await owner.say(Ack(0, ()))
                await trio.sleep(20)

        async with trio.open_nursery() as nursery:
            nursery.start_soon(speak)
            await net.sleep_until(net.calendar.day_start(day + 1) + EPOCH_SECONDS / 2)
            assert host.daemon.overlay.relay is not None
            await net.sleep_until(net.calendar.day_start(day + 1) + 2 * EPOCH_SECONDS)
            assert owner.box not in host.daemon.overlay.relay.boxes
            await trio.sleep(120)
            assert owner.links_ended == 1
            assert len(host.daemon.overlay.relay.box_links) == 0
            nursery.cancel_scope.cancel()
