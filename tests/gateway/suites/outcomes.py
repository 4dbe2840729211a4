"""What came of a test of a public suite."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Outcome:
    """One test; `failure` says what was wrong, `note` what to know all the same."""

    name: str
    failure: str | None = None
    note: str = ""
    left_out: bool = False
