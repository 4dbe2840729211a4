"""Processes that the harness starts and ends, and what CPU and memory they take."""

from __future__ import annotations

import gc
import os
import socket
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import trio

from benchmarks.figures import PeerMissing
from benchmarks.peers.installed import ROOT

START_WITHIN = 30.0  # seconds
STOP_WITHIN = 5.0  # seconds
_SCHEDULED = 2  # which of a process's clocks: `clock_getcpuclockid` of Linux
STALLED_AFTER = 20.0  # seconds without a delivery


@contextmanager
def running(command: list[str], log: Path) -> Iterator[subprocess.Popen[bytes]]:
    """Run a process from the root of the sources; end it on leaving."""
    with log.open("wb") as sink:
        process = subprocess.Popen(  # noqa: S603
            command, cwd=ROOT, stdin=subprocess.DEVNULL, stdout=sink, stderr=subprocess.STDOUT
        )
    with ended(process):
        yield process


@contextmanager
def ended(process: subprocess.Popen[bytes], within: float = STOP_WITHIN) -> Iterator[subprocess.Popen[bytes]]:
    """End a process on leaving, by force after so many seconds."""
    try:
        yield process
    finally:
        process.terminate()
        try:
            process.wait(within)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def cpu_seconds(process: subprocess.Popen[bytes]) -> float:
    """Return the CPU time that a process has taken, all threads of it: the kernel's own count, in ns."""
    return time.clock_gettime(~process.pid << 3 | _SCHEDULED)


def resident(pid: int | None = None) -> int:
    """Return the bytes of a process that are in memory; of this one unless told, without its garbage."""
    if pid is None:
        gc.collect()
    return int(Path(f"/proc/{pid or 'self'}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def printed_by(module: str, *arguments: str) -> float:
    """Return the number that a module prints in a process of its own: so memory is nobody else's."""
    command = [sys.executable, "-m", module, *arguments]
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, check=True)  # noqa: S603
    return float(done.stdout)


def free_port() -> int:
    """Return a loopback port of the kernel's choice, for a peer that cannot choose one itself."""
    with socket.socket() as chosen:
        chosen.bind(("127.0.0.1", 0))
        return int(chosen.getsockname()[1])


async def connect(port: int, process: subprocess.Popen[bytes], log: Path) -> trio.SocketStream:
    """Connect to a process that is starting; raise `PeerMissing` if it ends or does not listen."""
    with trio.move_on_after(START_WITHIN):
        while process.poll() is None:
            try:
                return await trio.open_tcp_stream("127.0.0.1", port)
            except OSError:
                await trio.sleep(0.1)
    raise PeerMissing(f"it does not listen: {last_line(log)}")


def last_line(log: Path) -> str:
    """Return the last line of a log."""
    lines = log.read_text(errors="replace").strip().splitlines()
    return lines[-1] if lines else "it said nothing"


class Progress:
    """Counts deliveries at each receiver, and holds the sender within a window of the slowest."""

    WINDOW = 1024  # messages between sender and slowest receiver; 1.2 MB
    BATCH = 64  # messages that the sender writes at once

    def __init__(self, receivers: int, window: int = WINDOW) -> None:
        self._window = window
        self._received = [0] * receivers
        self._changed = trio.Event()

    @property
    def received(self) -> list[int]:
        """How many each receiver has."""
        return self._received

    def note(self, receiver: int, count: int) -> None:
        """Count deliveries."""
        self._received[receiver] += count
        self._changed.set()

    async def until(self, each: int) -> None:
        """Wait until every receiver has that many; raise `PeerMissing` when nothing comes any more."""
        while min(self._received) < each:
            self._changed = trio.Event()
            with trio.move_on_after(STALLED_AFTER) as waiting:
                await self._changed.wait()
            if waiting.cancelled_caught:
                raise PeerMissing(f"messages were lost: {self._received} of {each} arrived")

    async def measure(self, count: int, send: Callable[[int, int], Awaitable[None]]) -> float:
        """Send messages in batches by `await send(first, last)`; return the seconds until all arrived."""
        start = min(self._received)
        began = trio.current_time()
        for first in range(0, count, self.BATCH):
            last = min(first + self.BATCH, count)
            await self.until(start + last - self._window)
            await send(first, last)
        await self.until(start + count)
        return trio.current_time() - began
