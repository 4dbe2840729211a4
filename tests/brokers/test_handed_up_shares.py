"""How much a broker takes of what is handed up: what it refused for want of room does not count."""

from __future__ import annotations

import pytest
import trio
from broker_daemons import sent, tree_of_daemons
from full_scene import ROWS, started
from small_network import ONE, until

from hushcast_brokers.broker.full.hand_up import AGAIN_AFTER
from hushcast_protocol.brokers.full import hand_up
from hushcast_runtime.storage import spool


async def test_what_was_refused_while_there_was_no_room_is_taken_when_there_is(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with tree_of_daemons(0, ROWS, profile="full/3/apart") as network:
        reader, author = await started(network, ("edge 1", "edge 3"))
        await reader.listen(ONE)
        await network["edge 1"].stop()
        for number in range(2):
            await sent(author, b"%d" % number)
        await until(lambda: network["inner 1"].status("messages_waiting") == 2, 60.0)
        size = network["inner 1"].status("messages_waiting_bytes")
        monkeypatch.setattr(hand_up, "MAX_HANDED_UP", 2 * size)
        room = spool.MAX_SPOOL
        monkeypatch.setattr(spool, "MAX_SPOOL", 0)
        network.members.remove(network["edge 1"])
        await network.list_all()
        await trio.sleep(5 * AGAIN_AFTER)
        assert network["top"].count("refused_quota") >= 4
        monkeypatch.setattr(spool, "MAX_SPOOL", room)
        await until(
            lambda: network.root.count("messages_returned") == 2, 3 * AGAIN_AFTER, "the root has both"
        )
