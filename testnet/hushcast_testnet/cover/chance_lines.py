"""Lines as people have them: in which rounds of 600 s a daemon was there, a bit each, the first the lowest.

The mix is made up, and not from a trace: always on, by day in one time zone, a few sessions a day.
"""

from __future__ import annotations

import math
import random
from dataclasses import dataclass
from enum import Enum

_A_DAY = 144  # rounds
_HOUR = 6
_OUTAGES, _AWAY = 0.1, 0.1  # of days: with an outage of an hour where always on; without any round by day
_CHANGES = 0.01  # of users, a day, that begin or end
_CHANGE_DAYS = 60  # in which they do
_MISSED = 0.01  # of rounds


class LineKind(Enum):
    """How a daemon is there."""

    ALWAYS = "always on"
    BY_DAY = "by day"
    CASUAL = "three hours a day"


@dataclass(frozen=True, slots=True)
class PresenceMix:
    """Shares of users, by how they are there; the rest is casual."""

    always: float = 0.3
    by_day: float = 0.5

    def drawn(self, chance: random.Random) -> LineKind:
        """Draw what a user is."""
        place = chance.random()
        if place < self.always:
            return LineKind.ALWAYS
        return LineKind.BY_DAY if place < self.always + self.by_day else LineKind.CASUAL


def drawn_line(chance: random.Random, days: int, kind: LineKind, stays: bool = False) -> int:
    """Draw a user's line of some days; with `stays` it is there from the first day to the last."""
    line = _DRAWS[kind](chance, days)
    if not stays:
        changed = chance.expovariate(_CHANGES)
        if changed < _CHANGE_DAYS:  # one that leaves is followed by a newcomer, who is another user
            is_gone = chance.random() < 0.5
            until = (1 << math.floor(changed * _A_DAY)) - 1
            line &= until if is_gone else ~until
    return line & ~_missed(chance, days)


def _always(chance: random.Random, days: int) -> int:
    line = _span(0, days * _A_DAY)
    for day in range(days):
        if chance.random() < _OUTAGES:
            begin = day * _A_DAY + chance.randrange(_A_DAY - _HOUR)
            line &= ~_span(begin, begin + _HOUR)
    return line


def _by_day(chance: random.Random, days: int) -> int:
    line, begin, end = 0, chance.gauss(8 * _HOUR, 9), chance.gauss(23 * _HOUR, 9)
    for day in range(days):
        begins, ends = math.ceil(chance.gauss(begin, 5)), math.ceil(chance.gauss(end, 5))
        if chance.random() >= _AWAY:
            own = _span(max(0, begins), min(ends, _A_DAY)) | _span(0, ends - _A_DAY)
            line |= own << day * _A_DAY
    return line


def _casual(chance: random.Random, days: int) -> int:
    line = 0
    for day in range(days):
        for _ in range(3):
            begins = math.ceil(min(max(chance.gauss(16 * _HOUR, 4 * _HOUR), 0), _A_DAY - _HOUR))
            line |= _span(begins, begins + _HOUR) << day * _A_DAY
    return line


_DRAWS = {LineKind.ALWAYS: _always, LineKind.BY_DAY: _by_day, LineKind.CASUAL: _casual}


def _span(begin: int, end: int) -> int:
    return ((1 << end - begin) - 1) << begin if end > begin else 0


def _missed(chance: random.Random, days: int) -> int:
    missed, at = 0, -1
    while True:
        at += 1 + math.floor(math.log(1 - chance.random()) / math.log(1 - _MISSED))
        if at >= days * _A_DAY:
            return missed
        missed |= 1 << at
