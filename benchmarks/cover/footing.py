"""Whether a run had its footing: what a machine or network that is too busy adds is no measure of lines."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field

import trio

MISSED = 0.05  # share of daemons' rounds that may be missed
LACKING = 0.1  # share of what was published for readers that may not have come
LATE = 0.02  # seconds: with a watcher that is later in one of twenty looks, 30 ms are not seen
_LOOK_EVERY = 0.05  # seconds


@dataclass
class Footing:
    """What is counted meanwhile."""

    rounds: int = 0
    missed: int = 0
    """Of these, those in which a daemon handed no letters in."""
    published: int = 0
    """Messages for readers, long enough ago."""
    heard: int = 0
    lateness: list[float] = field(default_factory=list)
    """Of each look of the watcher, how many seconds it was late."""

    async def watch(self) -> None:
        """Look how late this process wakes, until cancelled."""
        while True:
            due = time.monotonic() + _LOOK_EVERY
            await trio.sleep(_LOOK_EVERY)
            self.lateness.append(time.monotonic() - due)

    @property
    def late(self) -> float:
        """The seconds by which one look of twenty is late, or more."""
        return sorted(self.lateness)[int(0.95 * len(self.lateness))] if self.lateness else 0.0

    def lost_by(self) -> Sequence[str]:
        """Return by what footing was lost, for people; nothing: it was kept."""
        found = []
        if self.missed > MISSED * self.rounds:
            found.append(f"{self.missed} of {self.rounds} rounds were missed")
        if self.published - self.heard > LACKING * self.published:
            found.append(f"of {self.published} messages for readers {self.heard} came")
        if self.late > LATE:
            found.append(f"one look of twenty was {self.late * 1e3:.0f} ms late or more")
        return found
