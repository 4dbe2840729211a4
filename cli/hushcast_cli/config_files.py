"""Writes configurations: a crash leaves the old file or the new one, never half of it."""

from __future__ import annotations

import os
from pathlib import Path


def write_whole(file: Path, text: str, mode: int) -> None:
    """Write a file with a mode; one that is replaced keeps its owner and group where that is permitted."""
    file = file.resolve()  # a link stays one
    part = file.with_name(file.name + ".part")
    part.unlink(missing_ok=True)
    with os.fdopen(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as opened:
        if file.exists():
            before = file.stat()
            if os.geteuid() == 0:
                os.fchown(opened.fileno(), before.st_uid, before.st_gid)
        os.fchmod(opened.fileno(), mode)
        opened.write(text.encode())
        opened.flush()
        os.fsync(opened.fileno())
    part.replace(file)
