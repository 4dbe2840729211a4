"""The schedule of an epoch of length L that starts at s: when ballots are cast, signed, counted, published.

s − L/2       exchange of the newest heads and of descriptors
s − L/3       ballots are cast, and round 1 begins; a round takes L / 6(R + 1), R = n − q + 1
after R       ballots are counted, and heads assented to
s − L/6       published, as a single directory's roster
"""

from __future__ import annotations

from dataclasses import dataclass

from hushcast_protocol.authorities.authority_set import Authorities
from hushcast_protocol.base.epochs import Calendar


@dataclass(frozen=True)
class Schedule:
    """The moments of one epoch, Unix seconds."""

    gathered: float
    cast: float
    round: float
    """Length of a round in seconds: what honest ones send arrives within it, as their clocks go."""
    counted: float
    published: float

    def number(self, now: float) -> int:
        """Return the round of a moment: 1 for what is early, over `Authorities.rounds` after the last."""
        return max(1, int((now - self.cast) // self.round) + 1)


def schedule(calendar: Calendar, epoch: int, authorities: Authorities) -> Schedule:
    """Return when what is due for an epoch."""
    start, length = calendar.epoch_start(epoch), calendar.epoch_seconds
    cast, rounds = start - length / 3, authorities.rounds
    each = length / (6 * (rounds + 1))
    return Schedule(start - length / 2, cast, each, cast + rounds * each, start - calendar.lead)


def next_epoch(calendar: Calendar, now: float) -> int:
    """Return the first epoch whose exchange has not begun: who starts in the middle of one sits it out."""
    return calendar.epoch(now + calendar.epoch_seconds / 2) + 1
