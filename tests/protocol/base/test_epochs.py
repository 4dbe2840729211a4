"""Epochs and days: what is open when, and that what is forgotten cannot come back."""

import pytest
from core_examples import properties
from hypothesis import given
from hypothesis import strategies as st

from hushcast_protocol.base.epochs import EPOCHS_A_DAY, MAX_EPOCH, MIN_EPOCH, Calendar

calendars = st.integers(MIN_EPOCH, MAX_EPOCH).map(Calendar)
moments = st.floats(0, 2**33, allow_nan=False)


@properties(200)
@given(calendars, moments)
def test_moments_lie_in_their_epoch_and_day(calendar, now):
    epoch, day = calendar.epoch(now), calendar.day(now)
    assert calendar.epoch_start(epoch) <= now < calendar.epoch_start(epoch + 1)
    assert calendar.day_start(day) <= now < calendar.day_start(day + 1)
    assert epoch // EPOCHS_A_DAY == day
    assert calendar.epoch_start(day * EPOCHS_A_DAY) == calendar.day_start(day)


@properties(200)
@given(calendars, moments)
def test_open_days_are_today_and_at_most_a_neighbour(calendar, now):
    days = calendar.open_days(now)
    assert calendar.day(now) in days
    assert 1 <= len(days) <= 2
    assert set(days) <= set(calendar.installable_days(now)) | {calendar.day(now) + 1}


@properties(200)
@given(calendars, moments)
def test_leases_are_taken_for_today_and_tomorrow(calendar, now):
    days = calendar.installable_days(now)
    assert calendar.day(now) in days
    assert calendar.day(now) + 1 in days
    assert calendar.day(now) + 2 not in days
    assert len(days) <= 3


@properties(200)
@given(calendars, moments)
def test_what_lapsed_is_neither_open_nor_installable(calendar, now):
    """Otherwise a withdrawn lease could come back once its tombstone is forgotten."""
    for day in range(calendar.day(now) - 2, calendar.day(now) + 3):
        if calendar.lapse(day) <= now:
            assert day not in calendar.open_days(now)
            assert day not in calendar.installable_days(now)


@pytest.mark.parametrize("seconds", [20, 60, 3600])
def test_days_change_with_a_grace_on_both_sides(seconds):
    calendar = Calendar(seconds)
    midnight = calendar.day_start(7)
    assert list(calendar.open_days(midnight - calendar.grace - 1)) == [6]
    assert list(calendar.open_days(midnight - calendar.grace)) == [6, 7]
    assert list(calendar.open_days(midnight + calendar.grace - 1)) == [6, 7]
    assert list(calendar.open_days(midnight + calendar.grace)) == [7]
    assert calendar.lapse(6) == midnight + calendar.grace
    assert calendar.lead == seconds / 6
    assert calendar.day_seconds == 24 * seconds


@properties(200)
@given(calendars, st.integers(0, 10**6))
def test_days_lapse_in_the_middle_of_an_epoch(calendar, day):
    lapse = calendar.lapse(day)
    assert calendar.next_middle(lapse - 0.25) == lapse
    assert calendar.next_middle(lapse) == lapse + calendar.epoch_seconds
