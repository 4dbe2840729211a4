"""A charter that comes while a daemon still asks for what the one before it is for."""

from __future__ import annotations

import trio
from broker_daemons import Node
from community_tree import Keeper, community_tree
from hanging_disk import Disk
from small_network import ONE, until

from hushcast_protocol.content.bodies import Content
from hushcast_runtime.storage.store import MemoryStore

ROWS = (("edge 1", "edge", "root"), ("edge 2", "edge", "root"))


async def heard(reader: Node, keeper: Keeper) -> None:
    charters = reader.daemon.brokers.membership.charters

    def is_heard() -> bool:
        newest = charters.newest(keeper.key)
        return newest is not None and newest.epoch == keeper.epoch

    await until(is_heard, 30.0, "the charter has come")


async def test_what_is_published_under_the_second_comes() -> None:
    async with community_tree(ROWS) as network:
        keeper = network.keeping[0]
        author, reader = await network.daemon("author", keeper, "edge 2"), network.node("reader")
        disk = reader.store = Disk(MemoryStore())
        reader.community, reader.edge = keeper.key, network["edge 1"].key
        await reader.start()
        await keeper.admit(network.root, network["edge 1"], author, reader)
        await network.heard(keeper)
        ear = await reader.listen()
        await trio.sleep(network.calendar.next_middle(network.now) - network.now + 1)
        disk.hang()
        for _ in range(2):
            await keeper.admit()
            await heard(reader, keeper)
            await trio.sleep(1)
        disk.turn()
        await network.heard(keeper)
        await trio.sleep(5)
        await author.daemon.service.publish(ONE, Content(b"after", {}))
        assert await ear.hears(1) == [b"after"]
