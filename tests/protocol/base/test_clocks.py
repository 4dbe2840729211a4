"""The trusted clock: what moves it, what does not, and when what is too old may be deleted by it."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hushcast_protocol.base.epochs import Calendar
from hushcast_protocol.base.trusted_clock import (
    AHEAD,
    CERTAIN,
    FOLLOWED_AFTER,
    STEADY,
    TrustedClock,
    published,
    roster_span,
)

EPOCH = 3600
DAY = 24 * EPOCH
CALENDAR = Calendar(EPOCH)
BEGIN = 10_000.0 * DAY + 100
ANY_TIME = -math.inf, math.inf
jumps = st.floats(STEADY * EPOCH + 1, 20 * 365 * DAY) | st.floats(-9_000 * DAY, -STEADY * EPOCH - 1)


class Machine:
    """A machine with a clock that can be set, and one daemon's trusted clock."""

    def __init__(self) -> None:
        self.elapsed = 0.0
        self.wrong = 0.0
        self.clock = TrustedClock(CALENDAR, BEGIN, 0.0)

    @property
    def wall(self) -> float:
        return BEGIN + self.elapsed + self.wrong

    @property
    def error(self) -> float:
        """How wrong the time acted on is."""
        return self.clock.look(self.wall, self.elapsed) - BEGIN - self.elapsed

    def run(self, seconds: float, look_every: float = 60.0) -> float:
        """Let time pass; return the greatest error on the way."""
        end, worst = self.elapsed + seconds, 0.0
        while self.elapsed < end:
            self.elapsed = min(end, self.elapsed + look_every)
            worst = max(worst, abs(self.error))
        return worst

    def hear(self, span: tuple[float, float]) -> None:
        self.clock.witness(span, self.wall, self.elapsed)

    def roster(self) -> None:
        """Hear of the newest roster of a directory whose clock is right."""
        right = BEGIN + self.elapsed
        self.hear(roster_span(CALENDAR, CALENDAR.epoch(right + CALENDAR.lead)))

    @property
    def is_certain(self) -> bool:
        return self.clock.is_certain(self.elapsed)


@given(jumps, st.floats(0.0, FOLLOWED_AFTER * EPOCH - 1))
def test_a_jump_that_does_not_last_moves_nothing(jump: float, lasts: float) -> None:
    machine = Machine()
    machine.roster()
    machine.run(EPOCH)
    machine.wrong = jump
    assert machine.error == pytest.approx(0.0, abs=1e-3)
    assert machine.clock.jump(machine.wall, machine.elapsed) == pytest.approx(jump, abs=1e-3)
    assert machine.run(lasts) == pytest.approx(0.0, abs=1e-3)
    machine.wrong = 0.0
    assert machine.run(10 * EPOCH) == pytest.approx(0.0, abs=1e-3)
    assert machine.is_certain


@given(st.floats(2.0 * EPOCH, 20 * 365 * DAY) | st.floats(-9_000 * DAY, -2.0 * EPOCH), st.integers(1, 60))
def test_while_rosters_speak_against_it_a_jump_is_never_taken(jump: float, epochs: int) -> None:
    machine = Machine()
    machine.roster()
    machine.wrong = jump
    for _ in range(epochs):
        machine.run(EPOCH, 600)
        machine.roster()
        assert machine.error == pytest.approx(0.0, abs=1e-3)
        assert machine.is_certain
        assert not machine.clock.disputed


@given(jumps)
def test_a_jump_that_stays_and_that_nobody_speaks_against_is_taken_and_deletes_nothing_for_a_day(
    jump: float,
) -> None:
    machine = Machine()
    machine.roster()
    machine.wrong = jump
    machine.run(FOLLOWED_AFTER * EPOCH + 120)
    assert machine.error == pytest.approx(jump, abs=1e-3)
    assert not machine.is_certain
    machine.run((CERTAIN - 1) * EPOCH, 600)
    assert not machine.is_certain
    machine.run(EPOCH, 600)
    assert machine.is_certain


