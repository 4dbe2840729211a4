"""The wire format: msgpack arrays declared once as structs, decoded strictly and within a size."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any

import msgspec

from hushcast_protocol.base.errors import DecodeError


class Wire(msgspec.Struct, frozen=True, gc=False, array_like=True, forbid_unknown_fields=True):
    """Base of everything that crosses the network: an immutable msgpack array.

    Immutable structs cannot form cycles, so the garbage collector need not track them.
    """


class Lasting(Wire, frozen=True, forbid_unknown_fields=False):
    """Base of what every release reads, whatever else has changed: it may only grow, at its end.

    What was added there is passed over by whoever does not know it. So nothing of this kind is encoded anew
    to be signed, hashed or compared by others: the bytes that came are.
    """


Bytes16 = Annotated[bytes, msgspec.Meta(min_length=16, max_length=16)]
Bytes32 = Annotated[bytes, msgspec.Meta(min_length=32, max_length=32)]
Bytes64 = Annotated[bytes, msgspec.Meta(min_length=64, max_length=64)]
Counter = Annotated[int, msgspec.Meta(ge=0, lt=2**48)]
"""Epochs, days, Unix seconds and counts; 48 bits outlast every clock and fit every language's integers."""

PublicKey = Bytes32
RelayId = Bytes32
"""A relay is its Ed25519 identity key."""

_encoder = msgspec.msgpack.Encoder()
encode: Callable[[Any], bytes] = _encoder.encode


def decoder(kind: Any, name: str, limit: int) -> Callable[[bytes], Any]:
    """Return a function that decodes at most `limit` bytes into `kind`, or raises `DecodeError`."""
    inner = msgspec.msgpack.Decoder(kind)

    def decode(data: bytes) -> Any:
        if len(data) > limit:
            raise DecodeError(f"a {name} of {len(data)} bytes is over the limit of {limit}")
        try:
            return inner.decode(data)
        except (msgspec.MsgspecError, ValueError, RecursionError):
            # msgspec's own text can hold what the peer wrote, at any length.
            raise DecodeError(f"a {name} does not decode") from None

    return decode
