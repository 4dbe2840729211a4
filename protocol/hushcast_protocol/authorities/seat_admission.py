"""Admission: what a relay needs for a seat beyond being reached; authorities agree on it as on themselves."""

from __future__ import annotations

from typing import Annotated

import msgspec

from hushcast_protocol.base.roster import MAX_RELAYS, MAX_SEATED
from hushcast_protocol.base.wire import Wire

MAX_WORK = 20  # bits: at 0.1 s a try, and half of a core, a name takes two and a half days in the mean


class SeatAdmission(Wire, frozen=True, tag="admission/1"):
    """The rules by which newcomers are seated."""

    newcomers: Annotated[int, msgspec.Meta(ge=0, le=MAX_RELAYS)] = 0
    """How many are seated a day at least; 0: all who come."""
    growth: Annotated[int, msgspec.Meta(ge=0, le=1000)] = 0
    """How many are seated a day, in thousandths of those seated when it began, where that is more."""
    age: bool = False
    """Whether newcomers are seated when a day begins only, those that waited in epoch 5 of the day before."""
    work: Annotated[int, msgspec.Meta(ge=0, le=MAX_WORK)] = 0
    """Bits of the work that a relay shows when it registers; 0: none."""

    def cap(self, seats: int) -> int:
        """Return how many newcomers are seated a day that began with so many seats."""
        return max(self.newcomers, self.growth * seats // 1000) if self.newcomers else MAX_SEATED


OPEN = SeatAdmission()
"""Whoever is reached has a seat."""
