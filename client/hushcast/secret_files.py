"""Files that hold secrets: links of private topics, keys of authors."""

from __future__ import annotations

import os
import stat
from pathlib import Path

from hushcast_protocol.base.errors import UsageError, unreadable


def read_private(path: Path, most: int, what: str) -> tuple[bytes, bool]:
    """Return a file's bytes, `most` and one at most, and whether nobody but its owner can read it.

    Raises `UsageError`, which says that `what` cannot be read.
    """
    try:
        with path.open("rb", buffering=0) as file:
            # Checked on the open file: the path may lead to another file a moment later (a race).
            alone = not stat.S_IMODE(os.fstat(file.fileno()).st_mode) & 0o077
            return read_all(file.fileno(), most), alone
    except OSError as error:
        raise unreadable(f"the {what} {path}", error) from None


def read_key(path: Path, size: int, makes_one: str) -> bytes:
    """Return the key of `size` bytes in a file that only its owner can read; raise `UsageError`.

    `makes_one` is the command that makes such a file.
    """
    data, alone = read_private(path, size, "key file")
    if not alone:
        raise UsageError(f"others can read the key file {path}: chmod 600 it, or make another key")
    if len(data) != size:
        raise UsageError(f"{path} is no key: `{makes_one}` makes one")
    return data


def write_new(path: Path, data: bytes, what: str) -> None:
    """Write a file that only its owner can read; raise `UsageError` rather than overwrite one."""
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    except FileExistsError:
        raise UsageError(f"{path} exists: the {what} in it would be lost; name another file") from None
    except OSError as error:
        raise UsageError(f"{path} cannot be made: {error.strerror}") from None
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(descriptor)
    except OSError as error:
        path.unlink(missing_ok=True)
        raise UsageError(f"{path} cannot be written: {error.strerror}") from None


def read_all(descriptor: int, most: int) -> bytes:
    """Return the bytes of a descriptor to its end, `most` and one at most."""
    data = bytearray()
    while len(data) <= most and (part := os.read(descriptor, most + 1 - len(data))):
        data += part
    return bytes(data)
