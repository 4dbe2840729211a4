"""A message: an id that is the hash of its sealed body, the tokens it is routed by, and its trail."""

from __future__ import annotations

import hmac
from typing import Annotated

import msgspec
from nacl.bindings import (
    crypto_aead_xchacha20poly1305_ietf_ABYTES as TAG,
)
from nacl.bindings import (
    crypto_aead_xchacha20poly1305_ietf_decrypt as aead_open,
)
from nacl.bindings import (
    crypto_aead_xchacha20poly1305_ietf_encrypt as aead_seal,
)
from nacl.bindings import (
    crypto_aead_xchacha20poly1305_ietf_NPUBBYTES as NONCE,
)
from nacl.exceptions import CryptoError

from hushcast_protocol.errors import AuthenticationError, DecodeError, Refusal
from hushcast_protocol.hashes import Domain, digest
from hushcast_protocol.secrets import Randomness, TopicKey
from hushcast_protocol.trail import TRAIL_SIZE, Trail
from hushcast_protocol.wire import Bytes16, Bytes32, Counter, Wire

MAX_PAYLOAD = 256 * 1024  # bytes
PADDED_SIZES = (1024, 4 * 1024, 16 * 1024, 64 * 1024, MAX_PAYLOAD)  # a body's size tells one of five
MAX_TOKENS = 80  # a message asks the routing table this often at most

_HEADER = 5  # bytes before the payload: version, length
_VERSION = 1
SEAL = NONCE + TAG  # bytes
MAX_BODY = _HEADER + MAX_PAYLOAD + SEAL
_BODY_SIZES = frozenset(_HEADER + size + SEAL for size in PADDED_SIZES)


class Message(Wire, frozen=True, tag="message"):
    """What travels: no author, no time, no hop count (design "Publish")."""

    id: Bytes32
    day: Counter
    tokens: Annotated[tuple[Bytes16, ...], msgspec.Meta(min_length=1, max_length=MAX_TOKENS)]
    trail: Annotated[bytes, msgspec.Meta(min_length=TRAIL_SIZE, max_length=TRAIL_SIZE)]
    body: Annotated[bytes, msgspec.Meta(max_length=MAX_BODY)]


def message_id(day: int, body: bytes) -> bytes:
    """Return the id (32 bytes) of a sealed body on a day."""
    return digest(Domain.MESSAGE, day.to_bytes(8, "big"), body)


def check_message(message: Message) -> None:
    """Raise unless the body has one of the fixed sizes and the id is its hash.

    `DecodeError` for a size, `AuthenticationError` for an id. Every hop checks, so that no forged copy with a
    true message's id can travel and suppress it.
    """
    if len(message.body) not in _BODY_SIZES:
        raise DecodeError("a message's body has none of the fixed sizes")
    if not hmac.compare_digest(message_id(message.day, message.body), message.id):
        raise AuthenticationError("a message's id is not the hash of its body")


def compose(
    key: TopicKey, day: int, tokens: tuple[bytes, ...], payload: bytes, randomness: Randomness
) -> Message:
    """Seal `payload` (0 to 256 KiB) under the topic's key for `day`, padded, with an empty trail.

    Raises `Refusal` if the payload is too large.
    """
    if len(payload) > MAX_PAYLOAD:
        raise Refusal(f"the payload has {len(payload)} bytes: at most {MAX_PAYLOAD} are possible")
    padded = next(size for size in PADDED_SIZES if size >= len(payload))
    plain = bytes([_VERSION]) + len(payload).to_bytes(4, "big") + payload.ljust(padded, b"\x00")
    nonce = randomness(NONCE)
    sealed = nonce + aead_seal(plain, _body_data(day), nonce, _body_key(key))
    return Message(message_id(day, sealed), day, tokens, Trail().to_bytes(), sealed)


def open_body(key: TopicKey, message: Message) -> bytes:
    """Return the payload; raise `AuthenticationError` or `DecodeError` if it is not the topic's."""
    nonce, sealed = message.body[:NONCE], message.body[NONCE:]
    try:
        plain = aead_open(sealed, _body_data(message.day), nonce, _body_key(key))
    except (CryptoError, ValueError):
        raise AuthenticationError("a message's body is not sealed under the topic's key") from None
    if plain[:1] != bytes([_VERSION]):
        raise DecodeError("a message's body has an unknown version")
    length = int.from_bytes(plain[1:_HEADER], "big")
    if length > len(plain) - _HEADER:
        raise DecodeError("a message's body states a wrong length")
    return plain[_HEADER : _HEADER + length]


def _body_key(key: TopicKey) -> bytes:
    return digest(Domain.BODY_KEY, key=key.reveal())


def _body_data(day: int) -> bytes:
    return b"hushcast body 1\x00" + day.to_bytes(8, "big")
