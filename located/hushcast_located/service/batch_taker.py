"""Takes batches and tables of weights from the feed's topic, and lets nobody but the owner put any there."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass

import hushcast
from hushcast_located.service.provider_store import ProviderStore
from hushcast_protocol.base.errors import DecodeError
from hushcast_protocol.base.wire import encode
from hushcast_protocol.content.bodies import fingerprint
from hushcast_protocol.spatial.answer_problems import AnswerProblem, InvalidAnswer
from hushcast_protocol.spatial.batch import Batch, check_by, handovers_of, read_batch
from hushcast_protocol.spatial.message_parts import Assembly
from hushcast_protocol.spatial.owner_keys import OwnerKeys
from hushcast_protocol.spatial.weight_table import WeightTable, read_table
from hushcast_runtime.change_signal import ChangeSignal
from hushcast_runtime.counters import Counters
from hushcast_runtime.environment import Environment
from hushcast_runtime.logs import log

_TABLE = encode("located-weights/1")


@dataclass
class BatchTaker:
    """Reads the feed's topic."""

    link: str
    shelf: ProviderStore
    news: ChangeSignal
    env: Environment
    counters: Counters

    async def run(self, daemon: hushcast.Daemon) -> None:
        """Take what comes until cancelled; what is acknowledged is on disk, or is needed no more."""
        assembly, acknowledged = Assembly(), 0
        async with daemon.subscribe(self.link, acknowledge="manual") as messages:
            log.info("batches are taken")
            async for message in messages:
                if message.author in {fingerprint(key) for key in self.shelf.keys.all}:
                    await self._take(message, assembly)
                else:
                    self.counters.add("feed_foreign")
                needed = assembly.oldest
                done = message.cursor if needed is None else needed - 1
                if done > acknowledged:
                    with suppress(hushcast.Refusal):  # the subscription was ended, and is begun anew
                        await daemon.acknowledge(self.link, done)
                    acknowledged = done

    async def _take(self, message: hushcast.Message, assembly: Assembly) -> None:
        try:
            whole = assembly.take(message.payload, message.cursor)
            if whole is None:
                return
            found, keys = await self.env.compute(_read, whole, self.shelf.keys)
        except DecodeError:
            self.counters.add("feed_refused")
            log.warning("the owner signed a message that is no part of a batch")
            return
        except InvalidAnswer as error:
            self._refuse(error)
            return
        if keys != self.shelf.keys:
            await self.shelf.learn(keys)
            self.counters.add("keys_taken")
            log.warning("the owner has another key, or none any more: the doctor tells which")
        if isinstance(found, WeightTable):
            if await self.shelf.put_table(found, whole):
                self.counters.add("weights_taken")
                self.news.tell()
            return
        await self._until_room()
        try:
            await self.shelf.put_batch(found, whole)
        except InvalidAnswer as error:
            self._refuse(error)
            return
        self.counters.add("batches_taken")
        self.news.tell()

    def _refuse(self, error: InvalidAnswer) -> None:
        if error.problem is AnswerProblem.OLD_ROOT:
            self.counters.add("batches_repeated")
            return
        self.counters.add("batches_refused")
        log.warning("a batch is not taken: it does not follow those before", reason=str(error.problem))

    async def _until_room(self) -> None:
        """Wait for the answers of a batch, or give up one whose weights never came."""
        shelf = self.shelf
        while shelf.arrivals.is_full:
            if shelf.arrivals.next(shelf.tables, self.env.elapsed()) is not None:
                await self.news.wait()
                continue
            await shelf.forget(shelf.arrivals.held[0], is_missing=True)
            self.counters.add("batches_missing")
            log.warning("a batch is given up: its weights never came")


def _read(data: bytes, keys: OwnerKeys) -> tuple[Batch | WeightTable, OwnerKeys]:
    """Return what the owner published, and its keys after that.

    Raises `DecodeError`, or `InvalidAnswer` if it is not the owner's.
    """
    if data[1 : 1 + len(_TABLE)] == _TABLE:
        table = read_table(data, keys.root)
        return table, keys.extended(table.whole.keys)
    keys = keys.extended(handovers_of(data))
    _, batch, _ = read_batch(data)
    return check_by(batch.signed, keys), keys
