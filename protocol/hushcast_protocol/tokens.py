"""Topic → key → token → route element: each step one way, each day anew (design "Topic → tokens")."""

from __future__ import annotations

import hashlib

from nacl.pwhash import argon2id

from hushcast_protocol.hashes import LABEL, Domain, digest
from hushcast_protocol.profile import Profile
from hushcast_protocol.secrets import TopicKey
from hushcast_protocol.topics import Topic

ORIGIN = bytes(32)
"""The previous hop of a message that enters the overlay; no Ed25519 key is all zero."""

# Guessing an open topic costs this much a try, a day and a network; a daemon pays it once a topic and day.
STRETCH_OPERATIONS = 3
STRETCH_MEMORY = 32 * 1024 * 1024  # bytes

_ELEMENT_PERSON = Domain.ELEMENT.value


def topic_key(topic: Topic, network: bytes, day: int) -> TopicKey:
    """Derive the key of an open topic for one day: Argon2id over its name, salted with network and day.

    Takes tens of milliseconds and 32 MiB on purpose: call it from a worker thread.
    """
    salt = digest(Domain.SALT, network, day.to_bytes(8, "big"), size=argon2id.SALTBYTES)
    key = argon2id.kdf(
        TopicKey.LENGTH, topic.name.encode(), salt, opslimit=STRETCH_OPERATIONS, memlimit=STRETCH_MEMORY
    )
    return TopicKey(key)


def token(key: TopicKey, part: bytes = b"") -> bytes:
    """Return the token (16 bytes) of one part of a topic; a label topic has the one part `b""`."""
    return digest(Domain.TOKEN, part, key=key.reveal(), size=LABEL)


def element(profile: Profile, token: bytes, relay: bytes, previous: bytes) -> bytes:
    """Return the route element (16 bytes) that `relay` looks up for `token` coming from `previous`.

    `previous` is a relay's identity key or `ORIGIN`. Under a profile without edge elements, as published
    (VB §4.2), neither relay nor previous hop counts. All inputs have fixed lengths.
    """
    data = token + relay + previous if profile.edge_elements else token
    return hashlib.blake2b(data, person=_ELEMENT_PERSON, digest_size=LABEL).digest()
