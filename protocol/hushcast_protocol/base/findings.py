"""What a doctor found of one thing that a daemon needs, and what to do about it."""

from __future__ import annotations

from typing import Literal

import msgspec


class Finding(msgspec.Struct, frozen=True):
    """What was found of one thing that a daemon needs, and what to do about it."""

    check: str
    verdict: Literal["good", "warning", "bad"]
    found: str
    advice: str = ""


def good(check: str, found: str) -> Finding:
    """Return that a thing is as it should be."""
    return Finding(check, "good", found)


def warning(check: str, found: str, advice: str) -> Finding:
    """Return that a thing may come to need somebody."""
    return Finding(check, "warning", found, advice)


def bad(check: str, found: str, advice: str) -> Finding:
    """Return that a thing keeps the daemon from working."""
    return Finding(check, "bad", found, advice)
