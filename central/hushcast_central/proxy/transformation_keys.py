"""Transformation keys: what a proxy made with each user and the server, until the pseudonym's day has lapsed.

Those that subscribe are on disk. Those that publish live for a moment, and are in memory alone.
"""

from __future__ import annotations

from collections import OrderedDict

import msgspec

from hushcast_protocol.base.crypto.group import Scalar
from hushcast_protocol.base.epochs import Calendar
from hushcast_protocol.base.errors import Refusal
from hushcast_protocol.base.record_kinds import RecordKind, StateOwner
from hushcast_protocol.base.wire import Bytes32, Counter
from hushcast_runtime.storage.changes import Change
from hushcast_runtime.storage.recovery import restore, sized
from hushcast_runtime.storage.store import Store, record_reader

MAX_TRANSFORMATIONS = 16_384  # as many as the server has pseudonyms of each kind; some 8 MB

_KIND = RecordKind(
    "transformation",
    StateOwner.PROXY,
    holds="transformation keys of pseudonyms that subscribe",
    lifetime="until their day has lapsed",
    bound=f"{MAX_TRANSFORMATIONS:,}",
)
_ID = 32  # bytes of a pseudonym


class _StoredKey(msgspec.Struct, frozen=True, array_like=True):
    """A transformation key as it is stored."""

    day: Counter
    factor: Bytes32


_read = record_reader(_StoredKey, "transformation")
_pack = msgspec.msgpack.Encoder().encode


class TransformationKeys:
    """s/k of each pseudonym of one proxy."""

    def __init__(self, store: Store, calendar: Calendar, are_kept: bool) -> None:
        """`are_kept`: on disk, and none is forgotten before its day; else the oldest gives way."""
        self._store = store
        self._calendar = calendar
        self._are_kept = are_kept
        self._known: OrderedDict[bytes, tuple[int, Scalar]] = OrderedDict()

    def __len__(self) -> int:
        return len(self._known)

    def fullness(self) -> float:
        """Return the share (0 to 1) of the room that lasts that is taken."""
        return len(self._known) / MAX_TRANSFORMATIONS if self._are_kept else 0.0

    async def load(self) -> None:
        """Know those of before a restart."""
        await restore(self._store, _KIND, self._take)

    def _take(self, pseudonym: bytes, value: bytes) -> None:
        kept = _read(value)
        self._known[sized(pseudonym, _ID)] = kept.day, Scalar(kept.factor)

    def find(self, pseudonym: bytes) -> Scalar | None:
        """Return a pseudonym's key, if there is one."""
        if (known := self._known.get(pseudonym)) is None:
            return None
        self._known.move_to_end(pseudonym)
        return known[1]

    async def add(self, pseudonym: bytes, day: int, factor: Scalar, now: float) -> None:
        """Keep a key, durably where they are kept; a known pseudonym's stays. Raises `Refusal`."""
        if day not in self._calendar.installable_days(now):
            raise Refusal("day")
        if pseudonym not in self._known:
            if len(self._known) >= MAX_TRANSFORMATIONS:
                if self._are_kept:
                    raise Refusal("quota")
                self._known.popitem(last=False)
            self._known[pseudonym] = day, factor
            if self._are_kept:
                self._store.write_soon(Change(_KIND, pseudonym, _pack(_StoredKey(day, factor.reveal()))))
        if self._are_kept:
            await self._store.write()

    def expire(self, now: float) -> int:
        """Forget the keys of days that have lapsed; return how many."""
        lapsed = [name for name, (day, _) in self._known.items() if self._calendar.lapse(day) <= now]
        for pseudonym in lapsed:
            del self._known[pseudonym]
            if self._are_kept:
                self._store.write_soon(Change(_KIND, pseudonym, None))
        return len(lapsed)
