"""An owner's key, in a file that only the owner can read."""

from __future__ import annotations

from pathlib import Path

from hushcast.secret_files import read_key, write_new
from hushcast_protocol.base.crypto.secrets import Randomness, Seed
from hushcast_protocol.base.errors import UsageError


def new_owner(path: Path, randomness: Randomness) -> Seed:
    """Make an owner's key in a new file; raise `UsageError` where that cannot be made."""
    seed = Seed.draw(randomness)
    write_new(path, seed.reveal(), "key")
    return seed


def read_owner(path: Path) -> Seed:
    """Return the key in a file that only its owner can read; raise `UsageError`."""
    return Seed(read_key(path, Seed.LENGTH, "hushcast located key new FILE"))


def read_public(text: str) -> bytes:
    """Return the owner's public key that a person typed; raise `UsageError`."""
    try:
        key = bytes.fromhex(text.strip())
    except ValueError:
        key = b""
    if len(key) != Seed.LENGTH:
        raise UsageError(
            f"{text!r} is no owner's key: it is the 64 digits that `hushcast located key new` prints"
        )
    return key
