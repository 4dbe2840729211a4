"""A stranger attaches to many boxes, takes little of what comes, and keeps links, to fill a host's memory.

What comes for a box gives way on the disk where that is full. In memory it stayed: what was sent and not
acknowledged, as long as the owner said something now and then, and 4 MiB more that waited to be sent.
"""

from __future__ import annotations

from contextlib import suppress

import pytest
import trio
from owner_end import BODY, OwnerEnd, drop, message
from small_network import small_network, until

from hushcast_overlay.relay.boxes import box_links
from hushcast_overlay.relay.boxes.box_links import SIGN_OF_LIFE
from hushcast_protocol.overlay import box_shares
from hushcast_protocol.overlay.frames import Ack
from hushcast_runtime.transports.base import TransportError

LONG = 4 * 3600
LARGE = 16 * 1024 + BODY - 1024  # bytes of a body
MOST = 40 * BODY  # bytes of a box
WINDOW = 4 * BODY


@pytest.fixture(autouse=True)
def small_boxes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(box_shares, "MAX_BOX", MOST)
    monkeypatch.setattr(box_links, "WINDOW", WINDOW)


async def test_who_acknowledges_nothing_does_not_keep_a_link_by_speaking() -> None:
    async with small_network(relays=2, clients=0, epoch=LONG) as net:
        host = net.relays[0]
        owner = OwnerEnd(net, host, acknowledges=False)
        await owner.attach()
        await owner.hold()
        await drop(net, host, message(net.calendar.day(net.now)))
        await until(lambda: len(owner.heard) == 1, 10)
        for _ in range(int(2 * SIGN_OF_LIFE / 20) + 1):
            if not owner.links_ended:
                await owner.say(Ack(0, ()))
                await trio.sleep(20)
        assert owner.links_ended == 1


async def test_what_gave_way_leaves_memory() -> None:
    async with small_network(relays=2, clients=0, epoch=LONG) as net:
        host, day = net.relays[0], net.calendar.day(net.now)
        owner = OwnerEnd(net, host, acknowledges=False)
        await owner.attach()
        await owner.hold()
        await owner.detach()
        sent = [*(message(day) for _ in range(3)), message(day, size=LARGE)]
        await drop(net, host, *sent, *(message(day) for _ in range(20)))
        await owner.attach()
        await owner.hears(*sent)
        began, count = trio.current_time(), 0
        while owner.links_ended == 1 and trio.current_time() - began < 1.5 * SIGN_OF_LIFE:
            with suppress(TransportError):  # it ends meanwhile
                await owner.say(Ack(min(count, 3), ()))  # so little that the window is never open
            await drop(net, host, *(message(day) for _ in range(8)))
            await trio.sleep(10)
            count += 1
        assert owner.links_ended == 2
