"""Printers: turn what a daemon tells a listener into lines, for programs, for people, or in a format."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any, Protocol

from hushcast.control_messages import as_text
from hushcast.events import Gap, Lost, Message, Unopened, Withdrawn
from hushcast_cli.output import is_terminal, json_line, note, printable
from hushcast_protocol.base.errors import UsageError
from hushcast_runtime.wording import counted

_BOLD, _PLAIN = b"\x1b[1m", b"\x1b[0m"


def loss(event: Lost) -> str:
    """Return what is known of messages that never came."""
    if event.count is None:
        return "what waited for this daemon is gone where it waited; nobody knows how many messages, if any"
    return f"{counted(event.count, 'message was', 'messages were')} removed unprinted, too old or too many"


class Printer(Protocol):
    """Turns events into what is printed on standard output."""

    def subscribed(self, topic: str, nodes: int, by: str) -> bytes:
        """Return what tells that messages reach the daemon from now on."""

    def message(self, event: Message) -> bytes:
        """Return what tells of a message."""

    def lost(self, event: Lost) -> bytes:
        """Return what tells of messages that were removed before they could be printed."""

    def gap(self, event: Gap) -> bytes:
        """Return what tells of a message that others got and this daemon did not."""

    def unopened(self, event: Unopened) -> bytes:
        """Return what tells of a message that came and does not open for the purpose."""

    def withdrawn(self, event: Withdrawn) -> bytes:
        """Return what tells of messages that their publisher has withdrawn."""


class JsonPrinter:
    """Prints for programs: one object a line."""

    def subscribed(self, topic: str, nodes: int, by: str) -> bytes:
        """Return the contract's `subscribed` object."""
        return json_line({"event": "subscribed", "topic": topic, "nodes": nodes})

    def message(self, event: Message) -> bytes:
        """Return the contract's `message` object."""
        payload, encoding = as_text(event.payload)
        told: dict[str, Any] = {
            "event": "message",
            "topic": event.topic,
            "id": event.id,
            "payload": payload,
            "encoding": encoding,
            "received_at": event.received_at,
            "cursor": event.cursor,
        }
        if event.attributes:
            told["attributes"] = event.attributes
        if event.author is not None:
            told["author"] = event.author
        if event.past_day is not None:
            told["past_day"] = event.past_day
        if event.path:
            told["path"] = event.path
        if event.withdrawal:
            told["withdrawal"] = event.withdrawal
        return json_line(told)

    def lost(self, event: Lost) -> bytes:
        """Return the contract's `lost` object."""
        return json_line({"event": "lost", "topic": event.topic, "count": event.count})

    def gap(self, event: Gap) -> bytes:
        """Return the contract's `gap` object."""
        return json_line({"event": "gap", "topic": event.topic, "id": event.id})

    def withdrawn(self, event: Withdrawn) -> bytes:
        """Return the contract's `withdrawn` object."""
        return json_line({"event": "withdrawn", "topic": event.topic, "withdrawal": event.withdrawal})

    def unopened(self, event: Unopened) -> bytes:
        """Return the contract's `unopened` object."""
        return json_line(
            {"event": "unopened", "topic": event.topic, "id": event.id, "problem": event.problem}
        )


class TextPrinter:
    """Prints for people: payloads alone, escaped where they would drive a terminal."""

    def subscribed(self, topic: str, nodes: int, by: str) -> bytes:
        """Tell it on standard error, since it is no payload."""
        if by == "host":
            note(f"subscribed: {counted(nodes, 'host asks', 'hosts ask')} for this daemon")
        else:
            note(f"subscribed: {counted(nodes, f'{by} routes', f'{by}s route')} to this daemon")
        return b""

    def __init__(self, names_topics: bool = False) -> None:
        """With `names_topics` each message's topic is told, too."""
        self._names_topics = names_topics

    def message(self, event: Message) -> bytes:
        """Return a line with what is told beside the payload, the payload, and a line's end."""
        about = _about(event, self._names_topics)
        if about and is_terminal():
            # Bold, which no payload can be: one that begins with such a line is told from a true one.
            about = _BOLD + about + _PLAIN
        return (about and about + b"\n") + _payload(event) + b"\n"

    def lost(self, event: Lost) -> bytes:
        """Tell it on standard error, since it is no payload."""
        note(f"lost: {loss(event)}")
        return b""

    def gap(self, event: Gap) -> bytes:
        """Tell it on standard error, since it is no payload."""
        note("gap: other subscribers received a message that did not come here; see `hushcast coverage`")
        return b""

    def withdrawn(self, event: Withdrawn) -> bytes:
        """Tell it on standard error: which were printed, programs know."""
        note("withdrawn: the publisher of earlier messages asks to delete them; --json says which")
        return b""

    def unopened(self, event: Unopened) -> bytes:
        """Tell nothing: people hear in the end how many there were."""
        return b""


class FormatPrinter(TextPrinter):
    """Prints a line for each message in a format like `{time} {topic}: {payload}`."""

    def __init__(self, text: str) -> None:
        """Raises `UsageError` where the format names what a message does not have."""
        super().__init__()
        self._parts = _PLACE.split(text)
        for name in self._parts[1::2]:
            if name not in _TOLD:
                raise UsageError(f"a message has no {{{name}}}: formats know {', '.join(_TOLD)}")

    def message(self, event: Message) -> bytes:
        """Return the format with what the message has in its places, and a line's end."""
        filled = [
            _TOLD[part](event) if place % 2 else os.fsencode(part) for place, part in enumerate(self._parts)
        ]
        return b"".join(filled) + b"\n"


def _payload(event: Message) -> bytes:
    if is_terminal():
        return printable(event.payload.decode(errors="surrogateescape"), keep="\n\t").encode()
    return event.payload


def _line(text: str) -> bytes:
    return printable(text).encode()


def _time(event: Message) -> str:
    return datetime.fromtimestamp(event.received_at, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _date(moment: float) -> str:
    return datetime.fromtimestamp(moment, UTC).strftime("%Y-%m-%d")


def _attributes(event: Message) -> str:
    return ", ".join(f"{name}={_value(value)}" for name, value in event.attributes.items())


_PLACE = re.compile(r"\{(\w+)\}")
_TOLD: dict[str, Callable[[Message], bytes]] = {
    "payload": _payload,
    "topic": lambda event: _line(event.topic),
    "time": lambda event: _line(_time(event)),
    "id": lambda event: _line(event.id),
    "cursor": lambda event: _line(str(event.cursor)),
    "attributes": lambda event: _line(_attributes(event)),
    "author": lambda event: _line(event.author or ""),
    "past": lambda event: _line("" if event.past_day is None else _date(event.past_day)),
    "path": lambda event: _line(event.path),
}
"""What a format may name."""


def _about(event: Message, names_topic: bool) -> bytes:
    """Return a line that tells what a message has besides its payload; nothing without any."""
    told = [f"topic={_value(event.topic)}"] if names_topic else []
    if event.attributes:
        told.append(_attributes(event))
    if event.author is not None:
        told.append(f"author={event.author}")
    if event.past_day is not None:
        told.append(f"past={_date(event.past_day)}")
    if event.path:
        told.append(f"path={_value(event.path)}")
    return _line(f"[{', '.join(told)}]") if told else b""


def _value(value: str | int | float) -> str:
    if isinstance(value, str) and not value.replace("-", "").replace("_", "").isalnum():
        return json.dumps(value, ensure_ascii=False)  # a comma or a quotation mark would mislead
    return str(value)
