"""Edits and writes configurations: as text, so that comments and order stay.

A crash leaves the old file or the new one, never half of it.
"""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import Any

from hushcast_protocol.base.errors import UsageError
from hushcast_runtime.files import acting_as_owner, replace_file
from hushcast_runtime.toml import read_toml


def parsed(text: str) -> dict[str, Any] | None:
    """Return the keys of a configuration, or of a part of one; `None` where it is not TOML."""
    try:
        return read_toml(text)
    except (ValueError, RecursionError):
        return None


def check_edited(fresh: str, expected: dict[str, Any] | None, where: str, what: str) -> None:
    """Raise `UsageError` unless an edited text says what it is to: TOML has more ways to write than one.

    `what` names the part that was edited; where nothing is `expected`, it cannot be.
    """
    if expected is None or parsed(fresh) != expected:
        raise UsageError(f"{where}: its {what} cannot be edited as written: put it in by hand")


def write_edited(file: Path, text: str) -> None:
    """Write an edited configuration, which keeps its mode; raise `UsageError` where that is not permitted.

    Root acts as the user whom the folder belongs to: that one could have laid a link to another's file there.
    """
    with acting_as_owner(file.absolute().parent):
        # Else the text of a file that is another's would end in one of this user's.
        if not os.access(file, os.R_OK, effective_ids=True):
            raise UsageError(f"{file} lies in a folder of somebody who may not read it: move it elsewhere")
        try:
            write_whole(file, text, stat.S_IMODE(file.stat().st_mode))
        except OSError as error:
            raise UsageError(f"{file} cannot be written: {error.strerror}") from None


def write_whole(file: Path, text: str, mode: int) -> None:
    """Write a file with a mode; one that is replaced keeps its owner and group where that is permitted."""
    file = file.resolve()  # a link stays one

    def prepare(descriptor: int) -> None:
        if file.exists() and os.geteuid() == 0:
            before = file.stat()
            os.fchown(descriptor, before.st_uid, before.st_gid)
        os.fchmod(descriptor, mode)

    replace_file(file, text.encode(), prepare)
