"""A file that a daemon's operator gave out, from disk or standard input."""

from __future__ import annotations

import sys
from pathlib import Path


def read_given(file: Path) -> tuple[bytes, str]:
    """Return a file's bytes (`-`: standard input's), and what to call it; raise `UsageError`."""
    from hushcast_protocol.base.errors import UsageError
    from hushcast_runtime.config import MAX_CONFIG

    if file == Path("-"):
        return sys.stdin.buffer.read(MAX_CONFIG + 1), "standard input"
    try:
        with file.open("rb") as opened:
            return opened.read(MAX_CONFIG + 1), str(file)
    except OSError as error:
        raise UsageError(f"{file} cannot be read: {error.strerror}") from None
