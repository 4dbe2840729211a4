"""Guesses: how often who waits is right about whose mailbox was late, and by how much that was later."""

from __future__ import annotations

import math
from statistics import median
from typing import Any, NamedTuple

CERTAIN = 2.58  # standard deviations of an interval of 99 %: six cells of a soak rarely fail by chance


class Trial(NamedTuple):
    """Whose mailbox was to be found, and by how many seconds each was later than in peace."""

    target: str
    late: dict[str, float]

    @property
    def is_right(self) -> bool:
        """Whether the latest one is guessed rightly."""
        return max(self.late, key=self.late.__getitem__) == self.target

    @property
    def delay(self) -> float:
        """By how many seconds the target was later than the others."""
        return self.late[self.target] - median(
            late for name, late in self.late.items() if name != self.target
        )


def interval(right: int, trials: int) -> tuple[float, float]:
    """Return where the accuracy behind so many right guesses lies, at 99 % (Wilson)."""
    share, square = right / trials, CERTAIN**2
    middle = (share + square / (2 * trials)) / (1 + square / trials)
    width = CERTAIN * math.sqrt(share * (1 - share) / trials + square / (4 * trials**2))
    width /= 1 + square / trials
    return round(middle - width, 3), round(middle + width, 3)


def told(trials: list[Trial], among: int) -> dict[str, Any]:
    """Return what so many trials came to, each among so many mailboxes; there is one at least.

    `ok` tells whether the guesses are no better than chance within their interval. That of the median delay
    is between two of the delays by their rank: over Tor some answers take seconds, and a mean tells these.
    """
    right = sum(trial.is_right for trial in trials)
    low, high = interval(right, len(trials))
    chance = round(1 / among, 3)
    delays = sorted(round(1000 * trial.delay, 1) for trial in trials)
    out = max(0, int((len(delays) - CERTAIN * math.sqrt(len(delays))) / 2))
    return {
        "ok": low <= chance,
        "right": right,
        "trials": len(trials),
        "99 %": [low, high],
        "chance": chance,
        "median delay, ms": median(delays),
        "99 % of it": [delays[out], delays[-1 - out]],
    }
