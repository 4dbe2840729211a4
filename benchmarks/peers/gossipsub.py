"""py-libp2p's gossipsub: one relay in a process of its own, publisher and subscriber in another."""

from __future__ import annotations

import subprocess
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import trio

from benchmarks.figures import PeerMissing
from benchmarks.peers.installed import ROOT, python_with
from benchmarks.processes import START_WITHIN, cpu_seconds, ended

_MODULE = "benchmarks.peers.gossipsub_hosts"
_PATIENCE = 60.0  # seconds for one measurement


class Gossipsub:
    """A relay between a publisher and a subscriber."""

    def __init__(self, relay: subprocess.Popen[bytes], ends: subprocess.Popen[bytes]) -> None:
        self._relay = relay
        self._ends = ends
        self.cpu = 0.0
        """Microseconds of CPU that the relay took a message in the last measurement."""

    async def measure(self, count: int) -> float:
        """Pass `count` messages of 1 KiB; return the messages a second that the relay could take.

        The ends are slower than the relay. What counts is what it would pass with a core to itself.
        """
        assert self._ends.stdin is not None
        before = cpu_seconds(self._relay)
        self._ends.stdin.write(b"%d\n" % count)
        self._ends.stdin.flush()
        seconds = float(await _line(self._ends, _PATIENCE))
        used = cpu_seconds(self._relay) - before
        self.cpu = used / count * 1e6
        return count / min(seconds, max(used, 0.001))


@asynccontextmanager
async def start() -> AsyncIterator[Gossipsub]:
    """Run the hosts; raises `PeerMissing`."""
    python = python_with("libp2p")
    with ended(_popen(python, "relay")) as relay:
        address = (await _line(relay, START_WITHIN)).decode().strip()
        with ended(_popen(python, "ends", address)) as ends:
            await _line(ends, START_WITHIN)
            yield Gossipsub(relay, ends)


def _popen(python: str, *arguments: str) -> subprocess.Popen[bytes]:
    return subprocess.Popen(  # noqa: S603
        [python, "-m", _MODULE, *arguments],
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    )


async def _line(process: subprocess.Popen[bytes], within: float) -> bytes:
    assert process.stdout is not None
    with trio.move_on_after(within):
        line = await trio.to_thread.run_sync(process.stdout.readline, abandon_on_cancel=True)
        if line:
            return line
        raise PeerMissing("its process ended")
    raise PeerMissing("its messages do not arrive")
