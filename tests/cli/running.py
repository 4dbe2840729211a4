"""Runs the real command line in a process of its own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import forking
import trio

COMMAND = [sys.executable, "-m", "hushcast_cli.start"]
STATES = "/home/alice/states"  # short: tor's sockets are in there
WITHIN = 30.0  # seconds; measured below one, and other work may share the machine
ENOUGH = "5"  # seconds of a --timeout in which the command does first what it is to have done


@dataclass(frozen=True)
class Outcome:
    """How a command ended and what it printed."""

    code: int
    stdout: bytes
    stderr: str

    @property
    def objects(self) -> list[Any]:
        """Standard output as JSON objects, one a line; fails if there is anything else."""
        lines = self.stdout.decode().splitlines()
        objects = [json.loads(line) for line in lines]
        assert all(isinstance(value, dict) for value in objects)
        return objects

    @property
    def error(self) -> str:
        """The one line on standard error; fails if there is more or less."""
        (line,) = self.stderr.splitlines()
        assert line.startswith("hushcast: ")
        return line.removeprefix("hushcast: ")


def environment(**variables: str) -> dict[str, str]:
    """Return an environment in which nothing of ours is set but `variables`."""
    ours = ("HUSHCAST_", "_HUSHCAST_", "XDG_RUNTIME_DIR")
    rest = {name: value for name, value in os.environ.items() if not name.startswith(ours)}
    return rest | variables


async def hushcast(
    *arguments: str | bytes | Path, stdin: bytes = b"", env: dict[str, str] | None = None
) -> Outcome:
    """Run a command to its end."""
    with trio.fail_after(WITHIN):
        code, stdout, stderr = await forking.run(arguments, stdin, environment() if env is None else env)
    return Outcome(code, stdout, stderr.decode())


async def until(is_so: Callable[[], bool]) -> None:
    """Wait for something that another process does."""
    with trio.fail_after(WITHIN):
        while not is_so():  # noqa: ASYNC110 - another process sets nothing here
            await trio.sleep(0.05)


async def side_by_side(*commands: Sequence[str | Path]) -> list[Outcome]:
    """Run commands to their ends, two at a time; return their outcomes in the order given."""
    outcomes: dict[int, Outcome] = {}
    limit = trio.CapacityLimiter(2)

    async def one(number: int, command: Sequence[str | Path]) -> None:
        async with limit:
            outcomes[number] = await hushcast(*command)

    async with trio.open_nursery() as nursery:
        for number, command in enumerate(commands):
            nursery.start_soon(one, number, command)
    return [outcomes[number] for number in range(len(commands))]


class Running:
    """A command that goes on; reads its standard output line by line."""

    def __init__(self, process: trio.Process) -> None:
        self.process = process
        self._buffer = bytearray()

    @classmethod
    async def start(cls, *arguments: str | Path, **variables: str) -> Running:
        """Start a command; end it with `outcome`."""
        process = await trio.lowlevel.open_process(
            [*COMMAND, *arguments],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=environment(**variables),
        )
        return cls(process)

    async def line(self) -> bytes:
        """Return the next line of standard output."""
        assert self.process.stdout is not None
        with trio.fail_after(WITHIN):
            while b"\n" not in self._buffer:
                data = await self.process.stdout.receive_some()
                assert data, "standard output ended"
                self._buffer += data
        line, _, rest = bytes(self._buffer).partition(b"\n")
        self._buffer = bytearray(rest)
        return line

    async def object(self) -> Any:
        """Return the next line of standard output as JSON."""
        return json.loads(await self.line())

    async def outcome(self) -> Outcome:
        """Wait for the end; return what was not yet read of standard output."""
        assert self.process.stdout is not None
        assert self.process.stderr is not None
        with trio.fail_after(WITHIN):
            async with self.process.stdout, self.process.stderr:
                stdout = bytes(self._buffer) + b"".join([part async for part in self.process.stdout])
                stderr = b"".join([part async for part in self.process.stderr])
                code = await self.process.wait()
        return Outcome(code, stdout, stderr.decode())


class Terminal:
    """A pseudo-terminal: a command writes to `slave`, the test reads what a person would see."""

    def __init__(self) -> None:
        self._master, self.slave = os.openpty()
        self.seen = b""

    def __enter__(self) -> Terminal:
        return self

    def __exit__(self, *exc: object) -> None:
        os.close(self._master)
        os.close(self.slave)

    async def until(self, expected: bytes) -> None:
        """Read until `expected` is seen."""
        with trio.fail_after(WITHIN):
            while expected not in self.seen:
                await trio.lowlevel.wait_readable(self._master)
                self.seen += os.read(self._master, 65536)
