"""A directory gives old rosters, and so vouches for a wrong time, to hold a daemon in it or to move one."""

from __future__ import annotations

import math
import random

import pytest

from hushcast_protocol.base.epochs import Calendar
from hushcast_protocol.base.trusted_clock import Span, TrustedClock, roster_span

HOUR = 3600.0
CALENDAR = Calendar(int(HOUR))
DAYS = 2
HELD_FOR = 3.0  # hours: as long as a consensus of Tor holds


class Tor:
    """Its consensus, as a client has it: fetched between an hour and almost three after it was made."""

    def __init__(self, chance: random.Random) -> None:
        self._chance = chance
        self._next = -math.inf
        self.span: Span = 0.0, 0.0

    def at(self, now: float) -> Span:
        if now >= self._next:
            made = now // HOUR * HOUR
            self.span = made, made + 3 * HOUR
            self._next = made + HOUR + self._chance.uniform(0, 1.75) * HOUR
        return self.span


def for_time(moment: float) -> Span:
    """The roster that finds a moment possible and ends first: the newest that the directory gives."""
    spans = (roster_span(CALENDAR, CALENDAR.epoch(moment) + ahead) for ahead in range(-1, 3))
    return min(span for span in spans if span[0] <= moment <= span[1])


@pytest.mark.parametrize("paused", [0.0, 0.5, 1.0, 2.0, 6.0, 24.0, -1.0, -3.0])
async def test_it_neither_moves_a_clock_nor_holds_one_for_long(paused: float) -> None:
    """A machine stood still for `paused` hours, then its clock was set right; below 0: it was ahead."""
    for seed in range(4):
        chance = random.Random(seed)
        begin = 2.4e9 + chance.random() * HOUR
        tor = Tor(chance)
        clock = TrustedClock(CALENDAR, begin, 0.0)
        wrong_until = 0.0
        for elapsed in range(0, int(DAYS * 24 * HOUR), 60):
            wall = begin + elapsed + (paused * HOUR if elapsed >= 10 * HOUR else 0.0)
            clock.witness(tor.at(wall), wall, elapsed)
            clock.witness(for_time(clock.look(wall, elapsed)), wall, elapsed)
            if abs(clock.look(wall, elapsed) - wall) > 1:
                wrong_until = elapsed
        assert wrong_until <= (10 + HELD_FOR) * HOUR
        if not paused:
            assert wrong_until == 0.0


async def test_old_rosters_move_no_clock_that_is_right() -> None:
    clock = TrustedClock(CALENDAR, 2.4e9, 0.0)
    chance = random.Random(1)
    for elapsed in range(0, int(DAYS * 24 * HOUR), 60):
        wall = 2.4e9 + elapsed
        clock.witness(roster_span(CALENDAR, CALENDAR.epoch(wall) - chance.randrange(-3, 48)), wall, elapsed)
        assert clock.look(wall, elapsed) == wall
