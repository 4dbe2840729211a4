"""Epochs and days: stretches of Unix time that rosters, trail labels, tokens and leases belong to."""

from __future__ import annotations

from dataclasses import dataclass

EPOCHS_A_DAY = 24
MIN_EPOCH, MAX_EPOCH = 5, 24 * 3600  # seconds: below, a roster cannot be spread; above, a lease lasts weeks
SETTLED = 0.65  # share of an epoch gone from which on subscriptions act on its roster, late as it may be
MENDING = 0.7, 0.9  # shares of an epoch between which they do: newcomers have a seat when they become origins


@dataclass(frozen=True, slots=True)
class Calendar:
    """Turns Unix time into epochs and days of `epoch_seconds` and 24 epochs."""

    epoch_seconds: int

    @property
    def day_seconds(self) -> int:
        """Length of a day."""
        return self.epoch_seconds * EPOCHS_A_DAY

    @property
    def grace(self) -> float:
        """Seconds before its start and after its end in which a day is open, for clocks and stragglers."""
        return self.epoch_seconds / 2

    @property
    def lead(self) -> float:
        """Seconds before an epoch at which its roster is published."""
        return self.epoch_seconds / 6

    def epoch(self, now: float) -> int:
        """Return the epoch of a moment."""
        return int(now // self.epoch_seconds)

    def epoch_start(self, epoch: int) -> float:
        """Return the first moment of an epoch."""
        return float(epoch * self.epoch_seconds)

    def settled(self, now: float) -> int:
        """Return the epoch whose roster subscriptions act on at a moment; it began long enough ago.

        Whoever got that roster late, by less than this, acts no later than the others.
        """
        return self.epoch(now - SETTLED * self.epoch_seconds)

    def next_mending(self, now: float, chance: float) -> float:
        """Return when a subscription mends its trees next; `chance` in [0, 1) draws the moment.

        It is in this epoch where its time has not begun yet, else in the next.
        """
        first, last = MENDING
        epoch = self.epoch(now - first * self.epoch_seconds) + 1
        return self.epoch_start(epoch) + (first + (last - first) * chance) * self.epoch_seconds

    def day(self, now: float) -> int:
        """Return the day of a moment."""
        return int(now // self.day_seconds)

    def day_start(self, day: int) -> float:
        """Return the first moment of a day."""
        return float(day * self.day_seconds)

    def lapse(self, day: int) -> float:
        """Return the moment at which what belongs to a day is forgotten."""
        return self.day_start(day + 1) + self.grace

    def next_middle(self, now: float) -> float:
        """Return the next middle of an epoch, when days may lapse."""
        return self.epoch_start(self.epoch(now + self.grace) + 1) - self.grace

    def open_days(self, now: float) -> range:
        """Return the days whose messages are taken at a moment: one, or two around a change of day."""
        return range(self.day(now - self.grace), self.day(now + self.grace) + 1)

    def installable_days(self, now: float) -> range:
        """Return the days for which leases are taken at a moment: the open ones and the next."""
        return range(self.day(now - self.grace), self.day(now) + 2)
