"""Words: what counts as the same word in a message and in a subscription.

By which rule a text is cut the owner signs with the table of weights; whoever asks cuts by the same one.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from enum import IntEnum
from functools import lru_cache
from itertools import pairwise
from typing import Annotated

import msgspec

from hushcast_protocol.spatial.word_classes import RUNS

MAX_WORD = 64  # characters; longer than any dictionary's, shorter than what would fill a page of a proof
MAX_WORDS = 4096  # of one message; POIs of the paper's size have 41, a page of Japanese text some 1,500
_LONGEST = (
    65_536  # characters of a text in normal form, one for each byte: there are some that become eighteen
)
_UNIT = 8  # characters: a letter of a script without spaces and its marks; no language has as many

Keyword = Annotated[str, msgspec.Meta(min_length=1, max_length=MAX_WORD)]
Keywords = tuple[str, ...]
"""Distinct words, sorted by code points."""


class WordRule(IntEnum):
    """By what a text is cut into words."""

    RUNS = 1
    """Runs of letters, digits and marks, by the Unicode of whoever cuts; of tables signed before there were
    others."""
    SCRIPTS = 2
    """The same, by Unicode 14; scripts without spaces by one letter and two, and each sign a word."""


NEWEST = WordRule.SCRIPTS
"""Of each table that is signed now."""

_ASCII = re.compile(r"[0-9a-z]+")
_TOKEN = re.compile(r"(?P<unspaced>(?:C[MZ]*)+)|L[LM]*|FF|[SF]")
"""Of classes of characters, as in `word_classes`."""
_UNSPACED = re.compile(r"C[MZ]*")
_ALIKE = str.maketrans(
    {
        "ı": "i",
        "\u06cc": "\u064a",
        "\u06a9": "\u0643",
        "\u0640": None,
        **dict.fromkeys((*map(chr, range(0x64B, 0x660)), "\u0670", *map(chr, range(0x6D6, 0x6DD)))),
        **dict.fromkeys((*map(chr, range(0x591, 0x5BE)), *"\u05bf\u05c1\u05c2\u05c4\u05c5\u05c7")),
    }
)
"""What keyboards and habits write in two ways: Turkish i, Persian yeh and kaf, points."""
_ANY_ALIKE = re.compile(f"[{''.join(map(chr, _ALIKE))}]")


def words_of(text: str, rule: WordRule = NEWEST) -> Keywords:
    """Return the distinct words of a message's text, sorted: at most the first `MAX_WORDS` of them.

    In scripts without spaces these are all letters and all pairs of letters that stand side by side. Words
    are cut after `MAX_WORD` characters. Nothing in a text keeps it from having words. Whoever names a text's
    words says so once: what travels and is hashed are the words.
    """
    first: dict[str, None] = {}
    for word in _words(text, rule, is_asked=False):
        first[word] = None
        if len(first) == MAX_WORDS:
            break
    return tuple(sorted(first))


def asked_words(text: str, rule: WordRule = NEWEST) -> Keywords:
    """Return the distinct words of what somebody asks for, sorted.

    Whatever stands in a text has all of its words there: in scripts without spaces these are the pairs of
    letters, and a letter where it stands alone.
    """
    return tuple(sorted(set(_words(text, rule, is_asked=True))))


def are_words(words: Keywords) -> bool:
    """Tell whether words are distinct and sorted, as both ends hash them."""
    return all(one < after for one, after in pairwise(words))


def _words(text: str, rule: WordRule, is_asked: bool) -> Iterator[str]:
    if text.isascii():
        found: Iterator[str] = iter(_ASCII.findall(text.lower()))
    elif rule is WordRule.RUNS:
        found = iter(_runs(text))
    else:
        found = _by_scripts(text, is_asked)
    return (word[:MAX_WORD] for word in found)


def _runs(text: str) -> list[str]:
    # Once more after casefolding, which can leave what is no longer in normal form.
    plain = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", text).casefold())
    return "".join(one if unicodedata.category(one)[0] in "LNM" else " " for one in plain).split()


def _by_scripts(text: str, is_asked: bool) -> Iterator[str]:
    plain, kinds = _plain(text)
    for found in _TOKEN.finditer(kinds):
        token = plain[found.start() : found.end()]
        if found.lastgroup != "unspaced":
            yield token
            continue
        spans = (one.span() for one in _UNSPACED.finditer(found.group()))
        units = [token[first:last].replace("\u200b", "")[:_UNIT] for first, last in spans]
        if len(units) == 1 or not is_asked:
            yield from units
        yield from (one + after for one, after in pairwise(units))


def _plain(text: str) -> tuple[str, str]:
    """Return a text in which what is the same word is written in one way, and the classes of that."""
    kinds = _classes(text)
    # What this Unicode does not know goes first: another one may normalize it.
    known = unicodedata.normalize("NFKC", _without(text, kinds, "U", " "))[:_LONGEST]
    folded = unicodedata.normalize("NFKC", known.casefold()).replace("i\u0307", "i")
    if _ANY_ALIKE.search(folded):
        folded = folded.translate(_ALIKE)
    if folded != text:  # as most that is typed in small letters is not
        kinds = _classes(folded)
    plain = unicodedata.normalize("NFKC", _without(folded, kinds, "D", ""))
    return plain, kinds if plain == folded else _classes(plain)


def _without(text: str, kinds: str, kind: str, instead: str) -> str:
    """Return a text with something else in place of the characters of a class."""
    if kind not in kinds:
        return text
    return "".join(instead if each == kind else one for one, each in zip(text, kinds, strict=True))


def _classes(text: str) -> str:
    """Return the class of each character of a text."""
    return "".join(map(_class_of_all().__getitem__, map(ord, text)))


@lru_cache(maxsize=1)
def _class_of_all() -> str:
    return "".join(kind * int(count) for kind, count in re.findall(r"([A-Z])(\d+)", RUNS))
