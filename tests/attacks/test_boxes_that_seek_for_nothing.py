"""Strangers fill what a host has room for of boxes that seek: it asks for stamps, and a relay subscribes."""

from __future__ import annotations

import pytest
import trio
from hosted_network import subscribed
from kept_network import kept_network
from owner_end import OwnerEnd
from small_network import EPOCH_SECONDS

from hushcast_overlay.relay.boxes import sought_trunks
from hushcast_protocol.overlay.profile import Root

pytestmark = pytest.mark.slow

ROOM = 4  # of 256


async def test_a_relay_without_trees_subscribes_where_strangers_fill_the_room_for_boxes_that_seek(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(sought_trunks, "MAX_SEEKING", ROOM)
    async with kept_network(4, clients=0, root=Root.HOST) as net:
        day = net.calendar.day(net.now)
        for host in net.relays:
            for number in range(ROOM // 2):
                owner = OwnerEnd(net, host)
                await owner.attach()
                await owner.hold()
                assert await owner.seek(*range(day, day + 15), trunk=bytes([number]) * 16) is None
                await owner.detach()
            assert host.daemon.overlay.relay.boxes.fullness() >= 0.5
        with trio.fail_after(3 * EPOCH_SECONDS):
            await subscribed(net.relays[0])
