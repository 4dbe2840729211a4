"""File systems: of which kind the one of a state directory is, and on which a lock keeps others out."""

from __future__ import annotations

import os
import re
from pathlib import Path

from hushcast_protocol.base.errors import UsageError

LOCAL = frozenset({"bcachefs", "btrfs", "ext2", "ext3", "ext4", "f2fs", "overlay", "tmpfs", "xfs", "zfs"})
"""Kinds that one machine mounts at a time: its kernel knows all who have a lock there, and when they end."""

_MOUNTS = Path("/proc/self/mountinfo")
_ESCAPED = re.compile(r"\\([0-7]{3})")  # space, tab, line feed and backslash


def check_locks(state: Path) -> None:
    """Raise `UsageError` unless the lock on a state directory is known to keep all others out.

    Over a network it may hold for each machine alone (NFS with `nolock` or `local_lock`), or be given to
    another while whoever had it goes on writing.
    """
    kind = kind_of(state)
    if kind not in LOCAL:
        raise UsageError(
            f"standby: {state} is on a file system of the kind {kind}, on which two could have the state at "
            f"once: put it on one that this machine alone mounts ({', '.join(sorted(LOCAL))})"
        )


def kind_of(place: Path, mounts: Path = _MOUNTS) -> str:
    """Return the kind of the file system that a directory is on, as the kernel calls it, or `unknown`."""
    place = place.resolve()
    longest, kind = 0, "unknown"
    for line in os.fsdecode(mounts.read_bytes()).splitlines():
        before, _, behind = line.partition(" - ")
        where = Path(_ESCAPED.sub(lambda code: chr(int(code[1], 8)), before.split(" ")[4]))
        # Of two at one place the later one is what is seen.
        if len(where.parts) >= longest and place.is_relative_to(where):
            longest, kind = len(where.parts), behind.split(" ")[0]
    return kind
