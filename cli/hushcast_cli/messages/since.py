"""Since when: where a command that listens begins, a cursor or a time."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from typing import Any

import click

from hushcast_cli.options import CURSOR

_AGO = re.compile(r"(\d{1,4})([dh])")
_DATE = re.compile(r"\d{4}-\d\d-\d\d")


class Since(click.ParamType[int | datetime]):
    """A cursor, or a time: how long ago in days or hours, or a date, whose day begins at 00:00 UTC."""

    name = "cursor|time"

    def convert(
        self, value: Any, param: click.Parameter | None, context: click.Context | None
    ) -> int | datetime:
        """Return what is meant; fail in words of whoever typed it."""
        if isinstance(value, datetime | int):
            return value
        if (ago := _AGO.fullmatch(value)) is not None:
            return datetime.now(UTC) - timedelta(hours=int(ago[1]) * (24 if ago[2] == "d" else 1))
        if _DATE.fullmatch(value):
            try:
                return datetime.fromisoformat(value).replace(tzinfo=UTC)
            except ValueError:
                self.fail(f"{value} is no date", param, context)
        if not value.isdecimal():
            looks = "neither a cursor like 17, nor a time like 3d or 12h, nor a date like 2026-11-25"
            self.fail(f"{value!r} is {looks}", param, context)
        return CURSOR.convert(value, param, context)


SINCE = Since()
