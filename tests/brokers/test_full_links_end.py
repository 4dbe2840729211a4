"""A link to the parent that ends while a broker under layers reads what it is to hand up over it."""

from __future__ import annotations

from typing import Any

import trio
from broker_daemons import sent, tree_of_daemons
from full_scene import ROWS, started
from small_network import ONE, until

from hushcast_brokers.broker.full.hand_up import _UP
from hushcast_runtime.storage.store import MemoryStore


class SlowReads(MemoryStore):
    """A store that reads in a thread: to the end, though its task is cancelled meanwhile."""

    def __init__(self, before: MemoryStore) -> None:
        super().__init__()
        self._records, self.version = before._records, before.version
        self.may_read, self.reads = trio.Event(), trio.Event()

    async def scan(
        self, kind: str, prefix: bytes = b"", *args: Any, **options: Any
    ) -> list[tuple[bytes, bytes]]:
        with trio.CancelScope(shield=True):
            found = await super().scan(kind, prefix, *args, **options)
            if found and prefix == _UP:
                self.reads.set()
                await self.may_read.wait()
            return found


async def test_the_broker_lives_on_and_hands_up_over_the_next() -> None:
    async with tree_of_daemons(0, ROWS, profile="full/3/apart") as network:
        reader, author = await started(network, ("edge 1", "edge 3"))
        await reader.listen(ONE)
        parent = network["inner 1"]
        await parent.stop()
        store = parent.store = SlowReads(parent.store)
        await parent.start()
        await network.linked()
        await network["edge 1"].stop()
        await sent(author, b"waits at inner 1")
        network.members.remove(network["edge 1"])
        await network.list_all()
        await store.reads.wait()
        await network["top"].stop()
        await until(lambda: parent.daemon.parent_state != "open", 30.0, "the link has ended")
        store.may_read.set()
        await network["top"].start()
        await until(lambda: network.root.count("messages_returned") == 1, 120, "the root has it")
