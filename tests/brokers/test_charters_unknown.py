"""A broker between others that knows of no community yet: it started anew, or has lost its disk."""

from __future__ import annotations

import trio
from community_tree import community_tree
from small_network import ONE

from hushcast_protocol.content.bodies import Content

ROWS = (("inner", "inner", "root"), ("edge 1", "edge", "inner"), ("edge 2", "edge", "root"))


async def test_those_below_go_on_with_what_they_know() -> None:
    async with community_tree(ROWS) as network:
        keeper, inner, edge = network.keeping[0], network["inner"], network["edge 1"]
        author, reader = [
            await network.daemon(name, keeper, at) for name, at in (("author", "edge 2"), ("reader", edge))
        ]
        await keeper.admit(network.root, edge, author, reader)
        await network.heard(keeper)
        ear = await reader.listen()
        await inner.stop()
        inner.store._records.clear()
        inner.store.version = 0
        await inner.start()
        await network.linked()
        await trio.sleep(30)
        await author.daemon.service.publish(ONE, Content(b"x", {}))
        assert await ear.hears(1) == [b"x"]
        assert edge.count("charters_taken") == 1
