"""The long-lived keys of the server and of proxies, and where they are kept."""

from __future__ import annotations

from pathlib import Path

from hushcast_protocol.base.crypto.group import Scalar
from hushcast_protocol.base.crypto.secrets import Randomness
from hushcast_protocol.base.errors import UsageError
from hushcast_runtime.files import load_or_create, write_private

SERVER_KEYS = ("server.key", "service.key", "sealing.key", "group.key")
PROXY_KEYS = ("proxy.key", "service.key")


def load_scalar(path: Path, randomness: Randomness) -> Scalar:
    """Return the scalar kept in a file, drawing it the first time."""
    if not path.exists():
        write_private(path, Scalar.draw(randomness).reveal())
    try:
        return Scalar(load_or_create(path, Scalar.LENGTH, randomness))
    except ValueError:
        raise UsageError(f"{path} does not hold a key: restore it from a backup") from None
