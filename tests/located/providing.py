"""An owner and a provider in a few lines, beside a daemon without a network."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

import trio
from world import World

import hushcast
from hushcast.daemon import Daemon
from hushcast_protocol.base.crypto.secrets import AgreementKey, Seed
from hushcast_protocol.base.errors import PeerError
from hushcast_protocol.base.wire import encode
from hushcast_protocol.spatial.batch import Batch, BatchInterval, make_batch, read_batch
from hushcast_protocol.spatial.located_answer import LocatedAnswer, ProviderBatch
from hushcast_protocol.spatial.located_messages import read_message
from hushcast_protocol.spatial.located_requests import (
    DAY,
    AskTable,
    RequestConfirmation,
    RequestOpener,
    SubscribeRequest,
    WithdrawRequest,
)
from hushcast_protocol.spatial.message_parts import cut
from hushcast_protocol.spatial.offer import Offer, write_offer
from hushcast_protocol.spatial.places import chord
from hushcast_protocol.spatial.weight_table import WeightTable, idf, sign_table

OWNER = Seed(bytes([7]) * 32)
HERE = {"lat": 60.17, "lon": 24.94}
SAID = ["shoe discount today", "shoe repair", "fish at the market", "red boot discount", "shoe sale"]


class Provider:
    """Takes requests, and answers batches that it is given."""

    def __init__(self, daemon: Daemon) -> None:
        self._daemon = daemon
        self._key = AgreementKey(bytes([9]) * 32)
        self.offer = Offer(self._key.public(), hushcast.new_link("requests", private=True), OWNER.public(), 1)
        self.held: dict[bytes, SubscribeRequest] = {}
        self.withdrawn: list[bytes] = []
        self.tables_asked = 0
        self.numbers: list[int] = []
        self.feed: ProviderBatch | None = None
        self.previous: Batch | None = None
        self.table: WeightTable | None = None
        self.is_deaf = False
        self.ignored = 0
        self._changed = trio.Event()

    async def run(self, task_status: trio.TaskStatus[None]) -> None:
        opening = RequestOpener(self._key, self.offer.difficulty)
        async with self._daemon.subscribe(self.offer.requests) as messages:
            task_status.started()
            async for message in messages:
                if self.is_deaf:
                    self.ignored += 1
                    self._tell()
                    continue
                try:
                    await self._take(opening.open(message.payload, int(time.time() // DAY)))
                except PeerError:
                    continue

    async def _take(self, request: SubscribeRequest | WithdrawRequest | AskTable) -> None:
        if isinstance(request, AskTable):
            self.tables_asked += 1
            assert self.table is not None
            await self.say(request.answers, encode(self.table.whole))
        elif isinstance(request, WithdrawRequest):
            self.held.pop(request.name, None)
            self.withdrawn.append(request.name)
        else:
            self.held[request.name] = request
            self.numbers.append(request.number)
            newest = None if self.previous is None else self.previous.signed
            await self.say(request.answers, encode(RequestConfirmation(request.number, newest)))
        self._tell()

    def _tell(self) -> None:
        self._changed.set()
        self._changed = trio.Event()

    async def until(self, holds: Callable[[], bool]) -> None:
        """Wait until something was taken with which this holds."""
        with trio.fail_after(20):
            while not holds():
                await self._changed.wait()

    async def say(self, link: str, whole: bytes) -> None:
        for part in cut(whole):
            await self._daemon.enqueue(link, part)

    def batch(
        self, said: list[str] | None = None, seconds: int = 300, weigh: list[str] | None = None
    ) -> ProviderBatch:
        """Make the next batch; with `weigh` a new table, by these texts."""
        random = Random(1)
        number = 1 if self.previous is None else self.previous.body.number + 1
        lines: list[dict[str, Any]] = [
            {"id": f"{number}.{at}", "lat": 60.17 + random.gauss(0, 0.02), "lon": 24.94, "text": text}
            for at, text in enumerate(SAID if said is None else said)
        ]
        messages = [read_message(json.dumps(one).encode(), number) for one in lines]
        start = self.previous.end if self.previous else int(time.time())
        interval = BatchInterval(start, seconds, self.previous)
        if self.table is None or weigh:
            weights, other = idf(one.split() for one in weigh or SAID)  # type: ignore[misc]
            version = 1 if self.table is None else self.table.body.version + 1
            self.table = sign_table(OWNER, version, weights, other, chord(100))
        _, self.previous, root = read_batch(encode(make_batch(OWNER, interval, self.table, 4, messages)))
        self.feed = ProviderBatch(self.previous, root, self.table)
        return self.feed

    async def answer(self, spoil: Callable[[LocatedAnswer], LocatedAnswer | None] = lambda one: one) -> None:
        """Answer everybody for the batch of now; `None` is not sent."""
        assert self.feed is not None
        for request in list(self.held.values()):
            (answer,) = self.feed.answers([request.subscription])
            if (spoilt := spoil(answer)) is not None:
                await self.say(request.answers, encode(spoilt))


class Town(World):
    """A daemon, a provider beside it, and a program under trio or under asyncio."""

    provider: Provider

    def __init__(self, folder: Path, nursery: trio.Nursery, backend: str) -> None:
        super().__init__(folder / "control.sock", nursery, backend)
        self.folder = folder / "state"
        self._tasks = nursery
        self._providing = trio.CancelScope()
        self._ended = trio.Event()

    async def start(self) -> None:
        await super().start()
        await self._tasks.start(self._serve)

    async def _serve(self, task_status: trio.TaskStatus[None]) -> None:
        with self._providing:
            async with hushcast.connect(self.socket) as daemon:
                self.provider = Provider(daemon)
                await self.provider.run(task_status)
        self._ended.set()

    async def end(self) -> None:
        """End the provider, while there is still a daemon to tell."""
        self._providing.cancel()
        await self._ended.wait()

    @property
    def offer(self) -> str:
        return write_offer(self.provider.offer)

    async def held(self, count: int = 1) -> None:
        """Wait until the provider holds so many subscriptions."""
        await self.do(self.provider.until, lambda: len(self.provider.held) == count)

    async def interval(
        self, spoil: Callable[[LocatedAnswer], LocatedAnswer | None] = lambda one: one, **how: Any
    ) -> None:
        """Let the owner make a batch, and the provider answer."""
        self.provider.batch(**how)
        await self.do(self.provider.answer, spoil)
