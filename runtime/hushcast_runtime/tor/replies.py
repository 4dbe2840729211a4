"""Splits the bytes of a control connection into whole replies (Tor control-spec section 2.3).

stem, which parses them, takes a fifth of a daemon's start to load: it is, once there is a tor to talk to.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from hushcast_runtime.transports.base import TransportError

if TYPE_CHECKING:
    from stem.response import ControlMessage

MAX_REPLY = 4 << 20  # bytes; GETINFO circuit-status of a busy tor stays below 1 MiB
EVENT = "650"

Aside = Callable[[bytes], bool]
"""Takes a whole reply as it came, and tells whether that is all: such a one is not parsed."""


def parse_all(reply: bytes) -> bool:
    """Leave each reply to be parsed."""
    return False


class ReplySplitter:
    """Takes bytes in pieces of any size, gives back parsed replies; holds at most `MAX_REPLY` bytes."""

    def __init__(self, aside: Aside = parse_all) -> None:
        self._aside = aside
        self._buffer = bytearray()
        self._scanned = 0  # everything before it is whole lines of the reply being read
        self._in_data = False

    def feed(self, data: bytes) -> list[ControlMessage]:
        """Return the replies that `data` completes. Raises `TransportError` when tor breaks the protocol."""
        self._buffer += data
        replies = []
        while (end := self._buffer.find(b"\r\n", self._scanned)) >= 0:
            last = self._is_last(bytes(self._buffer[self._scanned : end]))
            self._scanned = end + 2
            if last:
                raw = bytes(self._buffer[: self._scanned])
                if not self._aside(raw):
                    replies.append(_parse(raw))
                del self._buffer[: self._scanned]
                self._scanned = 0
        if len(self._buffer) > MAX_REPLY:
            raise TransportError("a reply of tor is too long")
        return replies

    def _is_last(self, line: bytes) -> bool:
        if self._in_data:
            self._in_data = line != b"."
            return False
        if len(line) < 4 or not line[:3].isdigit() or line[3:4] not in b" -+":
            raise TransportError("a reply of tor is malformed")
        self._in_data = line[3:4] == b"+"
        return line[3:4] == b" "


def _parse(raw: bytes) -> ControlMessage:
    from stem import ControllerError
    from stem.response import ControlMessage

    try:
        return ControlMessage.from_str(raw)
    except (ControllerError, ValueError):
        raise TransportError("a reply of tor is malformed") from None


def status(reply: ControlMessage) -> str:
    """Return the three-digit status of a reply, `EVENT` for an event."""
    return str(reply.content()[-1][0])


def convert(kind: str, reply: ControlMessage) -> None:
    """Turn `reply` into stem's class for `kind` in place; `TransportError` when it is not of that kind."""
    from stem import response

    try:
        response.convert(kind, reply)
    except Exception:  # stem does not validate: on a malformed reply its parsers fail in ways of their own
        raise TransportError("a reply of tor is not of the kind asked for") from None
