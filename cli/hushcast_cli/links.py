"""Topics as commands take them: a text or a link, typed or out of a file, with conditions on attributes."""

from __future__ import annotations

import os
import stat
import sys
from dataclasses import dataclass, field
from pathlib import Path

import trio

from hushcast_cli.output import note
from hushcast_cli.payload import DASH
from hushcast_protocol.base.errors import UsageError
from hushcast_protocol.content.predicates import parse_where
from hushcast_protocol.content.tokens import check_predicate
from hushcast_protocol.content.topics import LINK_SCHEME, MAX_LINK, Topic, parse_topic

_STDIN = 0
_WAY_IN = "`hushcast topic new --output F` writes one"


@dataclass(frozen=True)
class Chosen:
    """A topic, and the text or link that names it to the daemon."""

    topic: Topic
    text: str = field(repr=False)


async def choose_topic(text: str | None, link_file: Path | None) -> Chosen:
    """Return the topic that was typed, or whose link a file or standard input holds; raise `UsageError`."""
    if text is not None:
        return _typed(text)
    assert link_file is not None
    return await trio.to_thread.run_sync(_out_of_file, link_file, abandon_on_cancel=True)


def warn_of_wildcards(topic: Topic) -> None:
    """Tell people who know MQTT that a topic is one name, whatever is in it."""
    if any(level in ("#", "+") for level in topic.name.split("/")):
        note("note: topics have no wildcards: `#` and `+` are letters of this one's name")


def is_link(text: str) -> bool:
    """Tell whether a text is meant to be a link."""
    return text.lstrip().startswith(LINK_SCHEME)


def checked_where(topic: Topic, where: str) -> str:
    """Return a condition that the topic's attributes allow and that can be covered; raise `UsageError`."""
    check_predicate(parse_where(where, topic.attributes))
    return where


def read_private(path: Path, most: int, what: str) -> tuple[bytes, bool]:
    """Return a file's bytes, `most` and one at most, and whether nobody but its owner can read it.

    Raises `UsageError`, which says that `what` cannot be read.
    """
    try:
        with path.open("rb", buffering=0) as file:
            # Checked on the open file: the path may lead to another file a moment later (a race).
            alone = not stat.S_IMODE(os.fstat(file.fileno()).st_mode) & 0o077
            return _read(file.fileno(), most), alone
    except OSError as error:
        raise UsageError(f"the {what} {path} cannot be read: {error.strerror}") from None


def write_new(path: Path, data: bytes, what: str) -> None:
    """Write a file that only its owner can read; raise `UsageError` rather than overwrite one."""
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    except FileExistsError:
        raise UsageError(f"{path} exists: the {what} in it would be lost; name another file") from None
    except OSError as error:
        raise UsageError(f"{path} cannot be made: {error.strerror}") from None
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(descriptor)
    except OSError as error:
        path.unlink(missing_ok=True)
        raise UsageError(f"{path} cannot be written: {error.strerror}") from None


def _typed(text: str) -> Chosen:
    if is_link(text):
        text = text.strip()  # what was pasted may bring a space along
    return Chosen(parse_topic(text), text)


def _out_of_file(path: Path) -> Chosen:
    if str(path) == DASH:
        text, alone, shown = _read_stdin(), True, "standard input"
    else:
        data, alone = read_private(path, len(LINK_SCHEME) + MAX_LINK, "link file")
        text, shown = data.decode(errors="replace").strip(), str(path)
    if not is_link(text):
        raise UsageError(f"{shown} holds no link: {_WAY_IN}")
    try:
        chosen = _typed(text)
    except UsageError as error:
        raise UsageError(f"{shown}: {error}") from None
    if chosen.topic.secret is not None and not alone:
        raise UsageError(f"others can read the private topic's link in {shown}: chmod 600 it")
    return chosen


def _read_stdin() -> str:
    if sys.stdin is None:
        raise UsageError("standard input is closed: give the link with --link-file F")
    if sys.stdin.isatty():
        note("reading the link from the terminal: end it with Ctrl-D")
    try:
        return _read(_STDIN, len(LINK_SCHEME) + MAX_LINK).decode(errors="replace").strip()
    except OSError as error:
        raise UsageError(f"standard input cannot be read: {error.strerror}") from None


def _read(descriptor: int, most: int) -> bytes:
    data = bytearray()
    while len(data) <= most and (part := os.read(descriptor, most + 1 - len(data))):
        data += part
    return bytes(data)
