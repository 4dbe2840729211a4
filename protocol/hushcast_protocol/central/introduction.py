"""The introduction: three parties make a transformation key that none of them could have made alone.

The user draws a key k and a blinding b, and seals b·k to the server. The server, whose key is s, gives the
proxy s/(b·k). The user gives the proxy b. So the proxy has s/k, and neither k nor s; the server has not b,
and so not k (VB §4.1; the blinding is ours). Proxy and user together have s, and so have proxy and server k.

What is sealed holds a secret, too: the pseudonym is its hash, and later requests for the pseudonym are proven
by it. A proxy that repeats an introduction gets the same factor again.
"""

from __future__ import annotations

import hmac
from collections.abc import Callable
from typing import Literal, NamedTuple

from nacl.bindings import crypto_box_seal, crypto_box_seal_open, crypto_scalarmult_base
from nacl.exceptions import CryptoError

from hushcast_protocol.base.crypto.group import Scalar, received_scalar
from hushcast_protocol.base.crypto.hashes import LABEL, Domain, digest
from hushcast_protocol.base.crypto.secrets import Secret
from hushcast_protocol.base.errors import AuthenticationError
from hushcast_protocol.base.wire import Bytes32, Counter, PublicKey, Wire, decoder, encode

MAX_SEALED = 256  # bytes; an introduction has about 150

PseudonymUse = Literal["publish", "subscribe"]


class PseudonymSecret(Secret):
    """What a user and the server know of a pseudonym, and no proxy does."""

    __slots__ = ()


class SealingKey(Secret):
    """The server's X25519 key, which introductions are sealed to."""

    __slots__ = ("_public",)

    def public(self) -> bytes:
        """Return the public key (32 bytes), computed once."""
        if not hasattr(self, "_public"):
            self._public = crypto_scalarmult_base(self._value)
        return self._public


class IntroductionContent(Wire, frozen=True, tag="introduction/1"):
    """What the server alone opens."""

    use: PseudonymUse
    day: Counter
    """The last day of the pseudonym."""
    blinded: Bytes32  # b·k
    secret: Bytes32


class OpenedIntroduction(NamedTuple):
    """An introduction as the server opened it."""

    pseudonym: bytes
    use: PseudonymUse
    day: int
    blinded: Scalar
    secret: PseudonymSecret


_decode: Callable[[bytes], IntroductionContent] = decoder(IntroductionContent, "introduction", MAX_SEALED)


def pseudonym_of(secret: PseudonymSecret) -> bytes:
    """Return the pseudonym (32 bytes)."""
    return digest(Domain.PSEUDONYM, secret.reveal())


def introduction(
    server: PublicKey, use: PseudonymUse, day: int, key: Scalar, blinding: Scalar, secret: PseudonymSecret
) -> bytes:
    """Return what a user sends the server through the proxy, which gets the blinding beside it."""
    sealed = IntroductionContent(use, day, blinding.times(key).reveal(), secret.reveal())
    return crypto_box_seal(encode(sealed), server)


def handed_in(sealed: bytes) -> bytes:
    """Return the digest (32 bytes) of an introduction, which its stamp is bound to."""
    return digest(Domain.STAMP, b"introduction", sealed)


def opened(key: SealingKey, sealed: bytes) -> OpenedIntroduction:
    """Open an introduction as the server; raise a `PeerError` where it is none."""
    try:
        plain = crypto_box_seal_open(sealed, key.public(), key.reveal())
    except (CryptoError, ValueError, TypeError):
        raise AuthenticationError("an introduction is not sealed to this server") from None
    found = _decode(plain)
    secret = PseudonymSecret(found.secret)
    return OpenedIntroduction(
        pseudonym_of(secret), found.use, found.day, received_scalar(found.blinded), secret
    )


def factor_for(server: Scalar, blinded: Scalar) -> Scalar:
    """Return s/(b·k), the server's answer to the proxy."""
    return server.times(blinded.inverse())


def transformation(blinding: Scalar, factor: Scalar) -> Scalar:
    """Return s/k, as the proxy computes it; its inverse leads from the server's key to the user's."""
    return blinding.times(factor)


def proof(secret: PseudonymSecret, *parts: bytes) -> bytes:
    """Return 16 bytes that prove a request of a pseudonym's, or an answer to it, between user and server."""
    return digest(Domain.PROOF, *parts, key=secret.reveal(), size=LABEL)


def check_proof(secret: PseudonymSecret, given: bytes, *parts: bytes) -> None:
    """Raise `AuthenticationError` where a proof does not hold."""
    if not hmac.compare_digest(proof(secret, *parts), given):
        raise AuthenticationError("a proof is not by who has the pseudonym")
