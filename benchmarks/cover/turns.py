"""Turns of one daemon: rounds in which it does one thing, in an order that is drawn anew for each series.

Rounds are compared within a series of one daemon, and with nothing else, as ways through Tor differ. All
daemons share a machine that drifts: so of two daemons one has each series in the other's order, backwards.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

SETTLED = 2  # rounds at a turn's begin that do not count: letters are sealed ahead, blocks are on their way
COUNTED = 5  # rounds of a turn that count
TURN = SETTLED + COUNTED  # rounds
LEAD = 2  # rounds from a message for a reader to the round that brings it, about, less what is settled
AHEAD = 2  # series in which nobody reads that one may be ahead, while its relays are told


class Doing(StrEnum):
    """What a daemon does for a turn."""

    IDLE = "idle"
    PUBLISHING = "publishing"
    SUBSCRIBING = "subscribing"
    READING = "reading"


ASKING = (Doing.IDLE, Doing.PUBLISHING, Doing.SUBSCRIBING)
"""A series of one whose own subscription is not told to all relays yet, or that has read as often."""
HEARING = (Doing.IDLE, Doing.READING)
"""A series of one that was told."""


@dataclass(frozen=True)
class Turn:
    """One turn of a daemon."""

    series: int
    """The n-th series of the daemon, from 0."""
    doing: Doing
    first: int
    """Its first round."""

    @property
    def end(self) -> int:
        """The round with which the next turn begins."""
        return self.first + TURN

    @property
    def counted(self) -> range:
        """The rounds that count."""
        return range(self.first + SETTLED, self.end)


class Turns:
    """Draws the turns of one daemon."""

    def __init__(self, chance: random.Random, is_backwards: bool) -> None:
        """Two daemons have the same `chance`, and one of them has its series backwards."""
        self._chance = chance
        self._is_backwards = is_backwards
        self._heard = 0  # series of each kind
        self._asked = 0

    def series(self, first: int, until: int, may_hear: bool) -> Sequence[Turn]:
        """Return the turns of the next series, from a round on.

        There are none if the daemon has to wait until it `may_hear`, or they would end behind `until`.
        """
        ahead = self._asked - self._heard
        kind: Sequence[Doing] = ASKING
        if may_hear and (ahead > 0 or first + len(ASKING) * TURN > until):
            kind = HEARING
        begin = first + (LEAD if kind is HEARING else 0)
        if (kind is ASKING and ahead >= AHEAD) or begin + len(kind) * TURN > until:
            return ()
        number = self._heard + self._asked
        self._heard += kind is HEARING
        self._asked += kind is ASKING
        drawn = self._chance.sample(kind, len(kind))
        order = drawn[::-1] if self._is_backwards else drawn
        return [Turn(number, doing, begin + place * TURN) for place, doing in enumerate(order)]
