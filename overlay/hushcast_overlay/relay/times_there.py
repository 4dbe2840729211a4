"""Times there: in which epochs this relay was up.

As a keeper it says in which it was not; as an origin it may lack leases that were installed meanwhile.
It notes the epochs whose beginnings it saw: it was there in one if it saw that and the next. A start between
the two is noted as well. It does not count for a keeper, as origins hand in again; nobody tells of a lease
again.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from functools import partial

from hushcast_protocol.base.epochs import EPOCHS_A_DAY, Calendar
from hushcast_protocol.base.errors import DecodeError
from hushcast_protocol.base.keeping_rule import MAX_DAYS_KEPT
from hushcast_protocol.base.record_kinds import RecordKind, StateOwner
from hushcast_runtime.context import Context
from hushcast_runtime.storage.changes import Change
from hushcast_runtime.storage.recovery import number, restore, sized

SEEN_WITHIN = 60.0  # seconds after its beginning in which an epoch is noted: a machine that slept saw none

_KIND = RecordKind(
    "there",
    StateOwner.RELAY,
    holds="the epochs at whose beginning it was up, as a keeper says in which it was not",
    lifetime="as long as a network may keep something of these days",
    bound=f"{(MAX_DAYS_KEPT + 3) * EPOCHS_A_DAY + 2}",
)
_RESTARTED = RecordKind(
    "restarted",
    StateOwner.RELAY,
    holds="the epochs in which it was started again, as it may lack leases that were told of meanwhile",
    lifetime="as long as it routes by leases that were told of then",
    bound=f"{4 * EPOCHS_A_DAY}",
)


class TimesThere:
    """The epochs in which one relay was up."""

    def __init__(self, calendar: Calendar, context: Context) -> None:
        self._calendar = calendar
        self._env = context.env
        self._store = context.store
        self._seen: set[int] = set()
        self._restarted: set[int] = set()

    async def load(self) -> None:
        """Read back what was noted before a restart, and note this one where it is within an epoch."""
        await restore(self._store, _KIND, partial(_take_up, self._seen))
        await restore(self._store, _RESTARTED, partial(_take_up, self._restarted))
        epoch = self._calendar.epoch(self._env.now())
        if epoch in self._seen and epoch not in self._restarted:
            self._restarted.add(epoch)
            self._store.write_soon(Change(_RESTARTED, _key(epoch), b""))

    def begin_epoch(self) -> None:
        """Note that an epoch begins; whoever calls is certain of the time. Durable with the next commit."""
        now = self._env.now()
        epoch = self._calendar.epoch(now)
        if now - self._calendar.epoch_start(epoch) <= SEEN_WITHIN and epoch not in self._seen:
            self._seen.add(epoch)
            self._store.write_soon(Change(_KIND, _key(epoch), b""))

    def away(self, epochs: Iterable[int]) -> tuple[int, ...]:
        """Return those of some epochs, up to the running one, in which it was not there all the time."""
        now = self._calendar.epoch(self._env.now())
        return tuple([epoch for epoch in epochs if 0 <= epoch <= now and not self._was_there(epoch, now)])

    def may_have_missed(self, epochs: Collection[int]) -> bool:
        """Tell whether it was away for a moment in one of some epochs, up to the running one."""
        return not self._restarted.isdisjoint(epochs) or bool(self.away(epochs))

    def _was_there(self, epoch: int, now: int) -> bool:
        return epoch in self._seen and (epoch == now or epoch + 1 in self._seen)

    def lapse(self) -> None:
        """Forget what is older than all that anybody may ask for; whoever calls is certain of the time."""
        first_open = self._calendar.open_days(self._env.now()).start
        self._forget(_KIND, self._seen, (first_open - MAX_DAYS_KEPT) * EPOCHS_A_DAY - 1)
        self._forget(_RESTARTED, self._restarted, (first_open - 1) * EPOCHS_A_DAY)

    def _forget(self, kind: RecordKind, noted: set[int], first: int) -> None:
        gone = [epoch for epoch in noted if epoch < first]
        noted.difference_update(gone)
        self._store.write_soon(*[Change(kind, _key(epoch), None) for epoch in gone])


def _take_up(noted: set[int], key: bytes, value: bytes) -> None:
    if value:
        raise DecodeError("of an epoch more is kept than its number")
    noted.add(number(sized(key, 8)))


def _key(epoch: int) -> bytes:
    return epoch.to_bytes(8, "big")
