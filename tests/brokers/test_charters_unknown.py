"""Brokers that know of no community, for now: they started anew, or the root had taken it out."""

from __future__ import annotations

import trio
from community_tree import community_tree, key_of
from small_network import ONE, until

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


async def test_a_community_that_was_taken_out_and_listed_again_goes_on() -> None:
    async with community_tree(ROWS) as network:
        keeper, edge = network.keeping[0], network["edge 1"]
        author, reader = [
            await network.daemon(name, keeper, at) for name, at in (("author", "edge 2"), ("reader", edge))
        ]
        keeper.members |= {key_of(one) for one in (network.root, edge, author, reader)}
        charter = keeper.signed()
        assert await keeper.hand_in(charter) == "accepted"
        await network.heard(keeper)
        ear = await reader.listen()
        network.root.daemon.replace_keepers(())
        await until(lambda: edge.daemon.communities == (0, 0), 30.0, "the edge broker knows of none")
        network.root.daemon.replace_keepers((keeper.key,))
        assert await keeper.hand_in(charter) == "accepted"
        await network.heard(keeper)
        await trio.sleep(30)
        await author.daemon.service.publish(ONE, Content(b"x", {}))
        assert await ear.hears(1) == [b"x"]
