"""Heard days as they lie in the store, one record for each subscription of a daemon under cover."""

from __future__ import annotations

from collections.abc import Collection
from typing import Annotated

import msgspec

from hushcast_protocol.base.record_kinds import RecordKind, StateOwner
from hushcast_protocol.base.wire import Counter, encode
from hushcast_protocol.cover.heard_days import HeardDays
from hushcast_runtime.storage.changes import Change
from hushcast_runtime.storage.recovery import restore, sized
from hushcast_runtime.storage.store import Store, record_reader

_KIND = RecordKind(
    "covered-days",
    StateOwner.OVERLAY_DAEMON,
    holds="of each subscription under cover its first day, the last one of which it is known whether "
    "messages lack, and which later ones relays were told of before they began",
    lifetime="until the subscription ends",
)
_NAME = 16  # bytes of the name of what is wanted
_AHEAD = 4  # days: today and tomorrow, and those that are over and of which no block came yet


class _StoredDays(msgspec.Struct, frozen=True, array_like=True):
    first: Counter
    judged: Counter
    ahead: Annotated[tuple[Counter, ...], msgspec.Meta(max_length=_AHEAD)]


_decode = record_reader(_StoredDays, "days of a subscription under cover")


class HeardDayRecords:
    """Those of one daemon."""

    def __init__(self, store: Store) -> None:
        self._store = store

    async def load(self, names: Collection[bytes]) -> dict[bytes, HeardDays]:
        """Return what is kept for subscriptions of these names; what is of others is forgotten."""
        found: dict[bytes, HeardDays] = {}

        def take(key: bytes, value: bytes) -> None:
            one = _decode(value)
            found[sized(key, _NAME)] = HeardDays(one.first, one.judged, set(one.ahead))

        await restore(self._store, _KIND, take)
        for name in found.keys() - set(names):
            self.forget(name)
        return found

    def keep(self, name: bytes, days: HeardDays) -> None:
        """Write it; on disk with the next commit."""
        ahead = tuple(sorted(days.ahead)[-_AHEAD:])
        self._store.write_soon(Change(_KIND, name, encode(_StoredDays(days.first, days.judged, ahead))))

    def forget(self, name: bytes) -> None:
        """Delete it; on disk with the next commit."""
        self._store.write_soon(Change(_KIND, name, None))
