"""Presence of one daemon on disk: in how many rounds of a day it was there, and whether it holds messages."""

from __future__ import annotations

from hushcast_protocol.base.epochs import Calendar
from hushcast_protocol.base.record_kinds import RecordKind, StateOwner
from hushcast_protocol.cover.cover_presence import PRESENCE_DAYS, CoverPresence
from hushcast_protocol.cover.cover_rules import CoverRules
from hushcast_protocol.cover.hold_rule import HoldRule
from hushcast_runtime.context import Context
from hushcast_runtime.storage.recovery import number, restore
from hushcast_runtime.storage.store import Change

_KIND = RecordKind(
    "cover-presence",
    StateOwner.OVERLAY_DAEMON,
    holds="in how many rounds of a day a daemon under cover was there",
    lifetime=f"{PRESENCE_DAYS} days",
    bound=f"{PRESENCE_DAYS + 1} days",
)


class PresenceRecords:
    """What one daemon knows of its presence."""

    def __init__(self, rules: CoverRules, hold: HoldRule, calendar: Calendar, context: Context) -> None:
        self._hold = hold
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
        today = self._calendar.day(self._env.now())
        return self._hold.is_held(self._presence.is_always_there(today))


def _key(value: int) -> bytes:
    return value.to_bytes(8, "big")
