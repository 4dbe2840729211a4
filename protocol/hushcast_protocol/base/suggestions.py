"""What somebody may have meant who mistyped a word: a key, a command, a choice."""

from __future__ import annotations

from collections.abc import Iterable

_MOST = 3  # suggestions; more are a list to read instead of a hint


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """Return `: did you mean X?` with those of `known` that look like `word`, nothing where none does."""
    from difflib import get_close_matches  # here: whoever mistypes nothing need not load it

    found = get_close_matches(word, list(known), n=_MOST)
    return f": did you mean {one_of(found)}?" if found else ""


def one_of(words: Iterable[str]) -> str:
    """Return words as a sentence lists them: `a, b or c`."""
    *before, last = words
    return f"{', '.join(before)} or {last}" if before else last
