"""Publishes batches in their order, each once the daemon is there."""

from __future__ import annotations

from dataclasses import dataclass

import msgspec
import trio

import hushcast
from hushcast_located.batch_folder import BatchFolder
from hushcast_located.owner_service.message_pool import MessagePool
from hushcast_located.owner_service.owner_seeds import OwnerSeeds
from hushcast_located.paced_publication import send_part, to_publish
from hushcast_protocol.base.crypto.hashes import Domain, digest
from hushcast_runtime.change_signal import ChangeSignal
from hushcast_runtime.counters import Counters
from hushcast_runtime.environment import Environment

_TOKEN = 16  # bytes by which the daemon knows a part again


@dataclass
class FeedPublisher:
    """Hands batches to the daemon."""

    link: str
    seeds: OwnerSeeds
    folder: BatchFolder
    pool: MessagePool
    news: ChangeSignal
    env: Environment
    counters: Counters

    async def run(self, daemon: hushcast.Daemon) -> None:
        """Publish until cancelled."""
        while True:
            done = self.pool.progress
            if done.published >= done.signed:
                await self.news.wait()
                continue
            await self._publish(daemon, done.published + 1)

    async def _publish(self, daemon: hushcast.Daemon, number: int) -> None:
        first = self.folder.oldest()
        if first is not None and number < first:  # it was removed, or the feed began elsewhere
            number = first
        _, parts = await self.env.compute(to_publish, self.seeds.now, self.folder, number, None)
        author = hushcast.Author(self.seeds.author)
        for part in parts:
            # After a crash the daemon is given the same again, and publishes it once.
            token = digest(Domain.LOCATED_SENT, part, size=_TOKEN)
            await send_part(daemon, self.link, part, self.counters, author, token)
        await self.pool.note(msgspec.structs.replace(self.pool.progress, published=number))
        self.counters.add("batches_published")
        await trio.lowlevel.checkpoint()
