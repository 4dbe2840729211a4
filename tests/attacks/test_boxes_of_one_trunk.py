"""Owners have dozens of boxes for one topic at one host, and keepers show as many ids as an answer holds.

For each id the host looks which of these boxes lack it. One that is drawn as keeper of a trunk that it made
up itself needs nobody's help.
"""

from __future__ import annotations

import os
from typing import Any

import pytest
import trio
from kept_network import keepers_of, kept_network, kept_of
from owner_end import OwnerEnd, message
from small_network import EPOCH_SECONDS, until

from hushcast_protocol.content.kept_shares import MAX_KEPT_IDS
from hushcast_protocol.overlay.keeper_frames import AskKept, ShownKept, ShownKeptMessages

BOXES = 60


async def all_ids(request: Any) -> Any:
    """All the ids that one answer holds, and none of the messages."""
    await trio.lowlevel.checkpoint()
    if isinstance(request, AskKept):
        return ShownKept(tuple(sorted(os.urandom(32) for _ in range(MAX_KEPT_IDS))), 0)
    return ShownKeptMessages(())


@pytest.mark.slow
async def test_a_host_of_many_boxes_for_one_topic_looks_through_them_in_short_steps() -> None:
    async with kept_network(clients=0, epoch=10 * EPOCH_SECONDS) as net:
        keepers = keepers_of(net, message(net.calendar.day(net.now)))
        host = next(relay for relay in net.relays if relay not in keepers)
        for keeper in keepers:
            kept: Any = kept_of(keeper)
            kept.answer = all_ids
        owners = [OwnerEnd(net, host) for _ in range(BOXES)]
        for owner in owners:
            await owner.attach()
            await owner.hold()
            assert await owner.seek() is None
        asked = host.count("keepers_asked")
        await until(lambda: host.count("keepers_asked") > asked, 20 * EPOCH_SECONDS)
