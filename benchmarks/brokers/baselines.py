"""The two approaches that the paper finds wanting (§IV), as what a broker is shown of a word; for the lab.

`hash`: a hash that anybody can compute. `group`: the word sealed under the key of a group.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable

from nacl.bindings import crypto_secretbox, crypto_secretbox_NONCEBYTES, crypto_secretbox_open
from nacl.exceptions import CryptoError

from hushcast_analytics.brokers.dictionary_attack import Dictionary, named

SHOWN = 16  # bytes of a hash
_NONCE = bytes(crypto_secretbox_NONCEBYTES)  # equal words are to look equal to a member that compares


def hashed(word: bytes) -> bytes:
    """Return what brokers are shown of a word under `hash`."""
    return hashlib.blake2b(word, digest_size=SHOWN).digest()


def sealed(word: bytes, key: bytes) -> bytes:
    """Return what brokers are shown of a word under `group`."""
    return crypto_secretbox(word, _NONCE, key)


def read_hashes(shown: Iterable[bytes], words: Iterable[tuple[bytes, str]]) -> set[str]:
    """Return the names that anybody with a dictionary finds under `hash`, a broker or who only listens."""
    return named(shown, Dictionary({hashed(word): name for word, name in words}))


def read_sealed(shown: Iterable[bytes], keys: Iterable[bytes]) -> set[bytes]:
    """Return the words that whoever has some keys opens: all of a group's for a member, none for others."""
    pairs = ((box, key) for key in keys for box in shown)
    opened = (_opened(box, key) for box, key in pairs)
    return {word for word in opened if word is not None}


def _opened(box: bytes, key: bytes) -> bytes | None:
    try:
        return crypto_secretbox_open(box, _NONCE, key)
    except CryptoError:
        return None
