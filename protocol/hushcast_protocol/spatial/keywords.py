"""Words: what counts as the same word in a message and in a subscription."""

from __future__ import annotations

import re
import unicodedata
from itertools import pairwise
from typing import Annotated

import msgspec

from hushcast_protocol.base.errors import UsageError

MAX_WORD = 64  # characters; longer than any dictionary's, shorter than what would fill a page of a proof
MAX_WORDS = 1024  # of one message; POIs of the paper's size have 41

Keyword = Annotated[str, msgspec.Meta(min_length=1, max_length=MAX_WORD)]
Keywords = tuple[str, ...]
"""Distinct words, sorted by code points."""

_ASCII = re.compile(r"[0-9a-z]+")


def words_of(text: str) -> Keywords:
    """Return the distinct words of a text, sorted: runs of letters, digits and marks, in NFKC, casefolded.

    Raises `UsageError` for a word of more than `MAX_WORD` characters. Whoever names a text's words says so
    once: what travels and is hashed are the words, since a later Unicode may cut the text elsewhere.
    """
    found = sorted(set(_runs(text)))
    for word in found:
        if len(word) > MAX_WORD:
            raise UsageError(f"a word has {len(word)} characters, above {MAX_WORD}: {word[:20]}…")
    return tuple(found)


def are_words(words: Keywords) -> bool:
    """Tell whether words are distinct and sorted, as both ends hash them."""
    return all(one < after for one, after in pairwise(words))


def _runs(text: str) -> list[str]:
    if text.isascii():
        return _ASCII.findall(text.lower())
    # Once more after casefolding, which can leave what is no longer in normal form.
    plain = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", text).casefold())
    return "".join(one if unicodedata.category(one)[0] in "LNM" else " " for one in plain).split()
