"""A writer floods a topic, so that subscribers' daemons stand still when all of a day is forgotten at once.

An inbox remembers 100,000 ids of each kind for a day, and as many messages until they are acknowledged.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import trio

from hushcast_local.inbox import Inbox
from hushcast_node.counters import COUNTERS
from hushcast_protocol.content.bodies import Content
from hushcast_runtime.counters import Counters
from hushcast_runtime.environment import simulated_environment
from hushcast_runtime.storage.store import MemoryStore

FLOOD = 3000  # three steps, and a part of one


class Others:
    """What else the daemon has to do: it counts its turns."""

    def __init__(self) -> None:
        self.turns = 0

    async def go_on(self) -> None:
        while True:
            self.turns += 1
            await trio.lowlevel.checkpoint()


@asynccontextmanager
async def beside_others() -> AsyncIterator[Others]:
    others = Others()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(others.go_on)
        yield others
        nursery.cancel_scope.cancel()


async def flooded() -> Inbox:
    inbox = Inbox(b"n" * 16, simulated_environment(1), MemoryStore(), Counters(COUNTERS))
    for number in range(FLOOD):
        assert inbox.put(number.to_bytes(32, "big"), 1, Content(b""))
        assert inbox.pass_over(b"p" * 28 + number.to_bytes(4, "big"), 1)
    await inbox.durable()
    return inbox


async def test_the_ids_of_a_day_are_forgotten_in_steps() -> None:
    inbox = await flooded()
    async with beside_others() as others:
        await inbox.lapse(2)
        assert others.turns >= 2 * FLOOD // 1024
    assert not inbox.knows(bytes(32))
    assert not inbox.knows(b"p" * 28 + bytes(4))


async def test_a_flood_that_is_acknowledged_is_deleted_in_steps() -> None:
    inbox = await flooded()
    await inbox.acknowledge(FLOOD)
    assert 0 < inbox.progress.gone < FLOOD
    listener = inbox.listen(0)
    assert listener.position == FLOOD  # what is left is not shown again
    listener.close()
    await inbox.lapse(1)
    assert inbox.progress.gone == FLOOD


async def test_a_flood_is_erased_with_its_subscription() -> None:
    inbox = await flooded()
    inbox.close()
    await inbox.erase()
    assert await inbox._store.scan("inbox") == await inbox._store.scan("inbox-seen") == []
