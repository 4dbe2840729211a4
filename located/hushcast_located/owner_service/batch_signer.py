"""Signs a batch at the end of each interval, of what waits; after a crash it goes on where it was."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import msgspec
import trio

from hushcast_located.batch_folder import BatchFolder
from hushcast_located.owner_handover import signing_keys, take_over
from hushcast_located.owner_service.message_pool import MessagePool
from hushcast_located.owner_service.owner_seeds import OwnerSeeds
from hushcast_located.owner_service.settings import OwnerSettings
from hushcast_protocol.base.crypto.signatures import Signed
from hushcast_protocol.base.errors import UsageError
from hushcast_protocol.spatial.batch import Batch, BatchInterval, check_batch, make_batch
from hushcast_protocol.spatial.batch_plan import (
    fitting,
    interval_due,
    is_to_weigh,
    next_due,
    weighable,
)
from hushcast_protocol.spatial.keywords import NEWEST, Keywords, WordRule
from hushcast_protocol.spatial.located_messages import LocatedMessage, worded
from hushcast_protocol.spatial.places import chord
from hushcast_protocol.spatial.tmr_tree import entries_of
from hushcast_protocol.spatial.weight_table import WeightTable, idf, sign_again, sign_table
from hushcast_runtime.change_signal import ChangeSignal
from hushcast_runtime.counters import Counters
from hushcast_runtime.environment import Environment
from hushcast_runtime.logs import log

_DAY = 24 * 3600  # seconds


@dataclass(frozen=True)
class _SignedFeed:
    """The newest batch of a feed, its table, and its messages."""

    batch: Batch
    table: WeightTable
    messages: Sequence[LocatedMessage]


class BatchSigner:
    """Makes batches; nobody else makes any in its folder."""

    def __init__(
        self,
        settings: OwnerSettings,
        seeds: OwnerSeeds,
        pool: MessagePool,
        news: ChangeSignal,
        env: Environment,
        counters: Counters,
    ) -> None:
        self.folder = BatchFolder(batches_in(settings.state_path()))
        self._settings, self._seeds, self._pool, self._news = settings, seeds, pool, news
        self._env, self._counters = env, counters
        self._last: Batch | None = None
        self._table: WeightTable | None = None
        self._began = int(env.now())

    @property
    def public(self) -> bytes:
        """The key that signs from now on."""
        return self._seeds.now.public()

    async def load(self) -> None:
        """Read the newest batch, and note it where a crash kept that from being noted.

        A former key hands over to the one of now. Raises `UsageError` where it may sign no more, or the
        folder is another owner's, or older than what was signed.
        """
        await self._env.compute(take_over, self.folder, self._seeds.now, self._seeds.former)
        signing_keys(self.folder, self._seeds.now)
        found = await self._env.compute(self._newest)
        done = self._pool.progress
        number = 0 if found is None else found.batch.body.number
        if number < done.signed:
            raise UsageError(
                f"batch {done.signed} was signed, and {self.folder.path} ends with {number}: put its files "
                "back, or begin another feed with a state directory and a key of its own"
            )
        if found is None:
            return
        self._last, self._table = found.batch, found.table
        if number > done.signed:
            await self._note(found)

    def _newest(self) -> _SignedFeed | None:
        number = self.folder.newest()
        if number is None:
            return None
        _, feed = self.folder.read(number)
        return _SignedFeed(feed.batch, feed.table, [one.message for one in entries_of(feed.root)])

    async def _note(self, signed: _SignedFeed) -> None:
        """Note a batch that is in the folder, and whether it came with a table of its own."""
        done, body = self._pool.progress, signed.batch.body
        said = done.said + body.count
        weighed = said if body.version != done.version else done.weighed
        fresh = msgspec.structs.replace(
            done, signed=body.number, said=said, weighed=weighed, version=body.version
        )
        await self._pool.signed(signed.messages, fresh)

    async def run(self) -> None:
        """Sign until cancelled."""
        while True:
            await self._env.sleep_until(next_due(self._began, self._settings.interval, self._last))
            due = interval_due(self._began, self._settings.interval, self._last, int(self._env.now()))
            if due is None:  # the clock was set back meanwhile
                await trio.lowlevel.checkpoint()
                continue
            await self.sign(due)
            await self._env.compute(self._prune)

    async def sign(self, interval: BatchInterval) -> None:
        """Sign the batch of an interval; durable, and noted, on return."""
        before = self._table
        signed = await self._env.compute(self._sign, interval, self._pool.waiting())
        self._last, self._table = signed.batch, signed.table
        await self._note(signed)
        self._counters.add("batches_signed")
        self._counters.add("messages_signed", len(signed.messages))
        if before is None or signed.table.digest != before.digest:
            self._counters.add("weights_signed")
        log.info("a batch is signed", count=len(signed.messages))
        self._news.tell()

    def _sign(self, interval: BatchInterval, waiting: Sequence[LocatedMessage]) -> _SignedFeed:
        done, last, keys = self._pool.progress, self._table, signing_keys(self.folder, self._seeds.now)
        fresh = last is None or is_to_weigh(done.said + len(waiting), done.weighed)
        rule = NEWEST if last is None or fresh else last.body.rule
        messages = list(fitting(worded(one, interval.number, rule) for one in waiting))
        if last is None or fresh:
            table = self._weighed(messages, rule, keys)
        else:
            table = last if last.whole.keys == keys else sign_again(self._seeds.now, last, keys)
        whole = make_batch(self._seeds.now, interval, table, self._settings.fan_out, messages)
        self.folder.write(whole, interval.number, table)
        return _SignedFeed(check_batch(whole.signed, self.public), table, messages)

    def _weighed(
        self, messages: Sequence[LocatedMessage], rule: WordRule, keys: tuple[Signed, ...]
    ) -> WeightTable:
        weights, other = idf(weighable(self._words(messages, rule)))
        version = 1 if self._table is None else self._table.body.version + 1
        most = chord(self._settings.max_distance)
        return sign_table(self._seeds.now, version, weights, other, most, rule, keys)

    def _words(self, messages: Sequence[LocatedMessage], rule: WordRule) -> Iterator[Keywords]:
        """Yield the words of messages, the newest first: of these, then of batches that are still there."""
        yield from (one.words for one in messages)
        for number in range(self.folder.newest() or 0, 0, -1):
            if not (self.folder.path / f"{number}.batch").exists():
                return
            for entry in entries_of(self.folder.read(number)[1].root):
                yield worded(entry.message, number, rule).words

    def _prune(self) -> None:
        """Remove batches once they are old, and published before the last that was.

        By that one the publisher tells whether the next has another table.
        """
        before = self._env.now() - self._settings.keep * _DAY
        for number in sorted(self.folder.numbers()):
            file = self.folder.path / f"{number}.batch"
            if number >= self._pool.progress.published or file.stat().st_mtime >= before:
                break
            file.unlink()


def batches_in(state: Path) -> Path:
    """Return where an owner's batches lie."""
    return state / "batches"
