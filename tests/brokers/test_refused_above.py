"""A subscription that an edge broker takes, and for which its parent has no room."""

from __future__ import annotations

import pytest
import trio
from attached_scene import ROWS, edge_of, held_at
from broker_daemons import sent, tree_of_daemons
from small_network import ONE, TWO, until

from hushcast_protocol.base.errors import Refusal
from hushcast_protocol.brokers import child_advertisements


async def test_once_it_was_refused_nothing_comes_for_it(monkeypatch: pytest.MonkeyPatch) -> None:
    async with tree_of_daemons(rows=ROWS) as network:
        reader, author = network.nodes
        await reader.listen(ONE)
        edge = edge_of(network, reader)
        room = child_advertisements.MAX_FILTERS
        monkeypatch.setattr(child_advertisements, "MAX_FILTERS", 1)
        with pytest.raises(Refusal, match="no room"):
            await reader.listen(TWO)
        monkeypatch.setattr(child_advertisements, "MAX_FILTERS", room)
        await trio.sleep(120)
        await sent(author, b"to nobody", TWO)
        await until(lambda: network.root.status("messages_waiting") == 0)
        await trio.sleep(10)
        assert edge.count("messages_received") == 0
        assert held_at(edge) == 1
        asked = edge.count("subscriptions")
        await edge.restart()
        await network.linked()
        await until(lambda: edge.status("clients_connected") == 1, 120.0)
        await trio.sleep(10)
        assert edge.count("subscriptions") == asked, "both ends hold the same"
