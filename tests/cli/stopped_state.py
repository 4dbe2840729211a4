"""The state of a daemon that does not run, as far as commands look at it."""

from __future__ import annotations

import os
import sqlite3
from pathlib import Path

from hushcast_runtime.storage.state_layout import DATABASE

RELAY_KEYS = ("identity.key", "service.key", "parcel.key", "filter.key")


def give_state(folder: Path, version: int = 1, keys: tuple[str, ...] = RELAY_KEYS) -> None:
    """Make a state of a version, with these keys."""
    folder.mkdir(mode=0o700)
    database = sqlite3.connect(folder / DATABASE)
    database.execute(f"PRAGMA user_version={version}")
    database.close()
    for key in keys:
        (folder / key).write_bytes(os.urandom(32))
