"""A small model of admission, written apart: each relay is followed by itself, hour by hour.

It knows nothing of listings. A relay has come, waits or sits; every hour those who may sit are let in one by
one until the day has no place left: first those whose names are old enough for the lot, who are drawn, then
the others as they came.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

_Rank = tuple[int, int, bytes]

DAY = 24  # hours
NAMED_BEFORE = 6  # hours of a day after which a name comes too late for the next one


@dataclass
class Person:
    """A relay as a person in front of a door."""

    sits_since: int | None = None
    waits_since: int | None = None


@dataclass
class Door:
    """Who comes in, hour by hour."""

    least: int
    thousandths: int
    aged: bool
    benches: int
    """How many may wait."""
    seats: int
    people: dict[int, Person] = field(default_factory=dict)
    opened: bool = False
    last_hour: int = -1

    def hour(
        self, now: int, here: set[int], draw: Callable[[int], bytes] | None, blind: Callable[[int], bytes]
    ) -> None:
        """One hour passes; `draw` ranks people by the day's lot, `blind` those who came in one hour."""
        self.people = {who: person for who, person in self.people.items() if who in here}
        for who in here:
            person = self.people.setdefault(who, Person())
            if person.sits_since is None and person.waits_since is None:
                person.waits_since = now

        def rank(who: int) -> tuple[int, int, bytes]:
            came = self.people[who].waits_since
            assert came is not None
            if draw is not None and came < now // DAY * DAY - DAY + NAMED_BEFORE:
                return 0, 0, draw(who)
            return 1, came, blind(who)

        while (who := self._next(now, rank, draw is not None)) is not None:
            self.people[who] = Person(sits_since=now)
        self._send_home(rank)
        self.opened, self.last_hour = True, now

    def sitting(self) -> dict[int, int]:
        return {who: one.sits_since for who, one in self.people.items() if one.sits_since is not None}

    def waiting(self) -> dict[int, int]:
        return {who: one.waits_since for who, one in self.people.items() if one.waits_since is not None}

    def _next(self, now: int, rank: Callable[[int], _Rank], lot: bool) -> int | None:
        sitting, midnight = self.sitting(), now // DAY * DAY
        if len(sitting) == self.seats:
            return None
        if self.opened and self.least:
            residents = len([since for since in sitting.values() if since < midnight])
            quota = max(self.least, residents * self.thousandths // 1000)
            if len(sitting) - residents >= quota:
                return None
        may = self.waiting()
        if self.opened and self.aged:
            if not lot or self.last_hour >= midnight:
                return None
            may = {who: since for who, since in may.items() if since < midnight - DAY + NAMED_BEFORE}
        return min(may, key=rank, default=None)

    def _send_home(self, rank: Callable[[int], _Rank]) -> None:
        for who in sorted(self.waiting(), key=rank)[self.benches :]:
            del self.people[who]
