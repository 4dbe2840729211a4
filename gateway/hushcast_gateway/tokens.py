"""Tokens: what a program shows instead of a name and a password, and a configuration holds the hash of.

A token is drawn, not chosen: so long that nobody guesses it, a hash that takes no time is enough, and a flood
of wrong ones keeps nobody out. It has the form of ntfy's, whose clients look at it.
"""

from __future__ import annotations

import re
from typing import TypeGuard

from hushcast_protocol.base.crypto.hashes import Domain, digest
from hushcast_protocol.base.crypto.secrets import Randomness

_BEGINS = b"tk_"
_LETTERS = "abcdefghijklmnopqrstuvwxyz0123456789"
_LENGTH = 29  # letters behind `tk_`: 149 bits
_HASH = re.compile(r"[0-9a-f]{64}\Z")


def new_token(randomness: Randomness) -> str:
    """Draw a token."""
    drawn = int.from_bytes(randomness(32), "big")
    letters = []
    for _ in range(_LENGTH):
        drawn, rest = divmod(drawn, len(_LETTERS))
        letters.append(_LETTERS[rest])
    return f"{_BEGINS.decode()}{''.join(letters)}"


def is_token(password: bytes | None) -> TypeGuard[bytes]:
    """Tell whether this is to be a token, and no password."""
    return password is not None and password.startswith(_BEGINS)


def token_hash(token: bytes) -> str:
    """Return what a configuration holds of a token."""
    return digest(Domain.GATEWAY_TOKEN, token, size=32).hex()


def is_token_hash(text: str) -> bool:
    """Tell whether this can be the hash of a token."""
    return _HASH.match(text) is not None
