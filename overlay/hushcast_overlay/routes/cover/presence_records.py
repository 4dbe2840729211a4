"""Presence of one daemon on disk: in how many rounds of a day it was there, and what follows from it.

That is whether it holds messages, and whether it shows who reads.
"""

from __future__ import annotations

from hushcast_protocol.base.epochs import Calendar
from hushcast_protocol.base.findings import Finding, warning
from hushcast_protocol.base.record_kinds import RecordKind, StateOwner
from hushcast_protocol.cover.cover_presence import PRESENCE_DAYS, THERE_IN, Attendance, CoverPresence
from hushcast_protocol.cover.cover_rules import CoverRules
from hushcast_protocol.cover.hold_rule import HoldRule
from hushcast_runtime.context import Context
from hushcast_runtime.storage.changes import Change
from hushcast_runtime.storage.recovery import number, restore

_KIND = RecordKind(
    "cover-presence",
    StateOwner.OVERLAY_DAEMON,
    holds="in how many rounds of a day a daemon under cover was there",
    lifetime=f"{PRESENCE_DAYS} days",
    bound=f"{PRESENCE_DAYS + 1} days",
)
_SHOWN = {
    Attendance.AT_TIMES: (
        f"this daemon was away in more than {100 * (1 - THERE_IN):.0f} % of the rounds of the last "
        f"{PRESENCE_DAYS} days, so relays that hold its subscriptions see on which days it is there, and can "
        "tell in time who reads"
    ),
    Attendance.NOT_YET_ALWAYS: (
        f"this daemon has not been there for {PRESENCE_DAYS} days on end yet; of one that is away on some "
        "days, relays that hold its subscriptions can tell in time who reads"
    ),
}
_WAY_OUT = "leave it on by day and night, or read with a daemon that is"


class PresenceRecords:
    """What one daemon knows of its presence."""

    def __init__(
        self, rules: CoverRules, hold: HoldRule, reads: bool, calendar: Calendar, context: Context
    ) -> None:
        self._hold = hold
        self._reads = reads
        self._calendar = calendar
        self._env = context.env
        self._store = context.store
        self._presence = CoverPresence(rules)

    async def load(self) -> None:
        """Read back the days of before a restart."""
        await restore(
            self._store, _KIND, lambda key, value: self._presence.restore(number(key), number(value))
        )

    def note(self, day: int) -> None:
        """Note a round of a day in which letters went; on disk with the next commit."""
        kept = self._presence.note(day)
        changes = [Change(_KIND, _key(day), _key(kept))]
        changes += [Change(_KIND, _key(old), None) for old in self._presence.lapse(day)]
        self._store.write_soon(*changes)

    @property
    def holds(self) -> bool:
        """Whether messages of which nothing is said are held."""
        return self._hold.is_held(self._presence.is_always_there(self._today))

    def examine(self) -> list[Finding]:
        """Warn who reads with a daemon that is not always on, or not for long yet: hosts see when it is."""
        attendance = self._presence.attendance(self._today)
        if not self._reads or attendance is Attendance.ALWAYS:
            return []
        return [warning("presence", _SHOWN[attendance], _WAY_OUT)]

    @property
    def told(self) -> str | None:
        """The same in a sentence, for people."""
        return next((f"{one.found}: {one.advice}" for one in self.examine()), None)

    @property
    def _today(self) -> int:
        return self._calendar.day(self._env.now())


def _key(value: int) -> bytes:
    return value.to_bytes(8, "big")
