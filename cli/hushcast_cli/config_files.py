"""Writes configurations: a crash leaves the old file or the new one, never half of it."""

from __future__ import annotations

import os
from pathlib import Path

from hushcast_runtime.files import replace_file


def write_whole(file: Path, text: str, mode: int) -> None:
    """Write a file with a mode; one that is replaced keeps its owner and group where that is permitted."""
    file = file.resolve()  # a link stays one

    def prepare(descriptor: int) -> None:
        if file.exists() and os.geteuid() == 0:
            before = file.stat()
            os.fchown(descriptor, before.st_uid, before.st_gid)
        os.fchmod(descriptor, mode)

    replace_file(file, text.encode(), prepare)
