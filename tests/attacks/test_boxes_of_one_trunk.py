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
from small_network import EPOCH_SECONDS, Node, until

from hushcast_overlay.relay.keepers.inquiries import AGAIN_AFTER
from hushcast_protocol.content.kept_shares import MAX_KEPT_IDS
from hushcast_protocol.overlay.keeper_frames import AskKept, ShownKept, ShownKeptMessages

BOXES = 60


def shows_all_it_may(keeper: Node, asked_for_messages: set[str]) -> None:
    """Have a keeper show all the ids that one answer holds, and none of the messages."""
    ids = tuple(sorted(os.urandom(32) for _ in range(MAX_KEPT_IDS)))

    async def answer(request: Any) -> Any:
        await trio.lowlevel.checkpoint()
        if isinstance(request, AskKept):
            return ShownKept(ids, 0)
        asked_for_messages.add(keeper.name)
        return ShownKeptMessages(())

    kept: Any = kept_of(keeper)
    kept.answer = answer


@pytest.mark.slow
async def test_a_host_of_many_boxes_for_one_topic_looks_through_them_in_short_steps() -> None:
    async with kept_network(clients=0, epoch=10 * EPOCH_SECONDS) as net:
        keepers = keepers_of(net, message(net.calendar.day(net.now)))
        host = next(relay for relay in net.relays if relay not in keepers)
        await net.sleep_until(net.calendar.epoch_start(net.calendar.epoch(net.now) + 1))
        owners = [OwnerEnd(net, host) for _ in range(BOXES)]
        for owner in owners:
            await owner.attach()
            await owner.hold()
            assert await owner.seek() is None
        await trio.sleep(2 * AGAIN_AFTER)  # of what is sought anew the host asks at once, and once more
        asked_for_messages: set[str] = set()
        for keeper in keepers:
            shows_all_it_may(keeper, asked_for_messages)
        # Of what boxes lack it asks once it has looked through all of them.
        await until(lambda: len(asked_for_messages) == len(keepers), 2 * net.epoch)
