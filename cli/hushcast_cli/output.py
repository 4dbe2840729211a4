"""Output: JSON or text on standard output, notes for people on standard error."""

from __future__ import annotations

import json
import os
import select
import sys
import unicodedata
from collections.abc import Iterable, Mapping
from contextlib import suppress
from typing import Any

from hushcast_protocol.base.errors import HushcastError

_STDOUT = 1
_DANGEROUS = frozenset(
    {"Cc", "Cf", "Cs", "Co", "Zl", "Zp"}
)  # control, format, surrogates, private, separators
_HARMLESS = frozenset("\u200c\u200d")  # joiners, without which some scripts and emoji fall apart


class StdoutClosed(Exception):
    """Nobody reads standard output any more."""


class StdoutFailed(HushcastError):
    """Standard output does not take what is printed: it is closed, or a disk is full."""


def is_terminal() -> bool:
    """Tell whether a person sees standard output."""
    return sys.stdout is not None and sys.stdout.isatty()


def printable(text: str, keep: str = "") -> str:
    r"""Return `text` with all that could drive a terminal escaped (`\x1b`), except the characters in `keep`.

    Left-to-right overrides and the like are escaped, too: they make text look like another.
    """
    return "".join(
        character
        if character in keep or character in _HARMLESS or unicodedata.category(character) not in _DANGEROUS
        else character.encode("unicode_escape", "surrogatepass").decode()
        for character in text
    )


def json_line(value: Mapping[str, Any]) -> bytes:
    """Return one line of JSON; ASCII alone for a terminal, which some characters would drive."""
    return (json.dumps(value, ensure_ascii=is_terminal()) + "\n").encode("utf-8", "backslashreplace")


def text_line(text: str) -> bytes:
    """Return one line of text in UTF-8."""
    return (printable(text) + "\n").encode()


def table(rows: Iterable[tuple[str, str]]) -> bytes:
    """Return lines of two columns, of which the first is as wide as its longest cell."""
    cells = [(printable(label), text) for label, text in rows]
    width = max((len(label) for label, _ in cells), default=0)
    return b"".join(text_line(f"{label.ljust(width)}  {text}") for label, text in cells)


def write(data: bytes) -> None:
    """Write to standard output, unbuffered; raise `StdoutClosed` if nobody reads it, or `StdoutFailed`.

    Nothing is left in a buffer, so what was written was also handed over when this returns.
    """
    if sys.stdout is None:
        raise StdoutFailed("standard output is closed")
    rest = memoryview(data)
    while rest:
        try:
            rest = rest[os.write(_STDOUT, rest) :]
        except BrokenPipeError:
            raise StdoutClosed from None
        except BlockingIOError:  # another program made our terminal non-blocking
            select.select([], [_STDOUT], [])
        except OSError as error:
            raise StdoutFailed(f"standard output cannot be written: {error.strerror}") from None


def note(text: str, as_it_is: bool = False) -> None:
    """Tell people one line on standard error; spaces around it stay if it is to be told as it is."""
    if sys.stderr is None:
        return
    with suppress(OSError):  # nobody listens: the exit code still tells
        line = text if as_it_is else text.strip()
        sys.stderr.write(printable(line.replace("\n", " ")) + "\n")
        sys.stderr.flush()
