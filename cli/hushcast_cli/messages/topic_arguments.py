"""Topics as commands take them: a text or a link, typed or out of a file, with conditions on attributes."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import trio

from hushcast.handles import is_handle
from hushcast.keys import checked_link, read_link
from hushcast.secret_files import read_all
from hushcast_cli.output import note
from hushcast_cli.payload import DASH
from hushcast_protocol.base.errors import UsageError, unreadable
from hushcast_protocol.content.predicates import parse_where
from hushcast_protocol.content.topics import LINK_SCHEME, MAX_LINK, Topic, parse_topic, parse_values

_STDIN = 0


@dataclass(frozen=True)
class ChosenTopic:
    """A topic, and the text or link that names it to the daemon."""

    topic: Topic
    text: str = field(repr=False)


async def choose_topic(text: str | None, link_file: Path | None) -> ChosenTopic:
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


def checked_where(chosen: ChosenTopic, where: str) -> str:
    """Return a condition that the topic's attributes allow; raise `UsageError`.

    Which ranges can be subscribed to depends on the carrier, and so the daemon says it; and all of it where
    only the daemon knows the topic, which has a handle there.
    """
    if not is_handle(chosen.text):
        parse_where(where, chosen.topic.attributes)
    return where


def checked_settings(chosen: ChosenTopic, settings: Sequence[str]) -> None:
    """Raise `UsageError` where the topic has no such attributes; of a handle's only the daemon knows it."""
    if not is_handle(chosen.text):
        parse_values(chosen.topic, settings)


def _typed(text: str) -> ChosenTopic:
    if is_link(text):
        text = text.strip()  # what was pasted may bring a space along
    return ChosenTopic(parse_topic(text), text)


def _out_of_file(path: Path) -> ChosenTopic:
    if str(path) == DASH:
        return _typed(checked_link(_read_stdin(), "standard input", alone=True))
    return _typed(read_link(path))


def _read_stdin() -> str:
    if sys.stdin is None:
        raise UsageError("standard input is closed: give the link with --link-file F")
    if sys.stdin.isatty():
        note("reading the link from the terminal: end it with Ctrl-D")
    try:
        return read_all(_STDIN, len(LINK_SCHEME) + MAX_LINK).decode(errors="replace").strip()
    except OSError as error:
        raise unreadable("standard input", error) from None
