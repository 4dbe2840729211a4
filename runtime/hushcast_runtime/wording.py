"""Words for people: numbers with their nouns, and lists; pure."""

from __future__ import annotations

from collections.abc import Iterable

# Seconds from which on a unit is used, its own, its name.
_SPANS = ((172_800, 86_400, "day"), (7_200, 3_600, "hour"), (120, 60, "minute"), (0, 1, "second"))


def counted(number: float, one: str, many: str | None = None) -> str:
    """Return a number with its noun: `1 second`, `2 seconds`, `0.5 seconds`, `1,200 messages`.

    `many` is the plural where it is not `one` with an s.
    """
    text = f"{number:,}" if isinstance(number, int) else f"{number:g}"
    return f"{text} {one if number == 1 else many or one + 's'}"


def span(seconds: float) -> str:
    """Return about how long something takes, in the largest unit of which it has two: `90 minutes`."""
    unit, name = next((unit, name) for least, unit, name in _SPANS if seconds >= least)
    return counted(round(seconds / unit), name)


def listed(words: Iterable[str]) -> str:
    """Return words as a sentence lists them: `a`, `a and b`, `a, b and c`; nothing for none."""
    *before, last = list(words) or [""]
    return f"{', '.join(before)} and {last}" if before else last
