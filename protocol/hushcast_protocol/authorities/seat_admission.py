"""Admission: what a relay needs for a seat beyond being reached; authorities agree on it as on themselves."""

from __future__ import annotations

from dataclasses import dataclass

from hushcast_protocol.base.roster import MAX_SEATED

MAX_WORK = 20  # bits: at 0.1 s a try, and half of a core, a name takes two and a half days in the mean


@dataclass(frozen=True, slots=True)
class SeatAdmission:
    """The rules by which newcomers are seated (`network_rules.py` has how they are told)."""

    newcomers: int = 0
    """How many are seated a day at least, up to `MAX_RELAYS`; 0: all who come."""
    growth: int = 0
    """How many are seated a day, in thousandths of those seated when it began, where that is more."""
    age: bool = False
    """Whether newcomers are seated when a day begins only, those that waited in epoch 5 of the day before."""
    work: int = 0
    """Bits of the work that a relay shows when it registers, up to `MAX_WORK`; 0: none."""

    def cap(self, seats: int) -> int:
        """Return how many newcomers are seated a day that began with so many seats."""
        return max(self.newcomers, self.growth * seats // 1000) if self.newcomers else MAX_SEATED


OPEN = SeatAdmission()
"""Whoever is reached has a seat."""
