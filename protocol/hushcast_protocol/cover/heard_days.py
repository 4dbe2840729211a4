"""Heard days: of which days messages may lack that a subscription under cover wants, as its owner can tell.

Relays are told of each day's tree by letters; what comes on a day before they were is lost. What comes while
the host is away waits for it at relays, and lapses with its day. Whether a host was there when a day lapsed
its owner sees by blocks: those that its second or porter made up open for nobody.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from hushcast_protocol.base.epochs import Calendar
from hushcast_protocol.cover.cover_rules import CoverRules


@dataclass
class HeardDays:
    """The days of one subscription."""

    first: int = -1
    """The first day whose tree was told; -1: none was yet. From then on messages come."""
    judged: int = -1
    """The last day of which it was told whether any may lack."""
    ahead: set[int] = field(default_factory=set)
    """Days after it whose tree was told before they began."""

    def tell(self, day: int, is_ahead: bool) -> bool:
        """Take notice that a day's tree is told; return whether that is news."""
        if self.first < 0:
            self.first, self.judged = day, day - 1
            return True
        if not is_ahead or day in self.ahead:
            return False
        self.ahead.add(day)
        return True

    def forget(self, day: int) -> bool:
        """Take notice that a day's tree is to be told anew, for another box; return whether it was told."""
        was_told = day in self.ahead
        self.ahead.discard(day)
        return was_told

    def judge(self, number: int, heard: int, rules: CoverRules, calendar: Calendar) -> bool | None:
        """Return whether messages may lack of days that are over; `None` where none is over that was not.

        `number` is the round whose blocks come now, `heard` the last one before it whose block opened.
        """
        lacks = None
        while self.first >= 0 and (end := rules.round_at(calendar.lapse(self.judged + 1))) < number:
            self.judged += 1
            is_told = self.judged == self.first or self.judged in self.ahead
            # One block of two: a block is lost by itself now and then, and says nothing of its host.
            lacks = bool(lacks) or not is_told or heard < end - 1
        self.ahead = {day for day in self.ahead if day > self.judged}
        return lacks
