"""Messages and subscriptions from files of lines, each told with its number where it is wrong."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import TypeVar

from hushcast_protocol.base.errors import UsageError, unreadable
from hushcast_protocol.spatial.keywords import NEWEST, WordRule
from hushcast_protocol.spatial.located_messages import LocatedMessage, read_message
from hushcast_protocol.spatial.located_subscription import LocatedSubscription, read_subscription

MAX_LINE = 1_048_576  # bytes of a line; a message's text of 65,536 bytes, all of it escaped, takes 393,216

_FILE_NAME = re.compile(r"[A-Za-z0-9_-][A-Za-z0-9._-]{0,63}\Z")
T = TypeVar("T")


def read_messages(file: Path, number: int, rule: WordRule) -> list[LocatedMessage]:
    """Return the messages of a file for the batch of this number; raise `UsageError`."""

    def read(line: bytes) -> tuple[str, LocatedMessage]:
        one = read_message(line, number, rule)
        return one.id, one

    return list(_read(file, read).values())


def read_subscriptions(file: Path, rule: WordRule = NEWEST) -> dict[str, LocatedSubscription]:
    """Return the subscriptions of a file by their ids, of which files are to be named; raise `UsageError`."""
    return _read(file, partial(read_named, rule=rule))


def read_named(line: bytes, rule: WordRule) -> tuple[str, LocatedSubscription]:
    """Return the id, of which a file can be named, and the subscription on a line; raise `UsageError`."""
    name, one = read_subscription(line, rule)
    if not _FILE_NAME.match(name):
        raise UsageError(
            f"'id' is {name[:64]!r}: 1 to 64 letters, digits, '_', '-' and '.', of which a file can be named"
        )
    return name, one


def _read(file: Path, read: Callable[[bytes], tuple[str, T]]) -> dict[str, T]:
    found: dict[str, T] = {}
    for number, line in _lines(file):
        try:
            name, one = read(line)
            if name in found:
                raise UsageError(f"'id' {name!r} stands in a line before: each has an id of its own")
        except UsageError as error:
            raise UsageError(f"{file}, line {number}: {error}") from None
        found[name] = one
    return found


def _lines(file: Path) -> Iterator[tuple[int, bytes]]:
    """Yield lines with their numbers, without empty ones; raise `UsageError`."""
    try:
        with file.open("rb") as stream:
            number = 0
            while line := stream.readline(MAX_LINE + 1):
                number += 1
                if len(line) > MAX_LINE:
                    raise UsageError(f"{file}, line {number}: it is longer than {MAX_LINE:,} bytes")
                if line.strip():
                    yield number, line
    except OSError as error:
        raise unreadable(file, error) from None
