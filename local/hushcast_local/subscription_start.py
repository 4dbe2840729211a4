"""The beginning of a subscription: when somebody subscribed, and how much of what was before is wanted."""

from __future__ import annotations

from dataclasses import dataclass

from hushcast_protocol.base.epochs import Calendar


@dataclass
class SubscriptionStart:
    """When a subscription began, and since when its messages are wanted."""

    at: float
    """Unix seconds."""
    calendar: Calendar
    since: int | None = None
    """The first day of which all is wanted; `None` where nothing is of before it began."""

    @property
    def day(self) -> int:
        """The day on which it began."""
        return self.calendar.day(self.at)

    def is_since(self, day: int) -> bool:
        """Tell whether all of a day, and of those after it, is wanted or came anyway."""
        return day > self.day or (self.since is not None and self.since <= day)

    def may_be_past(self, day: int) -> bool:
        """Tell whether what is of a day may have been published before, and come because that is wanted."""
        return self.since is not None and day <= self.day

    def past_day(self, day: int) -> float | None:
        """Return when a day began (Unix seconds) if it is one before this; else `None`."""
        return self.calendar.day_start(day) if day < self.day else None
