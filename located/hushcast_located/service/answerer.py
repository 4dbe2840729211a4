"""Answers each batch in its turn, for every subscription; after a crash it goes on where it was."""

from __future__ import annotations

import math
from dataclasses import dataclass

import trio

import hushcast
from hushcast_located.engines import Answering
from hushcast_located.engines import answering as answering_from
from hushcast_located.paced_publication import send
from hushcast_located.service.provider_store import ProviderStore
from hushcast_protocol.spatial.batch import Batch, read_batch
from hushcast_protocol.spatial.located_answer import ProviderBatch
from hushcast_protocol.spatial.subscription_register import RegisteredSubscription
from hushcast_protocol.spatial.weight_table import read_table
from hushcast_runtime.change_signal import ChangeSignal
from hushcast_runtime.counters import Counters
from hushcast_runtime.environment import Environment
from hushcast_runtime.logs import log

_AT_ONCE = 64  # subscriptions along one way through the tree: so many are answered again after a crash


@dataclass
class Answerer:
    """Makes answers, and hands them to the daemon."""

    owner: bytes
    shelf: ProviderStore
    news: ChangeSignal
    env: Environment
    counters: Counters

    async def run(self, daemon: hushcast.Daemon) -> None:
        """Answer until cancelled."""
        while True:
            await self._answer(daemon, await self._next())

    async def publish(self, daemon: hushcast.Daemon, link: str, number: int, answer: bytes) -> None:
        """Publish an answer for the batch of this number; return once it is on the daemon's disk."""
        await send(daemon, link, answer, self.counters)

    async def _next(self) -> Batch:
        shelf = self.shelf
        while shelf.current is None:
            batch = shelf.arrivals.next(shelf.tables, self.env.elapsed())
            if batch is not None:
                missing = await shelf.begin(batch)
                if missing:
                    self.counters.add("batches_missing", missing)
                    log.warning("going on behind batches that did not come", count=missing)
                return batch
            due = shelf.arrivals.deadline(shelf.tables)
            left = math.inf if due is None else max(due - self.env.elapsed(), 0.0)
            with trio.move_on_after(left):
                await self.news.wait()
        return shelf.current

    async def _answer(self, daemon: hushcast.Daemon, batch: Batch) -> None:
        shelf, number, compute = self.shelf, batch.body.number, self.env.compute
        data, table = await shelf.batch_data(batch), await shelf.table_data(batch.body.table)
        names = await shelf.unanswered(number)
        answering = await compute(_answering, data, table, self.owner, len(names))
        for start in range(0, len(names), _AT_ONCE):
            some = [(name, one) for name in names[start : start + _AT_ONCE] if (one := self._kept(name))]
            made = answering([one.subscription for _, one in some])
            for name, one in some:
                answer, _ = await compute(next, made)
                if (now := self._kept(name)) is None:
                    continue  # withdrawn meanwhile
                if now.subscription != one.subscription:
                    answer, _ = await compute(next, answering([now.subscription]))
                await self.publish(daemon, now.answers, number, answer)
                shelf.register.answered(name, number)
                self.counters.add("answers_sent")
            await shelf.keep_answered([name for name, _ in some])
        await shelf.done(batch)
        self.counters.add("batches_answered")
        self.news.tell()

    def _kept(self, name: bytes) -> RegisteredSubscription | None:
        found = self.shelf.register.get(name)
        return found if isinstance(found, RegisteredSubscription) else None


def _answering(batch: bytes, table: bytes, owner: bytes, count: int) -> Answering:
    _, signed, root = read_batch(batch)
    return answering_from(ProviderBatch(signed, root, read_table(table, owner)), count)
