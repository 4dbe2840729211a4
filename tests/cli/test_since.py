"""`--since` takes a cursor, how long ago, or a date; all else is refused in words."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import click
import pytest

from hushcast_cli.messages.since import SINCE


@pytest.mark.parametrize(("typed", "ago"), [("3d", timedelta(days=3)), ("12h", timedelta(hours=12))])
def test_how_long_ago(typed: str, ago: timedelta) -> None:
    since = SINCE.convert(typed, None, None)
    assert isinstance(since, datetime)
    assert abs(datetime.now(UTC) - ago - since) < timedelta(minutes=1)


def test_a_date_is_the_beginning_of_its_day() -> None:
    assert SINCE.convert("2026-11-25", None, None) == datetime(2026, 11, 25, tzinfo=UTC)


@pytest.mark.parametrize(("typed", "cursor"), [("0", 0), ("17", 17)])
def test_a_number_is_a_cursor(typed: str, cursor: int) -> None:
    assert SINCE.convert(typed, None, None) == cursor


@pytest.mark.parametrize("typed", ["yesterday", "3w", "2026-02-30", "-1", "3.5d", "99999999999999999999"])
def test_what_is_neither_is_refused(typed: str) -> None:
    with pytest.raises(click.BadParameter):
        SINCE.convert(typed, None, None)