@given(jumps)
def test_a_clock_set_right_is_followed_at_once_where_nobody_vouched_for_the_time_before(jump: float) -> None:
    machine = Machine()
    machine.clock = TrustedClock(CALENDAR, BEGIN + jump, 0.0)
    machine.wrong = jump
    machine.run(10 * EPOCH)
    assert machine.error == pytest.approx(jump, abs=1e-3)
    assert not machine.is_certain
    machine.wrong = 0.0
    assert machine.error == 0.0
    assert not machine.is_certain
    machine.roster()
    assert machine.error == 0.0
    assert machine.is_certain


@given(st.floats(2.0 * EPOCH, 20 * 365 * DAY) | st.floats(-9_000 * DAY, -2.0 * EPOCH))
def test_a_time_that_rosters_dispute_never_deletes(jump: float) -> None:
    machine = Machine()
    machine.clock = TrustedClock(CALENDAR, BEGIN + jump, 0.0)
    machine.wrong = jump
    for _ in range(60):
        machine.roster()
        assert machine.clock.disputed
        machine.run(EPOCH, 600)
        assert not machine.is_certain


def test_a_machine_that_slept_is_right_at_once() -> None:
    """The elapsed time counts on while it sleeps, as the clock does."""
    machine = Machine()
    machine.roster()
    machine.elapsed += 9 * EPOCH
    assert machine.error == 0.0
    assert machine.is_certain


def test_where_sleep_is_not_counted_a_roster_settles_it() -> None:
    machine = Machine()
    machine.roster()
    machine.wrong = 30.0 * EPOCH
    epoch = CALENDAR.epoch(machine.wall + CALENDAR.lead)
    machine.hear(roster_span(CALENDAR, epoch))
    assert machine.error == pytest.approx(30.0 * EPOCH, abs=1e-3)
    assert machine.is_certain


@given(st.lists(st.floats(-STEADY * EPOCH, STEADY * EPOCH), max_size=40))
def test_many_small_steps_move_it_no_faster_than_one_a_while(steps: list[float]) -> None:
    machine = Machine()
    machine.roster()
    for number, step in enumerate(steps, 1):
        machine.wrong += step
        machine.run(60)
        settlings = 1 + number * 60 / (FOLLOWED_AFTER * EPOCH)
        assert abs(machine.error) <= (1 + settlings) * STEADY * EPOCH


def test_small_corrections_are_followed() -> None:
    machine = Machine()
    machine.roster()
    for _ in range(20):
        machine.wrong += STEADY * EPOCH * 0.9
        assert machine.error == pytest.approx(machine.wrong, abs=1e-3)
        machine.run(FOLLOWED_AFTER * EPOCH + 120)
    assert machine.is_certain


def test_a_witness_who_knows_it_less_well_moves_nothing_between_two_times_that_it_finds_possible() -> None:
    machine = Machine()
    machine.roster()
    machine.wrong = 1.5 * EPOCH
    machine.hear((BEGIN - 2 * EPOCH, BEGIN + 2 * EPOCH))
    assert machine.error == 0.0
    assert not machine.clock.disputed
    machine.hear((BEGIN + EPOCH, BEGIN + 2 * EPOCH))
    assert machine.error == pytest.approx(1.5 * EPOCH)


def test_a_beginning_with_which_nothing_can_be_compared_is_certain() -> None:
    machine = Machine()
    assert not machine.is_certain
    machine.hear(ANY_TIME)
    assert machine.is_certain


@given(st.integers(1, 10**6), st.floats(0.0, 1.0))
def test_a_roster_spans_its_time_as_the_newest(epoch: int, part: float) -> None:
    low, high = roster_span(CALENDAR, epoch)
    assert low <= published(CALENDAR, epoch) + part * EPOCH <= high
    assert high - low == (1 + 2 * STEADY) * EPOCH <= FOLLOWED_AFTER * EPOCH
    assert CALENDAR.grace == AHEAD * EPOCH
