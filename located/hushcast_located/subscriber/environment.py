"""Time, chance and patience of a subscriber: what a program may choose, and what tests do."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from dataclasses import dataclass

from hushcast_protocol.base.crypto.secrets import Randomness, uniform
from hushcast_protocol.spatial.feed_follower import PATIENCE
from hushcast_protocol.spatial.located_requests import DAY

SPREAD = 600.0  # seconds within which a moment is drawn that is not to tell what it follows from
DAYS = 14  # that a request is for; it is renewed somewhere in the middle third of them
RETRY = 300.0  # seconds until a request is sent again that was not answered, then twice as long each time
LONGEST_RETRY = 6 * 3600.0
UNANSWERED = 60.0  # seconds after which it is told that no provider answers


def _say_nothing(_: str) -> None:
    pass


@dataclass(frozen=True)
class SubscriberEnvironment:
    """A clock in Unix seconds, randomness, whom to tell what goes on, and how long to wait for what."""

    now: Callable[[], float] = time.time
    randomness: Randomness = os.urandom
    tell: Callable[[str], None] = _say_nothing
    patience: float = PATIENCE
    spread: float = SPREAD
    retry: float = RETRY
    unanswered: float = UNANSWERED

    @property
    def day(self) -> int:
        """Today, counted from 1970."""
        return int(self.now() // DAY)

    def moment(self, first: float, last: float) -> float:
        """Draw a moment between two."""
        return uniform(self.randomness, first, last)
