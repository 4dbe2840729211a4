"""What is inside a wrapped message: a message with its trunk as the only token, and an empty trail."""

from __future__ import annotations

from collections.abc import Callable

from hushcast_protocol.base.wire import decoder, encode
from hushcast_protocol.central.rerouting import MAX_INSIDE
from hushcast_protocol.content.messages import TRAIL_SIZE, Message, check_message

_decode: Callable[[bytes], Message] = decoder(Message, "message", MAX_INSIDE)


def inside_of(message: Message) -> bytes:
    """Return what a publisher wraps of a message; its other tokens are for the server's look-up alone."""
    return encode(Message(message.id, message.day, message.tokens[:1], bytes(TRAIL_SIZE), message.body))


def message_inside(plain: bytes) -> Message:
    """Return the message that was wrapped; raise a `PeerError` unless its id is its body's hash."""
    message = _decode(plain)
    check_message(message)
    return message
