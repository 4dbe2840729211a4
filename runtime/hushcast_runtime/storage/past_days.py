"""The days gone by of which a subscription may lack messages, and that are therefore asked for; on disk.

For carriers with one party that keeps what is published. A day may lack some where the daemon was away at its
end, or came back on it to whoever brings its messages, or lost that one; and where all of it is wanted from
before the subscription began.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

import msgspec

from hushcast_protocol.base.keeping_rule import MAX_DAYS_KEPT
from hushcast_protocol.base.record_kinds import RecordKind, StateOwner
from hushcast_protocol.base.wire import Counter, encode
from hushcast_runtime.storage.changes import Change
from hushcast_runtime.storage.recovery import restore, sized
from hushcast_runtime.storage.store import Store, record_reader

_KIND = RecordKind(
    "past-days",
    StateOwner.CENTRAL_DAEMON,
    StateOwner.BROKERS_DAEMON,
    holds="of each subscription, the days of which it may lack messages",
    lifetime="until unsubscribed",
    bound=f"{MAX_DAYS_KEPT + 2} days of each",
)
_NAME = 16  # bytes of a subscription's name


@dataclass(eq=False)
class PastDays:
    """What one subscription lacks, as far as is known."""

    began: int
    """The first day of the subscription."""
    seen: int
    """The day of the last look."""
    whole_from: int
    """The first day of which all was wanted, before the subscription or since."""
    lacking: set[int] = field(default_factory=set)

    def look(self, today: int, days: Iterable[int]) -> None:
        """Note that the days since the last look went by, but for those of which messages may still come."""
        missed = range(max(self.seen, today - MAX_DAYS_KEPT - 1), today)
        self.lacking.update(set(missed).difference(days))
        self.seen = max(self.seen, today)

    def want(self, since: int | None, today: int) -> None:
        """Note that all is wanted since a day."""
        if since is not None and since < self.whole_from:
            first = max(since, today - MAX_DAYS_KEPT)
            self.lacking.update(range(first, min(self.whole_from, today + 1)))
            self.whole_from = since

    def drop_before(self, day: float) -> bool:
        """Forget the days before one, which nobody can have any more; tell whether there were any."""
        gone = {one for one in self.lacking if one < day}
        self.lacking -= gone
        return bool(gone)


class _StoredDays(msgspec.Struct, frozen=True, array_like=True):
    began: Counter
    seen: Counter
    whole_from: Counter
    lacking: list[Counter]


_decode = record_reader(_StoredDays, "past days")


class PastDaysRecords:
    """What subscriptions lack, in the store."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def keep_soon(self, name: bytes, days: PastDays) -> None:
        """Write what a subscription lacks, by its name."""
        stored = _StoredDays(days.began, days.seen, days.whole_from, sorted(days.lacking))
        self._store.write_soon(Change(_KIND, name, encode(stored)))

    def forget(self, name: bytes) -> None:
        """Delete that."""
        self._store.write_soon(Change(_KIND, name, None))

    async def load(self) -> dict[bytes, PastDays]:
        """Read all that was kept, by name."""
        found: dict[bytes, PastDays] = {}

        def take(name: bytes, value: bytes) -> None:
            stored = _decode(value)
            days = PastDays(stored.began, stored.seen, stored.whole_from, set(stored.lacking))
            found[sized(name, _NAME)] = days

        await restore(self._store, _KIND, take)
        return found
