"""Figure: what `import hushcast` passes through the control socket, against a connection for each request.

As a program, `python -m benchmarks.library SOCKET STATE`, it is the daemon at the other end: that of the
tests, with a disk and without a network, so that the socket, the library and the disk are what is measured.
"""

from __future__ import annotations

import os
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path

import anyio
import trio

import hushcast
from benchmarks.figures import Effort, Figure, PeerMissing, alternate_async, at_least, missing
from benchmarks.peers.installed import ROOT
from benchmarks.processes import last_line, running
from hushcast_runtime.storage.store import SqliteStore

PAYLOAD = 1024  # bytes
AT_ONCE = 64  # publications under way
MESSAGES = 4000  # a run, on one connection
CONNECTIONS = 400  # a run
LET_COME = 500  # messages handed in before they are waited for: the test's network holds 1,000
TOPIC, READ = "bench", "bench/read"
START_WITHIN = 30.0  # seconds


def figures(effort: Effort) -> Iterator[Figure]:
    """Measure in turns: publishing, then reading with acknowledgements."""
    with tempfile.TemporaryDirectory(prefix="hushcast-bench-") as place:
        directory = Path(place)
        socket, log = directory / "control.sock", directory / "log"
        command = [sys.executable, "-m", "benchmarks.library", str(socket), str(directory / "state.db")]
        with running(command, log):
            try:
                found = trio.run(_measure, socket, effort)
            except hushcast.HushcastError as why:
                yield missing("the library", None, "a connection each", f"{why}: {last_line(log)}", None)
                return
    size = f"{PAYLOAD:,} bytes, messages a second"
    publishing = f"import hushcast, enqueue on disk, {AT_ONCE} at once, {size}: at least times"
    reading = f"import hushcast, read and acknowledge automatically, {size}: at least times"
    yield _compared(publishing, found, "publish", "a connection each")
    yield _compared(reading, found, "read", "an acknowledgement and a connection each")


def _compared(name: str, found: dict[str, float | PeerMissing], what: str, peer: str) -> Figure:
    ours, theirs = found[what], found[f"{what}, a connection each"]
    assert not isinstance(ours, PeerMissing)
    assert not isinstance(theirs, PeerMissing)
    return at_least(name, ours, peer, theirs, None)


async def _measure(socket: Path, effort: Effort) -> dict[str, float | PeerMissing]:
    async with hushcast.connect(socket, wait=True, timeout=START_WITHIN) as daemon:
        with trio.fail_after(START_WITHIN):
            async with daemon.subscribe(READ):
                pass
        program = _Program(socket, daemon, effort)
        await program.publish()  # all code has run, and the topic's key is derived
        return await alternate_async(
            effort.runs,
            {
                "publish": program.publish,
                "publish, a connection each": program.publish_apart,
                "read": program.read,
                "read, a connection each": program.read_apart,
            },
        )


class _Program:
    """What a program does; each returns the messages a second."""

    def __init__(self, socket: Path, daemon: hushcast.Daemon, effort: Effort) -> None:
        self._socket = socket
        self._daemon = daemon
        self._many = effort.amount(MESSAGES)
        self._few = effort.amount(CONNECTIONS)
        self._cursor = 0

    async def publish(self) -> float:
        """Publish on one connection."""
        return await self._publish_all(self._many, lambda: self._daemon.enqueue(TOPIC, os.urandom(PAYLOAD)))

    async def publish_apart(self) -> float:
        """Publish on a connection for each message."""

        async def publish() -> None:
            async with hushcast.connect(self._socket) as daemon:
                await daemon.enqueue(TOPIC, os.urandom(PAYLOAD))

        return await self._publish_all(self._few, publish)

    async def read(self) -> float:
        """Read what waits, with automatic acknowledgements."""
        await self._let_come(self._many)
        began = time.perf_counter()
        async with self._daemon.subscribe(READ) as messages:
            for _ in range(self._many):
                await anext(messages)
        return self._many / (time.perf_counter() - began)

    async def read_apart(self) -> float:
        """Read what waits, and acknowledge each message on a connection of its own."""
        await self._let_come(self._few)
        began = time.perf_counter()
        async with self._daemon.subscribe(READ, acknowledge="manual") as messages:
            for _ in range(self._few):
                message = await anext(messages)
                async with hushcast.connect(self._socket) as other:
                    await other.acknowledge(READ, message.cursor)
        return self._few / (time.perf_counter() - began)

    async def _publish_all(self, count: int, publish: Callable[[], Awaitable[object]]) -> float:
        numbers = iter(range(count))

        async def go_on() -> None:
            for _ in numbers:
                await publish()

        began = time.perf_counter()
        async with anyio.create_task_group() as tasks:
            for _ in range(AT_ONCE):
                tasks.start_soon(go_on)
        return count / (time.perf_counter() - began)

    async def _let_come(self, count: int) -> None:
        """Let so many messages come to the subscription, and wait until it has them."""
        while count:
            some = min(count, LET_COME)
            await self._publish_all(some, lambda: self._daemon.enqueue(READ, os.urandom(PAYLOAD)))
            self._cursor += some
            count -= some
            while await self._newest() < self._cursor:  # noqa: ASYNC110 - another process makes it true
                await trio.sleep(0.01)

    async def _newest(self) -> int:
        return next(one.cursor for one in await self._daemon.subscriptions() if one.topic == READ)


async def _serve(socket: Path, state: Path) -> None:
    sys.path[:0] = [str(ROOT / "tests" / folder) for folder in ("cli", "carriers")]
    from fake_daemon import FakeDaemon

    store = SqliteStore(state)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(store.run)
        await FakeDaemon(socket, store=store).start(nursery)


if __name__ == "__main__":
    trio.run(_serve, Path(sys.argv[1]), Path(sys.argv[2]))
