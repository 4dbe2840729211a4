"""Boxes that anybody can seal to an X25519 public key, and its owner alone can open."""

from __future__ import annotations

import hashlib

from nacl.bindings import crypto_box_easy, crypto_box_SECRETKEYBYTES, crypto_scalarmult_base
from nacl.exceptions import CryptoError
from nacl.public import PrivateKey, SealedBox

from hushcast_protocol.base.crypto.secrets import Randomness
from hushcast_protocol.base.errors import AuthenticationError
from hushcast_protocol.base.wire import Bytes32

SEALED_BOX = 32 + 16  # bytes that a box has besides: its one-time key, and a tag

_NONCE = 24


def seal_box(public: Bytes32, plain: bytes, randomness: Randomness) -> bytes:
    """Seal bytes to a public key; raise `AuthenticationError` where it is of low order.

    The bytes are those of libsodium's sealed box, which draws its own randomness; here the one-time key
    comes from `randomness`, so that simulations replay.
    """
    ephemeral = randomness(crypto_box_SECRETKEYBYTES)
    own = crypto_scalarmult_base(ephemeral)
    try:
        return own + crypto_box_easy(plain, _nonce(own, public), public, ephemeral)
    except CryptoError:
        raise AuthenticationError("an X25519 key is of low order") from None


def open_box(key: PrivateKey, sealed: bytes) -> bytes:
    """Return what was sealed to a key; raise `AuthenticationError` where nothing was."""
    try:
        return SealedBox(key).decrypt(sealed)
    except (CryptoError, ValueError, TypeError):
        raise AuthenticationError("a box is not sealed to this key") from None


def _nonce(own: bytes, recipient: bytes) -> bytes:
    # libsodium, crypto_box_seal: the nonce is BLAKE2b-192 of both public keys.
    return hashlib.blake2b(own + recipient, digest_size=_NONCE).digest()
