"""A file that a daemon's operator gave out, from disk or standard input."""

from __future__ import annotations

import sys
from pathlib import Path

MOST = 64 * 1024  # bytes of what is to go into a configuration: `MAX_CONFIG`


def read_given(file: Path, most: int = MOST) -> tuple[bytes, str]:
    """Return a file's bytes (`-`: standard input's), and what to call it; raise `UsageError`.

    One more than `most` of them, where there are more: who takes them apart says so.
    """
    from hushcast_protocol.base.errors import UsageError

    if file == Path("-"):
        return sys.stdin.buffer.read(most + 1), "standard input"
    try:
        with file.open("rb") as opened:
            return opened.read(most + 1), str(file)
    except OSError as error:
        raise UsageError(f"{file} cannot be read: {error.strerror}") from None
