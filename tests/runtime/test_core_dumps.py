"""A daemon leaves no image of its memory, however it ends."""

from __future__ import annotations

import signal
import subprocess
import sys

import trio

PROGRAM = """
import os, sys
from hushcast_runtime.processes.core_dumps import core_dumps_are_forbidden, forbid_core_dumps
before = core_dumps_are_forbidden()
forbid_core_dumps()
print(before, core_dumps_are_forbidden(), flush=True)
os.kill(os.getpid(), 6)
"""


async def test_core_dumps_are_forbidden() -> None:
    done = await trio.run_process([sys.executable, "-c", PROGRAM], capture_stdout=True, check=False)
    assert done.stdout == b"False True\n"
    assert done.returncode == -signal.SIGABRT


def test_the_kernel_agrees() -> None:
    """It writes whether it dumped into the status of a process that ended."""
    import os

    process = subprocess.Popen([sys.executable, "-c", PROGRAM], stdout=subprocess.DEVNULL)
    _, status = os.waitpid(process.pid, 0)
    process.returncode = -os.WTERMSIG(status)
    assert os.WTERMSIG(status) == signal.SIGABRT
    assert not os.WCOREDUMP(status)
