"""A feed over a network in memory: an owner, a provider, and a subscriber of a few lines."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from random import Random
from typing import Any

import trio
from fake_daemon import FakeDaemon
from spatial_world import OWNER, SECONDS, START, message

import hushcast
from hushcast_located.service.answerer import Answerer
from hushcast_located.service.counters import PROVIDER_COUNTERS
from hushcast_located.service.identity import open_identity
from hushcast_located.service.provider import Provider
from hushcast_located.service.settings import ProvidersDaemonSection, ProviderSettings
from hushcast_protocol.base.crypto.secrets import Seed
from hushcast_protocol.base.wire import encode
from hushcast_protocol.spatial.batch import Batch, BatchInterval, WholeBatch, check_batch, make_batch
from hushcast_protocol.spatial.located_answer import LocatedAnswer
from hushcast_protocol.spatial.located_messages import LocatedMessage
from hushcast_protocol.spatial.located_requests import (
    DAY,
    LocatedRequest,
    Reply,
    RequestConfirmation,
    SubscribeRequest,
    WithdrawRequest,
    decode_reply,
    seal_request,
)
from hushcast_protocol.spatial.located_subscription import LocatedSubscription
from hushcast_protocol.spatial.message_parts import Assembly, cut
from hushcast_protocol.spatial.offer import Offer
from hushcast_protocol.spatial.places import chord
from hushcast_protocol.spatial.verifier import VerifiedAnswer, verify
from hushcast_protocol.spatial.weight_table import WeightTable, idf, sign_table
from hushcast_runtime.counters import Counters
from hushcast_runtime.environment import Environment, system_environment
from hushcast_runtime.storage.store import MemoryStore, Store


class Owner:
    """Makes batches one after the other, and puts what it likes on the feed's topic."""

    def __init__(self, daemon: FakeDaemon, link: str, seed: Seed = OWNER) -> None:
        self.link, self.seed = link, seed
        self.batches: list[WholeBatch] = []
        self._daemon = daemon
        said = [message(Random(at), 1, str(at)) for at in range(30)]
        weights, other = idf(one.words for one in said)
        self.table: WeightTable = sign_table(seed, 1, weights, other, chord(100))

    def make(self, count: int = 20, said: Sequence[LocatedMessage] | None = None, **interval: Any) -> bytes:
        """Sign the next batch."""
        previous = self.newest
        number = previous.body.number + 1 if previous is not None else 1
        start = interval.get("start", START if previous is None else previous.end)
        if said is None:
            said = [message(Random(f"{number} {at}"), number, str(at)) for at in range(count)]
        whole = make_batch(self.seed, BatchInterval(start, SECONDS, previous), self.table, 4, said)
        self.batches.append(whole)
        return encode(whole)

    @property
    def newest(self) -> Batch | None:
        return check_batch(self.batches[-1].signed, self.seed.public()) if self.batches else None

    async def publish(self, *wholes: bytes, author: Seed | None = None) -> None:
        """Publish wholes in parts, as the daemon does that has them in its outbox."""
        for whole in wholes:
            for part in cut(whole):
                await self.put(part, author or self.seed)

    async def put(self, payload: bytes, author: Seed | None) -> None:
        await self._daemon.put(self.link, payload, author=author)

    async def publish_table(self) -> None:
        await self.publish(encode(self.table.whole))


class House:
    """A provider with its daemon; what is on its disk outlives it."""

    def __init__(self, folder: Path, daemon: FakeDaemon, feed: str, **settings: Any) -> None:
        folder.mkdir()
        link = folder / "feed.link"
        link.touch(0o600)
        link.write_text(feed)
        (folder / "state").mkdir(mode=0o700)
        self.settings = ProviderSettings(
            state=str(folder / "state"),
            owner=settings.pop("owner", OWNER).public().hex(),
            feed=str(link),
            daemon=ProvidersDaemonSection(socket=str(daemon.socket)),
            **{"difficulty": 1, **settings},
        )
        self.env: Environment = system_environment()
        self.store: Store = MemoryStore()
        self.counters = Counters(PROVIDER_COUNTERS)
        self.identity = open_identity(self.settings, os.urandom)

    @property
    def offer(self) -> Offer:
        return self.identity.offer

    @asynccontextmanager
    async def running(self, answerer: type[Answerer] = Answerer) -> AsyncIterator[Provider]:
        """Run the provider for the block; the end is as sudden as a kill."""
        provider = Provider(
            self.settings, self.identity, self.store, self.env, self.counters, answerer=answerer
        )
        async with trio.open_nursery() as nursery:
            await nursery.start(provider.run)
            yield provider
            nursery.cancel_scope.cancel()

    async def until(self, name: str, count: int = 1) -> None:
        """Wait until something was counted so often."""
        with trio.fail_after(20):
            while self.counters[name] < count:  # noqa: ASYNC110 - counters tell nobody
                await trio.sleep(0.005)


class Subscriber:
    """One subscription of one daemon."""

    def __init__(self, daemon: FakeDaemon, offer: Offer, wanted: LocatedSubscription) -> None:
        self.offer, self.wanted = offer, wanted
        self.name = os.urandom(32)
        self.link = hushcast.new_link("answers", private=True)
        self.replies: list[Reply] = []
        self._daemon = daemon
        self._assembly = Assembly()

    @property
    def today(self) -> int:
        return int(self._daemon.env.now() // DAY)

    def subscribe(self, number: int = 1, **changed: Any) -> SubscribeRequest:
        given = {"until": self.today + 7, "answers": self.link, "subscription": self.wanted} | changed
        return SubscribeRequest(self.name, number, **given)

    def withdraw(self, number: int) -> WithdrawRequest:
        return WithdrawRequest(self.name, number, self.today + 7)

    async def listen(self, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        async with (
            hushcast.connect(self._daemon.socket, reconnect=False) as daemon,
            daemon.subscribe(self.link, acknowledge="never") as messages,
        ):
            task_status.started()
            async for one in messages:
                if (whole := self._assembly.take(one.payload)) is not None:
                    self.replies.append(decode_reply(whole))

    async def ask(self, request: LocatedRequest) -> bytes:
        """Send a request; return it as it travelled."""
        sealed = seal_request(request, self.offer, self.today, os.urandom)
        await self._daemon.put(self.offer.requests, sealed)
        return sealed

    @property
    def answers(self) -> list[LocatedAnswer]:
        return [one for one in self.replies if isinstance(one, LocatedAnswer)]

    def verified(self) -> list[VerifiedAnswer]:
        """Check all answers, each after the one before."""
        found: list[VerifiedAnswer] = []
        for answer in self.answers:
            before = found[-1].batch if found else None
            found.append(verify(self.offer.owner, self.wanted, encode(answer), before))
        return found

    async def until(self, kind: type[Reply], count: int = 1) -> None:
        with trio.fail_after(20):
            while sum(isinstance(one, kind) for one in self.replies) < count:  # noqa: ASYNC110
                await trio.sleep(0.005)

    async def subscribed(self) -> RequestConfirmation:
        await self.ask(self.subscribe())
        await self.until(RequestConfirmation)
        taken = self.replies[0]
        assert isinstance(taken, RequestConfirmation)
        return taken
