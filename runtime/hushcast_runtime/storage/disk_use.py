"""How much room a state takes, and how much there is."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

DISK_GAUGES = {
    "state_bytes": "bytes on disk of all files in the state directory",
    "disk_free_bytes": "bytes that the daemon's user may still write on the disk of the state directory",
}
"""Of every daemon, beside the gauges of its own."""


def disk_readings(state: Path) -> dict[str, float]:
    """Return the values of `DISK_GAUGES` for a state directory."""
    return {"state_bytes": float(sum(_sizes(state))), "disk_free_bytes": float(shutil.disk_usage(state).free)}


def _sizes(folder: Path) -> Iterator[int]:
    for place, _, names in os.walk(folder):
        for name in names:
            with suppress(FileNotFoundError):  # it is gone meanwhile, as a journal of the database
                yield Path(place, name).lstat().st_blocks * 512
