"""A purpose's name: `operations/billing`, from the general to the special.

Purposes are a hierarchy: who allows `operations` allows `operations/billing`, and who prohibits it
prohibits that, too (paper: Wolf et al., Req. 2 and section IV-A).
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import NewType

from hushcast_protocol.base.errors import UsageError

Purpose = NewType("Purpose", str)
"""A purpose's path, as `read_purpose` returns it."""

MAX_PURPOSE_LEVELS = 8  # of a purpose: a grant by keys has one for each level; the W3C's have 4
MAX_PURPOSE_LEVEL = 32  # characters of a level: three or four words
MAX_SHOWN = 80  # characters of what was typed that an error shows

_LEVEL = f"[a-z0-9_-]{{1,{MAX_PURPOSE_LEVEL}}}"
_NAME = re.compile(f"{_LEVEL}(?:/{_LEVEL}){{0,{MAX_PURPOSE_LEVELS - 1}}}")


def is_purpose(text: str) -> bool:
    """Tell whether a text is a purpose's name."""
    return _NAME.fullmatch(text) is not None


def read_purpose(text: str) -> Purpose:
    """Return a purpose by its name; raise `UsageError` where the text is none."""
    if is_purpose(text):
        return Purpose(text)
    raise UsageError(f"{shown(text)} is no purpose: {_problem(text)}")


@lru_cache(maxsize=1024)  # each of a vocabulary's; they are asked for with every message
def ancestors(purpose: Purpose) -> tuple[Purpose, ...]:
    """Return a purpose and all above it, itself first: `a/b` has `a/b` and `a`."""
    levels = purpose.split("/")
    return tuple(Purpose("/".join(levels[:count])) for count in range(len(levels), 0, -1))


def shown(text: str) -> str:
    """Return a text in quotes, as an error shows it: what is long is cut."""
    return repr(text if len(text) <= MAX_SHOWN else text[: MAX_SHOWN - 1] + "…")


def _problem(text: str) -> str:
    lowered = text.lower()
    if not text:
        return "it is empty"
    if text.count("/") >= MAX_PURPOSE_LEVELS:
        return f"it has {text.count('/') + 1} levels, and {MAX_PURPOSE_LEVELS} are the most"
    if lowered != text and is_purpose(lowered):
        return f"names are in lower case: {lowered}"
    for level in text.split("/"):
        if not level:
            return "a level is empty: levels are separated by one /, with none at the ends"
        if len(level) > MAX_PURPOSE_LEVEL:
            return f"a level has {len(level)} characters, and {MAX_PURPOSE_LEVEL} are the most"
    return "levels are made of a-z, 0-9, _ and -, as in operations/billing"
