"""Contact: whether relays answered this daemon when it last asked some, anonymously and at random."""

from __future__ import annotations

import math

from hushcast_runtime.environment import Environment

LOST_AFTER = 6  # attempts in a row: all that two drops make, at relays drawn at random


class Contact:
    """What became of a daemon's last attempts."""

    def __init__(self, env: Environment) -> None:
        self._env = env
        self._worked_at: float | None = None
        self.failed = 0
        """Attempts that failed since one worked."""

    @property
    def is_lost(self) -> bool:
        """Whether so many failed in a row that the network, or this daemon's way to it, is gone."""
        return self.failed >= LOST_AFTER

    @property
    def age(self) -> float:
        """Seconds since an attempt worked; infinite where none did."""
        return math.inf if self._worked_at is None else self._env.elapsed() - self._worked_at

    def note(self, worked: bool) -> None:
        """Note how an attempt went."""
        if worked:
            self._worked_at, self.failed = self._env.elapsed(), 0
        else:
            self.failed += 1
