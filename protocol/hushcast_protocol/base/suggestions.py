"""What somebody may have meant who mistyped a word: a key, a command, a choice."""

from __future__ import annotations

from collections.abc import Iterable

_MOST = 3  # suggestions; more are a list to read instead of a hint
_LEAST_BEGUN = 3  # characters that say which word somebody began


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """Return `: did you mean X?` with those of `known` that look like `word`, nothing where none does."""
    found = alike(word, known)
    return f": did you mean {one_of(found)}?" if found else ""


def alike(word: str, known: Iterable[str]) -> list[str]:
    """Return those of `known` that look like `word`, the likest first; else those that it begins."""
    from difflib import get_close_matches  # here: whoever mistypes nothing need not load it

    names = list(known)
    begun = [name for name in names if name.startswith(word)] if len(word) >= _LEAST_BEGUN else []
    return get_close_matches(word, names, n=_MOST) or begun[:_MOST]


def one_of(words: Iterable[str]) -> str:
    """Return words as a sentence lists them: `a, b or c`."""
    *before, last = words
    return f"{', '.join(before)} or {last}" if before else last
