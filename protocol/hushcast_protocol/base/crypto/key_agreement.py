"""Agreement of keys on X25519, also between those who are known by an Ed25519 key alone.

One key for signatures and for agreement is safe with these two schemes, as each hashes under a domain of its
own (Degabriele and others, On the Joint Security of Encryption and Signature in EMV, 2012, section 3).
"""

from __future__ import annotations

from nacl.bindings import (
    crypto_scalarmult,
    crypto_sign_ed25519_pk_to_curve25519,
    crypto_sign_ed25519_sk_to_curve25519,
)
from nacl.exceptions import RuntimeError as SodiumError

from hushcast_protocol.base.crypto.secrets import AgreementKey, Seed
from hushcast_protocol.base.errors import AuthenticationError


def agreement_key(seed: Seed) -> AgreementKey:
    """Return the X25519 key of whoever has an Ed25519 key."""
    signing = seed.signing_key()
    return AgreementKey(crypto_sign_ed25519_sk_to_curve25519(seed.reveal() + bytes(signing.verify_key)))


def agreement_public(public: bytes) -> bytes:
    """Return the public part of `agreement_key` (32 bytes), of the Ed25519 key's public part.

    Raises `AuthenticationError` where that is no point of the group.
    """
    try:
        return crypto_sign_ed25519_pk_to_curve25519(public)
    except SodiumError:
        raise AuthenticationError("an Ed25519 key is not in the group") from None


def shared_secret(own: AgreementKey, other: bytes) -> bytes:
    """Return what both ends alone know (32 bytes), to be hashed; `other` is a public key.

    Raises `AuthenticationError` where it is of low order, so that anybody would know the outcome.
    """
    try:
        return crypto_scalarmult(own.reveal(), other)
    except SodiumError:
        raise AuthenticationError("an X25519 key is of low order") from None
