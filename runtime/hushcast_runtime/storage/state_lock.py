"""The lock on a state directory, which one process has at a time, and who has it."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TextIO

from hushcast_protocol.base.errors import UsageError

# The kernel tells of locks a page at a time, and passes over some if others go meanwhile.
_LOOKS = 3


def take_lock(state: Path) -> TextIO | None:
    """Lock the state directory until the file that is returned is closed; `None` if it is taken.

    The kernel releases the lock however the process ends, and not before all of its threads have ended.
    """
    file = (state / "lock").open("a+")
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        # Where the directory was made anew meanwhile, the lock on the file of before keeps nobody out.
        if not os.path.samestat(os.fstat(file.fileno()), (state / "lock").stat()):
            raise BlockingIOError
    except (BlockingIOError, FileNotFoundError):
        file.close()
        return None
    file.truncate(0)
    file.write(f"{os.getpid()}\n")
    file.flush()
    return file


@contextmanager
def locked(state: Path) -> Iterator[None]:
    """Lock the state directory for this process; raises `UsageError` if a daemon holds it."""
    file = take_lock(state)
    if file is None:
        raise UsageError(f"another daemon is running with the state directory {state}: stop it first")
    with file:
        yield


def holder(state: Path) -> int | None:
    """Return the pid of the daemon that runs with a state directory, `None` when there is none.

    Reads the kernel's list of locks: trying to take the lock could keep a daemon from starting at that
    moment.
    """
    try:
        inode = (state / "lock").stat().st_ino
        pid = (state / "lock").read_text().strip()
    except FileNotFoundError:
        return None
    for _ in range(_LOOKS):
        for line in Path("/proc/locks").read_text().splitlines():
            fields = line.split()
            if fields[1] == "FLOCK" and fields[5].endswith(f":{inode}") and _calls_itself(fields[4], pid):
                return int(fields[4])
    return None


def _calls_itself(process: str, pid: str) -> bool:
    """Tell whether a process has this pid in its own namespace, which may be that of a container."""
    try:
        status = Path(f"/proc/{process}/status").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return False
    return any(line.startswith("NSpid:") and line.split()[-1] == pid for line in status.splitlines())
