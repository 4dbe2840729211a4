"""A file that a daemon's operator gave out, from disk or standard input."""

from __future__ import annotations

import sys
from pathlib import Path


def read_given(file: Path, most: int | None = None) -> tuple[bytes, str]:
    """Return a file's bytes (`-`: standard input's), and what to call it; raise `UsageError`.

    One more than `most` of them (as many as a configuration may have, unless given), where there are more:
    who takes them apart says so.
    """
    from hushcast_runtime.files import read_most
    from hushcast_runtime.processes.config import MAX_CONFIG

    most = MAX_CONFIG if most is None else most
    if file == Path("-"):
        return sys.stdin.buffer.read(most + 1), "standard input"
    return read_most(file, most), str(file)
