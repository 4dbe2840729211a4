"""A message: an id that is the hash of its sealed body, the tokens it is routed by, and its trail."""

from __future__ import annotations

from functools import lru_cache
from hashlib import blake2b
from typing import Annotated

import msgspec
from nacl.bindings import (
    crypto_aead_xchacha20poly1305_ietf_ABYTES as TAG,
)
from nacl.bindings import (
    crypto_aead_xchacha20poly1305_ietf_NPUBBYTES as _NPUBBYTES,
)

from hushcast_protocol.base.crypto.hashes import Domain, begun
from hushcast_protocol.base.errors import AuthenticationError, DecodeError
from hushcast_protocol.base.wire import Bytes16, Bytes32, Counter, Wire
from hushcast_protocol.content.payload_sizes import MAX_PAYLOAD, PADDED_SIZES

NONCE: int = _NPUBBYTES  # bytes
TRAIL_SIZE = 77  # bytes in which a carrier notes the way of a message; zero when it is sealed
MAX_TOKENS = 80  # a message asks the routing table this often at most

HEADER = (
    7 + 32 + 64
)  # bytes before attributes and payload: version, two lengths, an author's key and signature
SEAL = NONCE + TAG  # bytes
MAX_BODY = HEADER + MAX_PAYLOAD + SEAL
_BODY_SIZES = frozenset(HEADER + size + SEAL for size in PADDED_SIZES)


class Message(Wire, frozen=True, tag="message"):
    """What travels: no author, no time, no hop count.

    The first token is the trunk, which leads along trees; the others are looked up where it enters the
    overlay, and go no further.
    """

    id: Bytes32
    day: Counter
    tokens: Annotated[tuple[Bytes16, ...], msgspec.Meta(min_length=1, max_length=MAX_TOKENS)]
    trail: Annotated[bytes, msgspec.Meta(min_length=TRAIL_SIZE, max_length=TRAIL_SIZE)]
    body: Annotated[bytes, msgspec.Meta(max_length=MAX_BODY)]


def padded_size(message: Message) -> int:
    """Return the bytes of a message's attributes and payload together with their padding."""
    return len(message.body) - HEADER - SEAL


def message_id(day: int, body: bytes) -> bytes:
    """Return the id (32 bytes) of a sealed body on a day: a digest of both."""
    hashed = _of_day(day, len(body)).copy()
    hashed.update(body)
    return hashed.digest()


@lru_cache(maxsize=64)
def _of_day(day: int, size: int) -> blake2b:
    """Return the hash that ids of bodies of one size have begun with on a day; to be copied."""
    return begun(Domain.MESSAGE, day.to_bytes(8, "big"), last=size)


def check_message(message: Message) -> None:
    """Raise unless the body has one of the fixed sizes and the id is its hash.

    `DecodeError` for a size, `AuthenticationError` for an id. Every hop checks, so that no forged copy with a
    true message's id can travel and suppress it.
    """
    if len(message.body) not in _BODY_SIZES:
        raise DecodeError("a message's body has none of the fixed sizes")
    if message_id(message.day, message.body) != message.id:  # both are public
        raise AuthenticationError("a message's id is not the hash of its body")
