"""Arguments of a program's calls, looked at before the daemon is asked: mistakes are told in its words."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import TYPE_CHECKING, Any, Literal, get_args

from hushcast import handles
from hushcast_protocol.base.errors import UsageError
from hushcast_protocol.content.attributes import MAX_FRACTION

if TYPE_CHECKING:
    from hushcast.purposes.keys import Allowed

Acknowledging = Literal["automatic", "manual", "never"]
Since = int | Literal["shown"] | datetime


def check_topic(topic: Any, where: Any = None) -> None:
    """Raise `UsageError` unless a topic, and the condition of a subscription to it, are texts."""
    if not isinstance(topic, str):
        raise UsageError(f"a topic is a text, a link or a subscription's handle, not {_type(topic)}")
    if not isinstance(where, str | None):
        raise UsageError(f"a condition is a text like 'kind = fire', not {_type(where)}")


def check_cursor(cursor: Any) -> None:
    """Raise `UsageError` unless it is one."""
    if isinstance(cursor, bool) or not isinstance(cursor, int) or cursor < 0:
        raise UsageError(f"a cursor is a number from 0, as `message.cursor` has it, not {_type(cursor)}")


def check_subscription(topic: Any, where: Any, since: Any, acknowledge: Any) -> float | None:
    """Raise `UsageError` where a subscription cannot begin as asked, or would not be read as is meant.

    Returns the moment (Unix seconds) from which on what was published is wanted, if `since` is a time.
    """
    check_topic(topic, where)
    if where is None:
        raise UsageError("without a condition `where` is left away, or ''")
    if acknowledge not in get_args(Acknowledging):
        values = ", ".join(map(repr, get_args(Acknowledging)))
        raise UsageError(f"`acknowledge` is one of {values}, not {acknowledge!r}")
    if isinstance(since, datetime):
        if since.tzinfo is None:
            raise UsageError("`since` is a time without a zone: `datetime.now(UTC)` has one")
        return max(0.0, since.timestamp())
    if since not in (None, "shown"):
        check_cursor(since)
    return None


def data_of(payload: Any) -> bytes:
    """Return the bytes of a payload, of a text its UTF-8; raise `UsageError` where it is neither."""
    if isinstance(payload, str):
        return payload.encode()
    if not isinstance(payload, bytes | bytearray | memoryview):
        raise UsageError(f"a payload is bytes or a text, not {_type(payload)}")
    return bytes(payload)


def sealed_payload(
    topic: str, payload: bytes | str, purposes: Allowed | None, tags: Iterable[str]
) -> tuple[bytes, Iterable[str]]:
    """Return what travels, and the tags that it travels by."""
    check_topic(topic)
    data = data_of(payload)
    if purposes is None:
        return data, tags
    if handles.is_handle(topic):
        raise UsageError("what is sealed for purposes is published by the topic's link, not by a handle")
    sealed, own = purposes.seal(data, topic)
    return sealed, {*own, *tags}


def written_value(value: str | int | float) -> str:
    """Return a value as daemons read it, which take no more digits: 0.1 + 0.2 is 0.3."""
    return str(round(value, MAX_FRACTION) if isinstance(value, float) else value)


def _type(value: Any) -> str:
    return "None" if value is None else type(value).__name__
