"""Writes the classes of characters that words of located feeds are cut by, pinned to one Unicode.

`python tools/word_classes.py` renews the file, `--check` only tells whether it is up to date. Python knows
one version of Unicode, its own: only a Python with the pinned one, 3.11, can do either.
"""

from __future__ import annotations

import sys
import unicodedata
from itertools import groupby
from pathlib import Path
from textwrap import wrap

from hushcast_protocol.spatial.word_classes import UNICODE

FILE = Path(__file__).parents[1] / "protocol" / "hushcast_protocol" / "spatial" / "word_classes.py"
UNSPACED = (
    *("CJK ", "HIRAGANA ", "KATAKANA", "BOPOMOFO ", "IDEOGRAPHIC ", "VERTICAL KANA ", "HANGUL "),
    *("THAI ", "LAO ", "KHMER ", "MYANMAR ", "TAI ", "NEW TAI ", "AHOM ", "YI ", "NUSHU ", "TANGUT "),
)
"""Names of characters of scripts without spaces between words, or that, as Korean, hang endings on them."""
FULL_SIGNS = 0x2000  # from here on a sign is a picture; `©` and `°` below it stand beside words
NO_WIDTH = 0x200B  # a space where a line may break, in scripts without spaces also within words
FLAGS = range(0x1F1E6, 0x1F200)  # two letters are a flag
VARIANTS = (*range(0x180B, 0x1810), *range(0xFE00, 0xFE10), *range(0xE0100, 0xE01F0))
FILLERS = (0x034F, 0x115F, 0x1160, 0x17B4, 0x17B5, 0x20E3, 0x3164, 0xFFA0)


def class_of(number: int) -> str:
    """Return the class of a character, as `word_classes` has them."""
    one = chr(number)
    kind = unicodedata.category(one)
    if number == NO_WIDTH:
        return "Z"
    if number in FLAGS:
        return "F"
    if kind == "Cn":
        return "U"
    if kind == "Cf" or number in VARIANTS or number in FILLERS:
        return "D"
    if kind[0] in "LN":
        is_unspaced = kind != "Nd" and unicodedata.name(one, "").startswith(UNSPACED)
        return "C" if is_unspaced else "L"
    if kind[0] == "M":
        return "M"
    return "S" if kind == "So" and number >= FULL_SIGNS else "X"


def classes() -> str:
    """Return how many characters of which class follow each other, from 0 on."""
    runs = groupby(map(class_of, range(sys.maxunicode + 1)))
    return "".join(f"{kind}{sum(1 for _ in some)}" for kind, some in runs)


def main(arguments: list[str]) -> int:
    """Renew the file, or tell whether it is up to date."""
    if unicodedata.unidata_version != UNICODE:
        print(f"this Python knows Unicode {unicodedata.unidata_version}: take one that knows {UNICODE}")
        return 2
    text = FILE.read_text()
    head = text[: text.index("RUNS = (")]
    fresh = head + "RUNS = (\n" + "".join(f'    "{line}"\n' for line in wrap(classes(), 103)) + ")\n"
    if "--check" in arguments:
        print("up to date" if fresh == text else "not up to date")
        return int(fresh != text)
    FILE.write_text(fresh)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
