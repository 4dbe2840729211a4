"""What applications have a daemon do for a turn."""

from __future__ import annotations

import itertools
import random
import time
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress

import trio

import hushcast
from benchmarks.cover.turns import LEAD, Doing, Turn
from hushcast_protocol.base.cover_terms import LEAST_ROUND

PUBLISHED = tuple(f"cover-{number}" for number in range(8))  # each has one round of four: most have a message
SOONEST, LATEST = 5.0, 12.0  # seconds between two messages: letters of a round have room for as many
SIZE = 1_000  # bytes of a message at most
MOST = 0.6  # of a network's relays
WANTED_EVERY = 8.0, 20.0  # seconds between two subscriptions: a host's letter each, then those of its tree
HEARD_EVERY = 10.0, 16.0  # seconds between two messages for a reader; a lane has room for three a round


class Applications:
    """The applications of one daemon."""

    def __init__(
        self, name: str, own: hushcast.Daemon, publisher: hushcast.Daemon, chance: random.Random
    ) -> None:
        """Those of a daemon and of `publisher`, which has what the daemon reads, and no cover."""
        self.topic = f"for {name}"
        """To which it is subscribed all the time."""
        self.published: list[float] = []
        """When something was published on that."""
        self.heard: list[float] = []
        """When something of it came, in Unix time."""
        self._others = (f"other {number} for {name}" for number in itertools.count())
        self._own = own
        self._publisher = publisher
        self._chance = chance

    async def listen(self) -> None:
        """Subscribe, and note what comes, until cancelled."""
        async with self._own.subscribe(self.topic) as messages:
            async for _ in messages:
                self.heard.append(time.time())

    async def is_told(self, relays: int) -> bool:
        """Tell whether most of so many relays know of the subscription, and its lane brings blocks.

        Receipts come minutes later than a relay was told, so when most are there all others know, too.
        """
        (own,) = [one.described for one in await self._own.subscriptions() if one.topic == self.topic]
        return bool(own["nodes"] >= MOST * relays and "; its lane" not in own["outlook"])

    async def have_read(self, turn: Turn) -> None:
        """Publish what the daemon reads in a turn, so long before that it comes then."""
        await _until((turn.first - LEAD) * LEAST_ROUND)
        while time.time() < (turn.end - LEAD) * LEAST_ROUND:
            await self._publisher.enqueue(self.topic, "r" * self._chance.randrange(SIZE))
            self.published.append(time.time())
            await trio.sleep(self._chance.uniform(*HEARD_EVERY))

    async def act(self, turn: Turn) -> None:
        """Do what is done in a turn, until its end."""
        acts: Mapping[Doing, Callable[[float], Awaitable[None]]] = {
            Doing.IDLE: _until,
            Doing.PUBLISHING: self._publish,
            Doing.SUBSCRIBING: self._subscribe,
            Doing.READING: _until,  # what it reads was published before
        }
        await acts[turn.doing](turn.end * LEAST_ROUND)

    async def _publish(self, ends: float) -> None:
        for topic in PUBLISHED:
            await self._own.enqueue(topic, "m" * self._chance.randrange(SIZE))
        while time.time() < ends - LATEST:
            await trio.sleep(self._chance.uniform(SOONEST, LATEST))
            await self._own.enqueue(self._chance.choice(PUBLISHED), "m" * self._chance.randrange(SIZE))
        await _until(ends)
        for waiting in await self._own.outbox():
            with suppress(hushcast.HushcastError):  # its receipt has just come
                await self._own.cancel(waiting.id)

    async def _subscribe(self, ends: float) -> None:
        wanted = []
        while time.time() < ends - WANTED_EVERY[1]:
            wanted.append(next(self._others))  # another each time: its keys are derived, its tree is drawn
            async with self._own.subscribe(wanted[-1]):
                pass
            await trio.sleep(self._chance.uniform(*WANTED_EVERY))
        await _until(ends)
        for topic in wanted:
            await self._own.unsubscribe(topic)


async def _until(moment: float) -> None:
    await trio.sleep(max(0.0, moment - time.time()))
