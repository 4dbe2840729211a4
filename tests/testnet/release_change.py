"""A program of a testnet ends as one release and starts as another."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import next_release
import trio

from hushcast_testnet import processes, testnet


def program(release: Path | None, *arguments: str) -> list[str]:
    """Return how Python runs something from the sources of a release, or from these."""
    path = [] if release is None else ["/usr/bin/env", f"PYTHONPATH={next_release.path_of(release)}"]
    return [*path, sys.executable, *arguments]


async def hushcast_of(release: Path | None, *arguments: str, code: int = 0) -> str:
    """Run a command of a release to its end, with this exit code; return what it said, to either stream."""
    command = program(release, "-m", "hushcast_cli.main", *arguments)
    with trio.fail_after(60):
        done = await trio.run_process(command, capture_stdout=True, capture_stderr=True, check=False)
    told = (done.stdout + done.stderr).decode()
    assert done.returncode == code, told
    return told


async def begin_and_kill(net: Any, name: str, release: Path | None, after: float) -> None:
    """Start a program that does not run as a release, and kill it so many seconds later, wherever it is."""
    process = await net.launch(name, program(release))
    await trio.sleep(after)
    await processes.kill([process])


async def restart_as(net: Any, name: str, release: Path | None) -> None:
    """Start a program from the sources of a release, or from these; end it before, where it runs."""
    if testnet.holder(Path(net.member(name).state)) is not None:
        await net.end(name)
    await net.start(name, program(release))
