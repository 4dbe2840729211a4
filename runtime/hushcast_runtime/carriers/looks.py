"""Looking: how a publisher finds out whether what it published is there, where somebody keeps it."""

from __future__ import annotations

from typing import NamedTuple

EARLIEST, LATEST = 300.0, 1200.0  # seconds from a drop to the look: keepers have it by then


class Looked(NamedTuple):
    """What those who were asked say of a message."""

    answered: int
    """How many did."""
    shown: int
    """How many of them show it."""

    @property
    def is_there(self) -> bool:
        """Whether it is shown by all who answered: one may say so and have lost it, as its origins may."""
        return 0 < self.answered == self.shown
