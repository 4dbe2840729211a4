"""Words for people: numbers with their nouns, and lists; pure."""

from __future__ import annotations

from collections.abc import Iterable


def counted(number: float, one: str, many: str | None = None) -> str:
    """Return a number with its noun: `1 second`, `2 seconds`, `0.5 seconds`, `1,200 messages`.

    `many` is the plural where it is not `one` with an s.
    """
    text = f"{number:,}" if isinstance(number, int) else f"{number:g}"
    return f"{text} {one if number == 1 else many or one + 's'}"


def listed(words: Iterable[str]) -> str:
    """Return words as a sentence lists them: `a`, `a and b`, `a, b and c`; nothing for none."""
    *before, last = list(words) or [""]
    return f"{', '.join(before)} and {last}" if before else last
