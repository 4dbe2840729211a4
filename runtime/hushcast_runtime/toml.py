"""TOML as `tomllib` reads it, but of files that somebody else wrote, too."""

from __future__ import annotations

import tomllib
from typing import Any

from hushcast_protocol.base.errors import UsageError
from hushcast_protocol.base.foreign_text import foreign

MAX_DOTS = (
    1_024  # in a line. A key lies within one; for a key of n parts `tomllib` keeps n²/2: 4 MB for these
)


def read_toml(text: str) -> dict[str, Any]:
    """Return what a file says.

    Raises `ValueError` if it is not TOML or a line of it has over `MAX_DOTS` dots, and `RecursionError` if it
    is nested too deeply.
    """
    for number, line in enumerate(text.split("\n"), 1):
        if line.count(".") > MAX_DOTS:
            raise ValueError(f"line {number} has over {MAX_DOTS:,} dots")
    return tomllib.loads(text)


def read_keys(data: bytes, where: str) -> dict[str, Any]:
    """Return what a file's bytes say; raise `UsageError` that tells its writer why they are no TOML."""
    try:
        return read_toml(data.decode())
    except ValueError as error:  # not UTF-8, not TOML, or a number of thousands of digits
        raise UsageError(f"{where} is not TOML: {foreign(data) or error}") from None
    except RecursionError:
        raise UsageError(f"{where} is not TOML that anybody would write: it is nested too deeply") from None


def keys_if_any(data: bytes) -> dict[str, Any]:
    """Return what a file's bytes say, nothing where they are no TOML: who loads it then says why."""
    try:
        return read_toml(data.decode())
    except (ValueError, RecursionError):
        return {}
