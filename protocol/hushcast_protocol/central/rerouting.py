"""Re-routable encryption: who holds k'/k turns what is under k into what is under k', and reads nothing.

Two schemes over one group (VB §4.1; Raykova, Vo, Bellovin, Malkin 2009 use Pohlig and Hellman's cipher).
Deterministic, for tokens: k·H(token). Randomised, for messages: (r·k·G, M + r·G) for a random point M, and
the payload sealed under a key from M. Both are transformed by one multiplication.
"""

from __future__ import annotations

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
from nacl.exceptions import CryptoError

from hushcast_protocol.base.crypto.group import (
    Point,
    Scalar,
    added,
    base,
    check_point,
    hashed,
    multiplied,
    subtracted,
)
from hushcast_protocol.base.crypto.hashes import LABEL, Domain, digest
from hushcast_protocol.base.crypto.secrets import Randomness
from hushcast_protocol.base.errors import AuthenticationError
from hushcast_protocol.base.wire import Wire
from hushcast_protocol.content.messages import MAX_BODY

MAX_INSIDE = MAX_BODY + 256  # bytes of a message with one token
_NONCE = bytes(24)  # every key seals one payload alone
_ASSOCIATED = b"hushcast wrapped 1\x00"


class WrappedMessage(Wire, frozen=True, tag="wrapped"):
    """A message under somebody's key: two points, and the payload sealed under what they hide."""

    mask: Point  # r·k·G
    masked: Point  # M + r·G
    payload: Annotated[bytes, msgspec.Meta(min_length=TAG, max_length=MAX_INSIDE + TAG)]


def encrypted(key: Scalar, token: bytes) -> bytes:
    """Encrypt a token deterministically: the same under one key, different under another."""
    return multiplied(key, hashed(token))


def transformed(factor: Scalar, point: bytes) -> bytes:
    """Turn a token's encryption under k into that under k', with k'/k; `AuthenticationError` for no point."""
    return multiplied(factor, point)


def wrap(key: Scalar, inside: bytes, randomness: Randomness) -> WrappedMessage:
    """Encrypt bytes (`MAX_INSIDE` at most) under one's own key."""
    r, m = Scalar.draw(randomness), Scalar.draw(randomness)
    sealed = aead_seal(inside, _ASSOCIATED, _NONCE, _payload_key(base(m)))
    return WrappedMessage(base(r.times(key)), base(r.plus(m)), sealed)


def unwrap(key: Scalar, wrapped: WrappedMessage) -> bytes:
    """Return what is inside; raise `AuthenticationError` where it is not under this key, or was altered."""
    check_point(wrapped.masked)
    hidden = subtracted(wrapped.masked, multiplied(key.inverse(), wrapped.mask))
    try:
        return aead_open(wrapped.payload, _ASSOCIATED, _NONCE, _payload_key(hidden))
    except (CryptoError, ValueError):
        raise AuthenticationError("a wrapped message is not under this key") from None


def rerouted(factor: Scalar, wrapped: WrappedMessage) -> WrappedMessage:
    """Turn a message under k into one under k', with k'/k; `AuthenticationError` where a point is none."""
    check_point(wrapped.masked)
    return WrappedMessage(multiplied(factor, wrapped.mask), wrapped.masked, wrapped.payload)


def rerandomised(public: bytes, wrapped: WrappedMessage, randomness: Randomness) -> WrappedMessage:
    """Draw r anew, knowing k·G alone; the payload stays byte by byte. `AuthenticationError` as above."""
    check_point(wrapped.mask)
    check_point(wrapped.masked)
    r = Scalar.draw(randomness)
    mask = added(wrapped.mask, multiplied(r, public))
    return WrappedMessage(mask, added(wrapped.masked, base(r)), wrapped.payload)


def mark(wrapped: WrappedMessage) -> bytes:
    """Return 16 bytes by which traces tell whether two saw the same payload, which re-routing leaves."""
    return digest(Domain.PROOF, wrapped.payload, size=LABEL)


def _payload_key(hidden: bytes) -> bytes:
    return digest(Domain.WRAPPED_KEY, hidden)
