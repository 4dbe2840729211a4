"""Listens to a topic: prints each message, then tells the daemon that it was shown."""

from __future__ import annotations

import base64
import json
import select
import sys
from pathlib import Path
from typing import Any, Protocol

import trio

from hushcast.conversation import Conversation, ask
from hushcast.words import (
    Acknowledge,
    Acknowledged,
    Delivered,
    Lost,
    Missed,
    Subscribe,
    Subscribed,
    SubscriptionList,
    Subscriptions,
    Unsubscribed,
)
from hushcast_cli.asking import ask_once, expect
from hushcast_cli.exits import Failure
from hushcast_cli.output import StdoutClosed, is_terminal, json_line, note, printable, write
from hushcast_cli.progress import shown_when_slow

_STDOUT = 1
_BOLD, _PLAIN = b"\x1b[1m", b"\x1b[0m"
_TELLING = 1.0  # seconds that the last reply to the daemon may take after the time-out


class Printer(Protocol):
    """Turns events into what is printed on standard output."""

    def subscribed(self, event: Subscribed) -> bytes:
        """Return what tells that messages reach the daemon from now on."""

    def message(self, event: Delivered) -> bytes:
        """Return what tells of a message."""

    def lost(self, event: Lost) -> bytes:
        """Return what tells of messages that were removed before they could be printed."""

    def gap(self, event: Missed) -> bytes:
        """Return what tells of a message that others got and this daemon did not."""


class JsonPrinter:
    """Prints for programs: one object a line."""

    def subscribed(self, event: Subscribed) -> bytes:
        """Return the contract's `subscribed` object."""
        return json_line({"event": "subscribed", "topic": event.topic, "nodes": event.nodes})

    def message(self, event: Delivered) -> bytes:
        """Return the contract's `message` object."""
        told: dict[str, Any] = {
            "event": "message",
            "topic": event.topic,
            "id": event.id,
            "payload": event.payload,
            "encoding": event.encoding,
            "received_at": event.received_at,
            "cursor": event.cursor,
        }
        if event.attributes is not None:
            told["attributes"] = event.attributes
        if event.author is not None:
            told["author"] = event.author
        return json_line(told)

    def lost(self, event: Lost) -> bytes:
        """Return the contract's `lost` object."""
        return json_line({"event": "lost", "topic": event.topic, "count": event.count})

    def gap(self, event: Missed) -> bytes:
        """Return the contract's `gap` object."""
        return json_line({"event": "gap", "topic": event.topic, "id": event.id})


class TextPrinter:
    """Prints for people: payloads alone, escaped where they would drive a terminal."""

    def subscribed(self, event: Subscribed) -> bytes:
        """Tell it on standard error, since it is no payload."""
        note(f"subscribed: {event.nodes} relays route to this daemon")
        return b""

    def message(self, event: Delivered) -> bytes:
        """Return a line with attributes and author, if there are some, the payload, and a line's end."""
        payload = event.payload.encode() if event.encoding == "utf-8" else base64.b64decode(event.payload)
        about = _about(event)
        if is_terminal():
            payload = printable(payload.decode(errors="surrogateescape"), keep="\n\t").encode()
            # Bold, which no payload can be: one that begins with such a line is told from a true one.
            about = about and _BOLD + about + _PLAIN
        return (about and about + b"\n") + payload + b"\n"

    def lost(self, event: Lost) -> bytes:
        """Tell it on standard error, since it is no payload."""
        note(f"lost: {event.count} messages were removed before they were printed, too old or too many")
        return b""

    def gap(self, event: Missed) -> bytes:
        """Tell it on standard error, since it is no payload."""
        note("gap: other subscribers received a message that did not come here; see `hushcast coverage`")
        return b""


def _about(event: Delivered) -> bytes:
    """Return a message's attributes and author on one line that drives no terminal; nothing without any."""
    told = [f"{name}={_value(value)}" for name, value in (event.attributes or {}).items()]
    if event.author is not None:
        told.append(f"author={event.author}")
    return printable(f"[{', '.join(told)}]").encode() if told else b""


def _value(value: str | int | float) -> str:
    if isinstance(value, str) and not value.replace("-", "").replace("_", "").isalnum():
        return json.dumps(value, ensure_ascii=False)  # a comma or a quotation mark would mislead
    return str(value)


async def listen(path: Path, request: Subscribe, count: int | None, printer: Printer, ack: bool) -> None:
    """Print messages until `count` have come, the subscription ends, or nobody reads standard output.

    With `ack` each is acknowledged once it is printed, and all durably when `count` have come.
    """
    async with ask(path, request) as conversation, trio.open_nursery() as nursery:
        nursery.start_soon(_end_with_reader)
        async with shown_when_slow("waiting until relays route to this daemon", lambda: _how_far(path)):
            subscribed = await expect(conversation, Subscribed)
        await _print(printer.subscribed(subscribed))
        cursor = await _print_messages(conversation, count, printer, ack)
        if ack and cursor is not None:
            await ask_once(path, Acknowledge(request.topic, cursor, request.where), Acknowledged)
        nursery.cancel_scope.cancel()


async def _how_far(path: Path) -> str:
    """Say how many relays route to the subscriptions that do not get everything yet."""
    listed = await ask_once(path, Subscriptions(), SubscriptionList)
    return ", ".join(f"{held['nodes']} do" for held in listed.subscriptions if not held["ready"]) or "soon"


async def _print_messages(
    conversation: Conversation, count: int | None, printer: Printer, ack: bool
) -> int | None:
    """Return the last message's cursor, `None` if the subscription ended."""
    printed, cursor = 0, None
    while count is None or printed < count:
        answer: Delivered | Lost | Missed | Unsubscribed = await expect(
            conversation, Delivered, Lost, Missed, Unsubscribed
        )
        if isinstance(answer, Unsubscribed):
            if count is not None:
                raise Failure(f"the subscription was ended after {printed} of {count} messages")
            note("the subscription was ended")
            return None
        if isinstance(answer, Missed):
            await _print(printer.gap(answer))
            continue
        cursor = answer.cursor
        if isinstance(answer, Lost):
            await _print(printer.lost(answer))
        else:
            await _print(printer.message(answer))
            printed += 1
        with trio.move_on_after(_TELLING, shield=True):
            await conversation.shown(cursor, ack)
    return cursor


async def _print(data: bytes) -> None:
    # In a thread: the reader of standard output may stall, and the time-out must still fire.
    await trio.to_thread.run_sync(write, data, abandon_on_cancel=True)


async def _end_with_reader() -> None:
    """Raise `StdoutClosed` as soon as nobody reads standard output, not only at the next message."""
    if sys.stdout is None:
        return  # the descriptor may be anything by now; the first line printed will fail
    with select.epoll() as watch:
        try:
            watch.register(_STDOUT, 0)  # errors and hang-ups are always told
        except OSError:
            return  # a file, which nobody can leave
        await trio.lowlevel.wait_readable(watch.fileno())
    raise StdoutClosed
