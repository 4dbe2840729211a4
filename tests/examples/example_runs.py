"""An example as a process of its own, and the daemon beside it."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path

import trio
from fake_daemon import FakeDaemon

EXAMPLES = Path(__file__).parents[2] / "examples"
WITHIN = 30.0  # seconds for whatever an example is to do: the machine is shared


class Running:
    """An example that runs."""

    def __init__(self, process: trio.Process) -> None:
        self.process = process
        self._read = b""

    async def line(self) -> str:
        """Return the next line that it prints."""
        assert self.process.stdout is not None
        with trio.fail_after(WITHIN):
            while b"\n" not in self._read:
                more = await self.process.stdout.receive_some()
                assert more, f"it ended: {self._read.decode()}"
                self._read += more
        line, _, self._read = self._read.partition(b"\n")
        return line.decode()

    async def until(self, wanted: str) -> list[str]:
        """Return the lines up to one that holds a text."""
        lines = [await self.line()]
        while wanted not in lines[-1]:
            lines.append(await self.line())
        return lines

    async def say(self, text: str) -> None:
        """Type a line."""
        assert self.process.stdin is not None
        await self.process.stdin.send_all(text.encode() + b"\n")

    async def end(self, number: int | None = None) -> int:
        """Send a signal, if one is named; wait for the end, and return the exit status."""
        if number is not None:
            self.process.send_signal(number)
        with trio.fail_after(WITHIN):
            return await self.process.wait()


class Place:
    """A daemon, a directory to run examples in, and the examples that run."""

    def __init__(self, directory: Path, nursery: trio.Nursery) -> None:
        self.directory = directory
        self.daemon = FakeDaemon(directory / "control.sock")
        self._nursery = nursery
        self.running: list[Running] = []

    async def start(self) -> None:
        """Start the daemon, with what it knew when it stopped."""
        await self.daemon.start(self._nursery)

    async def stop(self) -> None:
        """Let the daemon die."""
        self.daemon.stop()
        while self.daemon.socket.exists():  # noqa: ASYNC110
            await trio.sleep(0.01)

    async def run(self, name: str, *arguments: object) -> Running:
        """Start an example; what it says on standard error comes with the rest."""
        process = await trio.lowlevel.open_process(
            ["node" if name.endswith(".mjs") else sys.executable, EXAMPLES / name, *map(str, arguments)],
            cwd=self.directory,
            env={**os.environ, "HUSHCAST_SOCKET": str(self.daemon.socket)},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        )
        self.running.append(Running(process))
        return self.running[-1]

    async def acknowledged(self, topic: str) -> int:
        """Return up to where the daemon knows messages as acknowledged."""
        return (await self.daemon.hold(topic)).inbox.progress.acknowledged

    async def until(self, holds: Callable[[], Awaitable[bool]]) -> None:
        """Wait until something holds at the daemon."""
        with trio.fail_after(WITHIN):
            while not await holds():  # noqa: ASYNC110
                await trio.sleep(0.01)
