"""The readiness socket: in every state directory, for its owner alone, it tells whether a process is ready.

What looks after processes where there is no systemd, such as an engine for containers, asks here.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import msgspec
import trio

from hushcast_runtime.processes.doctors_socket import ask, tell
from hushcast_runtime.processes.readiness import Readiness

_MOST = 4096  # bytes of an answer, which is a line


async def tell_readiness(
    path: Path,
    readiness: Callable[[], Readiness],
    *,
    task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED,
) -> None:
    """Answer at the socket `path` until cancelled; raises `UsageError` where it cannot be opened."""

    async def answer() -> bytes:
        await trio.lowlevel.checkpoint()
        return msgspec.json.encode(readiness()) + b"\n"

    await tell(path, answer, "the readiness socket", task_status=task_status)


async def ask_readiness(path: Path) -> Readiness | None:
    """Return how ready the process at the socket `path` is; `None` where none answers."""
    try:
        return msgspec.json.decode(await ask(path, _MOST), type=Readiness)
    except msgspec.MsgspecError:
        return None
