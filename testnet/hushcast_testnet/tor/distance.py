"""The distance between the tors of a private network: how long each connection takes, one way and back."""

from __future__ import annotations

import math
import random
from typing import NamedTuple

import msgspec

from hushcast_protocol.base.errors import UsageError

MAX_DISTANCE = 500  # milliseconds
SPREAD = 0.5  # of the logarithm: two draws of three are within 0.54 and 1.45 times the mean


class ConnectionDelay(NamedTuple):
    """Seconds that whatever travels on one connection takes: from who opened it, and to it."""

    there: float
    back: float

    @property
    def round_trip(self) -> float:
        """Both ways, in seconds."""
        return self.there + self.back


class Distance(msgspec.Struct, frozen=True):
    """How far the tors of a network are from each other; 0 puts nothing between them."""

    ms: int = 0
    """The mean of one way, 0 to 500 milliseconds: what many connections in a row add up to."""
    seed: int = 1
    """The same, the same draws."""

    def __post_init__(self) -> None:
        if not 0 <= self.ms <= MAX_DISTANCE:
            raise UsageError(
                f"a distance of {self.ms} ms: give 0 to {MAX_DISTANCE} milliseconds, one way, as 40"
            )

    def draw(self, door: str, number: int) -> ConnectionDelay:
        """Return the delay of the connection that is the `number`th, from 0, at the door of this name.

        Each way is log-normal and drawn by itself. A connection keeps what it drew, so nothing overtakes. The
        draws of a door do not depend on who comes to the others meanwhile.
        """
        chance = random.Random(f"{self.seed} {door} {number}")  # noqa: S311 - a network path, no secret
        scale = self.ms / 1000 * math.exp(-(SPREAD**2) / 2)
        there, back = (scale * math.exp(chance.gauss(0, SPREAD)) for _ in range(2))
        return ConnectionDelay(there, back)


NEAR = Distance()
"""Nothing between the tors."""
