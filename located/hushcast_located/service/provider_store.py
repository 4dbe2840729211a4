"""What a provider knows, on disk: subscriptions, batches and weights that wait, how far it is.

Subscriptions lie under their random names, and are written anew in the order of these with every batch: so
neither what they say nor where they lie tells which two came after one another.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import msgspec
import trio

from hushcast_protocol.base.crypto.signatures import Signed
from hushcast_protocol.base.errors import DecodeError, PeerError
from hushcast_protocol.base.record_kinds import RecordKind, StateOwner
from hushcast_protocol.base.wire import encode
from hushcast_protocol.spatial.answer_problems import InvalidAnswer
from hushcast_protocol.spatial.batch import Batch, check_by, read_batch
from hushcast_protocol.spatial.batch_arrivals import BatchArrivals
from hushcast_protocol.spatial.located_requests import DAY
from hushcast_protocol.spatial.owner_keys import OwnerKeys
from hushcast_protocol.spatial.subscription_register import (
    SubscriptionRegister,
    WithdrawnSubscription,
    decode_record,
)
from hushcast_protocol.spatial.weight_table import WeightTable, read_table
from hushcast_runtime.environment import Environment
from hushcast_runtime.storage.changes import Change
from hushcast_runtime.storage.recovery import restore, set_aside, sized, tell
from hushcast_runtime.storage.store import Records, Store, StoreError, record_reader

T = TypeVar("T")

MAX_TABLES = 4  # tables of weights on disk: the newest; 40 MiB, or those that batches wait with
MAX_TOLD_MISSING = 16  # batches that never came and are still told of
_STEP = 1024  # subscriptions that are looked at, or written, in one step, some 5 ms
TOLD_FOR = 7  # days for which they are told of

SUBSCRIPTION = RecordKind(
    "subscription",
    StateOwner.PROVIDER,
    holds="subscriptions, and the names of withdrawn ones, by random name",
    lifetime="until the day that they say",
)
BATCH = RecordKind(
    "batch",
    StateOwner.PROVIDER,
    holds="batches that wait or are answered",
    lifetime="until every subscription has its answer",
)
TABLE = RecordKind(
    "table",
    StateOwner.PROVIDER,
    holds="tables of weights",
    lifetime="until there are newer ones",
    bound=f"{MAX_TABLES}, and those that batches wait with",
)
PROGRESS = RecordKind(
    "progress",
    StateOwner.PROVIDER,
    holds="the last batch, the one that is answered, batches that never came",
    lifetime=f"until replaced; missing ones {TOLD_FOR} days",
    bound="1",
)


class _Progress(msgspec.Struct, frozen=True):
    last: Signed | None = None
    current: Signed | None = None
    missing: tuple[tuple[int, int], ...] = ()  # number, and the day since 1970 on which it was missed


_read_progress = record_reader(
    _Progress, "progress of a provider", "without it a batch might be answered twice; "
)


class ProviderStore:
    """A provider's records, once they are loaded."""

    def __init__(
        self, store: Store, env: Environment, owner: bytes, register: SubscriptionRegister, patience: float
    ) -> None:
        """`patience` is that of `BatchArrivals`."""
        self.register = register
        self.arrivals = BatchArrivals(None, patience)
        self.tables: dict[bytes, int] = {}
        """The versions of the tables that are here, by digest."""
        self.current: Batch | None = None
        """The batch that is being answered."""
        self._progress = _Progress()
        self._store = store
        self._env = env
        self.keys = OwnerKeys(owner)
        """Of the owner, as far as its tables of weights and batches tell."""

    @property
    def newest(self) -> int:
        """The number of the last batch whose answers are made, or were."""
        newest = self.current or self.arrivals.last
        return newest.body.number if newest is not None else 0

    @property
    def newest_table(self) -> bytes | None:
        """The digest of the table of that batch; `None` before the first, and while it is not here."""
        newest = self.current or self.arrivals.last
        return newest.body.table if newest is not None and newest.body.table in self.tables else None

    @property
    def today(self) -> int:
        """The day, since 1970."""
        return int(self._env.now() // DAY)

    @property
    def missing(self) -> list[int]:
        """The numbers of the batches that never came."""
        return [number for number, _ in self._progress.missing]

    def signed(self, number: int) -> Signed | None:
        """Return what the owner signed of a batch, of the last one or the one that is being answered."""
        for batch in (self.current, self.arrivals.last):
            if batch is not None and batch.body.number == number:
                return batch.signed
        return None

    async def load(self) -> None:
        """Read everything back; raise `StoreError` where what it is of is damaged, or another's."""
        await restore(
            self._store,
            SUBSCRIPTION,
            lambda name, value: self.register.restore(sized(name, 32), decode_record(value)),
        )
        for _, value in await self._store.scan(PROGRESS):
            self._progress = _read_progress(value)
        last, current = self._progress.last, self._progress.current
        async for digest, value in Records(self._store, TABLE, at_once=1):
            try:
                table = await self._env.compute(read_table, value, self.keys.root)
                if table.digest != digest:
                    raise DecodeError("a table is kept under another's digest")
                self.keys = self.keys.extended(table.whole.keys)
            except PeerError:
                await self._set_aside(TABLE, digest, value)
                continue
            self.tables[digest] = table.body.version
        self.arrivals.last = _sound(check_by, last, self.keys) if last is not None else None
        async for key, value in Records(self._store, BATCH, at_once=1):
            try:
                _, batch, _ = await self._env.compute(read_batch, value)
            except PeerError:
                await self._set_aside(BATCH, key, value)
                continue
            try:
                self.arrivals.take(batch, self._env.elapsed())
            except InvalidAnswer:  # another was answered while this one was written
                await self._store.write(Change(BATCH, key, None))
            if batch.signed == current and batch.body.table in self.tables:
                self.current = batch

    async def _set_aside(self, kind: RecordKind, key: bytes, value: bytes) -> None:
        await set_aside(self._store, kind, [(key, value)])
        tell(kind, 1)

    async def keep(self, name: bytes) -> None:
        """Write down what the register has under a name now; durable on return."""
        spared = self.register.spare()
        changes = [Change(SUBSCRIPTION, spared, None)] if spared is not None else []
        await self._store.write(self._record(name), *changes)

    async def keep_answered(self, names: Sequence[bytes]) -> None:
        """Write subscriptions that have had their answers, in the order of their names."""
        await self._store.write(*(self._record(name) for name in sorted(names)))

    async def expire(self) -> None:
        """Forget what has ended before today."""
        today = self.today
        for names in await self._in_parts():
            over = self.register.expire(names, today)
            self._store.write_soon(*(Change(SUBSCRIPTION, name, None) for name in over))
            await trio.lowlevel.checkpoint()
        told = tuple(one for one in self._progress.missing if one[1] > today - TOLD_FOR)
        self._progress = msgspec.structs.replace(self._progress, missing=told)
        await self._store.write(self._written())

    async def unanswered(self, number: int) -> list[bytes]:
        """Return the names of subscriptions that are to have an answer of a batch, sorted."""
        found: list[bytes] = []
        for names in await self._in_parts():
            found += self.register.unanswered(names, number)
            await trio.lowlevel.checkpoint()
        return found

    async def learn(self, keys: OwnerKeys) -> None:
        """Go by these keys of the owner; batches that wait and do not hold by them are forgotten."""
        self.keys = keys
        for batch in self.arrivals.held:
            try:
                check_by(batch.signed, keys)
            except InvalidAnswer:
                if batch != self.current:
                    await self.forget(batch, is_missing=False)

    async def put_table(self, table: WeightTable, data: bytes) -> bool:
        """Take a table of weights; return whether it was not here yet, and is needed."""
        version, last = table.body.version, self.arrivals.last
        if table.digest in self.tables or (last is not None and version < last.body.version):
            return False
        await self._store.write(Change(TABLE, table.digest, data))
        self.tables[table.digest] = version
        batches = (self.arrivals.last, self.current, *self.arrivals.held)
        in_use = {table.digest, *(batch.body.table for batch in batches if batch is not None)}
        others = sorted(
            (digest for digest in self.tables if digest not in in_use), key=self.tables.__getitem__
        )
        while len(self.tables) > MAX_TABLES and others:
            await self._drop_table(others.pop(0))
        return True

    async def put_batch(self, batch: Batch, data: bytes) -> None:
        """Take a batch; raise `InvalidAnswer` as `BatchArrivals.check` does."""
        self.arrivals.check(batch)
        key = _key(batch.body.number)
        await self._store.write(Change(BATCH, key, data))
        try:
            self.arrivals.take(batch, self._env.elapsed())
        except InvalidAnswer:
            await self._store.write(Change(BATCH, key, None))
            raise

    async def forget(self, batch: Batch, is_missing: bool) -> None:
        """Hold a batch no more, which cannot be answered."""
        self.arrivals.forget(batch)
        if is_missing:
            self._miss([batch.body.number])
        await self._store.write(Change(BATCH, _key(batch.body.number), None), self._written())

    async def begin(self, batch: Batch) -> int:
        """Note that the answers of a batch are made now; return how many before it are missing."""
        skipped = self.arrivals.skipped(batch)
        self._miss(skipped[-MAX_TOLD_MISSING:])  # an owner may leave out 2^47, of which no list is made
        self.current = batch
        self._progress = msgspec.structs.replace(self._progress, current=batch.signed)
        await self._store.write(self._written())
        return len(skipped)

    async def done(self, batch: Batch) -> None:
        """Note that all answers of a batch are on their way."""
        for names in await self._in_parts():  # in the order of their names, whenever they were withdrawn
            withdrawn = [name for name in names if isinstance(self.register.get(name), WithdrawnSubscription)]
            self._store.write_soon(*map(self._record, withdrawn))
            await trio.lowlevel.checkpoint()
        gone = self.arrivals.done(batch)
        self.current = None
        self._progress = msgspec.structs.replace(self._progress, last=batch.signed, current=None)
        changes = [Change(BATCH, _key(one.body.number), None) for one in gone]
        await self._store.write(*changes, self._written())
        for digest in [one for one, version in self.tables.items() if version < batch.body.version]:
            await self._drop_table(digest)

    async def batch_data(self, batch: Batch) -> bytes:
        """Return a batch as it came."""
        return await self._one(BATCH, _key(batch.body.number))

    async def table_data(self, digest: bytes) -> bytes:
        """Return a table as it came."""
        return await self._one(TABLE, digest)

    async def _in_parts(self) -> list[list[bytes]]:
        """Return all names of the register, sorted, as many together as one step looks at."""
        return await self._env.compute(_parts, self.register.names())

    async def _one(self, kind: RecordKind, key: bytes) -> bytes:
        found = await self._store.scan(kind, key, limit=1)
        if not found:
            raise StoreError("a record in the database is missing: restore a backup")
        return found[0][1]

    async def _drop_table(self, digest: bytes) -> None:
        if self.tables.pop(digest, None) is not None:  # another task may be at it
            await self._store.write(Change(TABLE, digest, None))

    def _miss(self, numbers: Sequence[int]) -> None:
        today = self.today
        told = (*self._progress.missing, *((number, today) for number in numbers))
        self._progress = msgspec.structs.replace(self._progress, missing=told[-MAX_TOLD_MISSING:])

    def _record(self, name: bytes) -> Change:
        record = self.register.get(name)
        return Change(SUBSCRIPTION, name, encode(record) if record is not None else None)

    def _written(self) -> Change:
        return Change(PROGRESS, b"", encode(self._progress))


def _parts(names: list[bytes]) -> list[list[bytes]]:
    names.sort()
    return [names[at : at + _STEP] for at in range(0, len(names), _STEP)]


def _key(number: int) -> bytes:
    return number.to_bytes(8, "big")


def _sound(read: Callable[..., T], *given: Any) -> T:
    """Return what a record is; raise `StoreError` where it is not as it was written."""
    try:
        return read(*given)
    except PeerError:
        raise StoreError(
            "a record in the database is damaged, or the feed's owner is another one now: name another state "
            "directory for another feed"
        ) from None
