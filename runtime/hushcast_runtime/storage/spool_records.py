"""How messages of the spool lie in the store: whole, or as a reference to a body that several wait for."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated

import msgspec

from hushcast_protocol.base.errors import DecodeError
from hushcast_protocol.base.wire import Bytes16, Bytes32, Counter, Wire, decoder
from hushcast_protocol.content.hops import HOP_SIZE, Hop
from hushcast_protocol.content.messages import MAX_TOKENS, TRAIL_SIZE, Message

_NUMBER = 8  # bytes of a number in a key
_LARGEST = 512 * 1024  # bytes of a record; a carrier's wrapping may make a body larger than a message's is


class BodyReference(Wire, frozen=True, tag="reference"):
    """A message whose body lies elsewhere, under a number; `size` is the body's, in bytes."""

    number: Counter
    size: Annotated[int, msgspec.Meta(ge=0, le=_LARGEST)]
    id: Bytes32
    day: Counter
    tokens: Annotated[tuple[Bytes16, ...], msgspec.Meta(min_length=1, max_length=MAX_TOKENS)]
    trail: Annotated[bytes, msgspec.Meta(min_length=TRAIL_SIZE, max_length=TRAIL_SIZE)]

    def message(self, body: bytes) -> Message:
        """Return the message with its body."""
        return Message(self.id, self.day, self.tokens, self.trail, body)


class WholeMessage(Wire, frozen=True, tag="message"):
    """A message with its body, in the layout of `Message`."""

    id: Bytes32
    day: Counter
    tokens: Annotated[tuple[Bytes16, ...], msgspec.Meta(min_length=1, max_length=MAX_TOKENS)]
    trail: Annotated[bytes, msgspec.Meta(min_length=TRAIL_SIZE, max_length=TRAIL_SIZE)]
    body: bytes

    def message(self) -> Message:
        """Return it as what it was."""
        return Message(self.id, self.day, self.tokens, self.trail, self.body)


read_record: Callable[[bytes], WholeMessage | BodyReference] = decoder(
    WholeMessage | BodyReference, "message", _LARGEST
)


def reference(number: int, message: Message) -> BodyReference:
    """Return the record of a message whose body lies under a number."""
    return BodyReference(number, len(message.body), message.id, message.day, message.tokens, message.trail)


def key_of(number: int, hop: bytes = b"") -> bytes:
    """Return the key of a body, or of what waits for a next hop."""
    return hop + number.to_bytes(_NUMBER, "big")


def place_of(key: bytes) -> tuple[Hop, int]:
    """Return whom a record waits for, and its number among all; raise `DecodeError` for another's key."""
    if len(key) != HOP_SIZE + _NUMBER:
        raise DecodeError("a place in the spool is none")
    return Hop(key[:HOP_SIZE]), int.from_bytes(key[HOP_SIZE:], "big")
