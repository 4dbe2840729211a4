"""Onion service keys in the form tor takes them: the Ed25519 seed expanded, as in RFC 8032 section 5.1.5."""

from __future__ import annotations

import base64
import hashlib

from hushcast_protocol.base.addresses import Address, onion_address, split
from hushcast_protocol.base.crypto.secrets import Seed

_SUFFIX = ".onion"


def expanded_key(seed: Seed) -> str:
    """Return the key of `seed` as `ADD_ONION` takes it: base64 of 64 bytes, scalar and prefix.

    The result is as secret as the seed: it goes to tor and nowhere else.
    """
    digest = bytearray(hashlib.sha512(seed.reveal()).digest())
    digest[0] &= 248
    digest[31] &= 63
    digest[31] |= 64
    return base64.b64encode(digest).decode()


def service_id(seed: Seed) -> str:
    """Return the name tor knows the service of `seed` by: 56 characters, no suffix."""
    return service_of(onion_address(seed.public()))


def service_of(address: Address) -> str:
    """Return the 56 characters before `.onion` in an onion address."""
    return split(address)[0].removesuffix(_SUFFIX)
