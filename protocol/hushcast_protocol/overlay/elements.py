"""Route elements: a relay's look-up keys for tokens, different at every relay and for every previous hop."""

from __future__ import annotations

import hashlib

from hushcast_protocol.base.crypto.hashes import LABEL, Domain
from hushcast_protocol.overlay.profile import Profile

ORIGIN = bytes(32)
"""The previous hop of a message that enters the overlay; no Ed25519 key is all zero."""

_ELEMENT_PERSON = Domain.ELEMENT.value


def element(profile: Profile, token: bytes, relay: bytes, previous: bytes) -> bytes:
    """Return the route element (16 bytes) that `relay` looks up for `token` coming from `previous`.

    `previous` is a relay's identity key or `ORIGIN`. Under a profile without edge elements, as published
    (VB §4.2), neither relay nor previous hop counts. All inputs have fixed lengths.
    """
    data = token + relay + previous if profile.edge_elements else token
    return hashlib.blake2b(data, person=_ELEMENT_PERSON, digest_size=LABEL).digest()
