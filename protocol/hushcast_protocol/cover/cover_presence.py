"""Presence: in how many rounds of the last days a daemon was there, which decides whether it holds messages.

Who is there names authors faster than relays do: only a daemon that is always on publishes safely at once.
"""

from __future__ import annotations

from enum import Enum

from hushcast_protocol.cover.cover_rules import CoverRules

PRESENCE_DAYS = 14  # days of 24 epochs that are looked back at, the running one left out
THERE_IN = 0.98  # share of their rounds from which on a daemon counts as always there


class Attendance(Enum):
    """How a daemon was there in the rounds of the last days."""

    ALWAYS = "always"
    """In nearly all of them."""
    NOT_YET_ALWAYS = "not yet always"
    """In nearly all since it began, which is not so many days ago."""
    AT_TIMES = "at times"


class CoverPresence:
    """The rounds of one daemon, by day."""

    def __init__(self, rules: CoverRules) -> None:
        self._rules = rules
        self._kept: dict[int, int] = {}

    def restore(self, day: int, rounds: int) -> None:
        """Take up what was noted before a restart."""
        self._kept[day] = rounds

    def note(self, day: int) -> int:
        """Note a round of a day in which letters went; return how many of that day did."""
        self._kept[day] = self._kept.get(day, 0) + 1
        return self._kept[day]

    def lapse(self, day: int) -> list[int]:
        """Forget and return the days that are too old on this one."""
        old = [one for one in self._kept if one < day - PRESENCE_DAYS]
        for one in old:
            del self._kept[one]
        return old

    def is_always_there(self, day: int) -> bool:
        """Tell whether the daemon was there in nearly all rounds of the days before this one."""
        return self._missed(range(day - PRESENCE_DAYS, day)) <= self._may_miss

    def attendance(self, day: int) -> Attendance:
        """Tell how the daemon was there in the days before this one, without that on which it began."""
        if self.is_always_there(day):
            return Attendance.ALWAYS
        began = min((one for one in self._kept if one >= day - PRESENCE_DAYS), default=day)
        is_away = self._missed(range(began + 1, day)) > self._may_miss
        return Attendance.AT_TIMES if is_away else Attendance.NOT_YET_ALWAYS

    @property
    def _may_miss(self) -> float:
        return (1 - THERE_IN) * PRESENCE_DAYS * self._rules.rounds_in(1)

    def _missed(self, days: range) -> int:
        return sum(self._rules.rounds_in(1) - self._kept.get(one, 0) for one in days)
