"""Of which days an owner under cover knows that nothing lacks: told ahead, and heard as they ended."""

from __future__ import annotations

import pytest

from hushcast_protocol.base.epochs import Calendar
from hushcast_protocol.cover.cover_rules import CoverRules
from hushcast_protocol.cover.heard_days import HeardDays

CALENDAR = Calendar(600)
RULES = CoverRules(b"n" * 32, 600, 600)
DAY = 1000


def end_of(day: int) -> int:
    """The round in which a day lapses."""
    return RULES.round_at(CALENDAR.lapse(day))


def heard_days() -> HeardDays:
    days = HeardDays()
    assert days.tell(DAY, is_ahead=False), "messages come from here on"
    assert days.tell(DAY + 1, is_ahead=True)
    assert not days.tell(DAY + 1, is_ahead=True)
    return days


def judged(days: HeardDays, number: int, heard: int) -> bool | None:
    return days.judge(number, heard, RULES, CALENDAR)


@pytest.mark.parametrize(
    ("heard", "lacks"),
    [(0, False), (-1, False), (-2, True), (-100, True)],
    ids=["in it", "before", "2", "100"],
)
def test_nothing_lacks_where_a_block_opened_as_the_day_lapsed(heard: int, lacks: bool) -> None:
    days, end = heard_days(), end_of(DAY)
    assert judged(days, end, end - 1) is None, "it has not lapsed"
    assert judged(days, end + 1, end + heard) is lacks
    assert judged(days, end + 2, end + heard) is None, "it is told once"
    end = end_of(DAY + 1)
    assert judged(days, end + 1, end) is False


def test_a_day_that_was_told_as_it_had_begun_lacks_what_came_before() -> None:
    days, end = heard_days(), end_of(DAY + 2)
    assert not days.tell(DAY + 2, is_ahead=False)
    assert judged(days, end + 1, end) is True
    days.tell(DAY + 3, is_ahead=True)
    assert days.forget(DAY + 3)
    assert not days.forget(DAY + 3)
    end = end_of(DAY + 3)
    assert judged(days, end + 1, end) is True, "it was to be told anew, and was not"


def test_days_of_an_absence_are_told_together_and_those_before_a_subscription_are_none() -> None:
    assert judged(HeardDays(), end_of(DAY), 0) is None
    days, end = heard_days(), end_of(DAY + 9)
    assert judged(days, end + 1, end_of(DAY)) is True
    assert days.judged == DAY + 9
    assert not days.ahead
    days.tell(DAY + 10, is_ahead=True)
    end = end_of(DAY + 10)
    assert judged(days, end + 1, end) is False
