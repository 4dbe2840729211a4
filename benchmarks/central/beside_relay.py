"""Figure: publications of 1 KiB a second through server and proxies, beside the overlay's relay.

Server and both proxies are processes with stores on disk; publishers and subscribers are the harness's.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

import trio

from benchmarks.central.central_users import Publishers, subscribe
from benchmarks.figures import Effort, Figure, PeerMissing, alternate_async, at_least
from benchmarks.processes import START_WITHIN, Progress, cpu_seconds, last_line, running
from benchmarks.relay.throughput import overlay
from hushcast_protocol.base.addresses import Address
from hushcast_protocol.base.crypto.group import Scalar
from hushcast_protocol.base.crypto.secrets import Seed
from hushcast_protocol.central.introduction import SealingKey
from hushcast_protocol.central.network import PROXY_ROLES, CentralNetwork, Proxy

FAN_OUTS = (1, 50)
_MESSAGES = {1: 960, 50: 144}  # a run
_RELAYED = 4  # times as many, for the relay is faster
_TICK = 1e6 / os.sysconf("SC_CLK_TCK")  # µs
_EPOCH = 24 * 3600  # seconds: none ends within a measurement


class Central:
    """A running system with so many subscribers of one topic."""

    def __init__(self, network: CentralNetwork, trunk: bytes, subscribers: int) -> None:
        self.network = network
        self.trunk = trunk
        self.progress = Progress(subscribers)
        self.processes: dict[str, subprocess.Popen[bytes]] = {}
        self.publishers: Publishers
        self.cpu: dict[str, float] = {}
        """Microseconds of CPU that each process took a publication in the last measurement."""

    async def measure(self, count: int) -> float:
        """Publish `count` messages; return the messages a second until all subscribers have all."""
        before = {name: cpu_seconds(process) for name, process in self.processes.items()}
        target = min(self.progress.received) + count
        began = await self.publishers.publish(count)
        await self.progress.until(target)
        seconds = trio.current_time() - began
        self.cpu = {
            name: (cpu_seconds(process) - before[name]) / count * 1e6
            for name, process in self.processes.items()
        }
        return count / seconds


@asynccontextmanager
async def central(subscribers: int, directory: Path) -> AsyncIterator[Central]:
    """Run a server and two proxies, and subscribe."""
    directory.mkdir()
    seed, sealing, group = Seed.draw(os.urandom), SealingKey.draw(os.urandom), Scalar.draw(os.urandom)
    proxies = {role: Seed.draw(os.urandom) for role in PROXY_ROLES}
    network = CentralNetwork("bench", "hardened", _EPOCH, seed.public(), sealing.public())
    told = ["bench", "hardened", _EPOCH, seed.public().hex(), sealing.public().hex()]
    system = Central(network, os.urandom(16), subscribers)
    async with AsyncExitStack() as stack:

        async def start(name: str, **settings: object) -> Address:
            settings |= {"network": told, "store": str(directory / f"{name}.db")}
            log = directory / f"{name}.log"
            command = [sys.executable, "-m", "benchmarks.central.central_process", json.dumps(settings)]
            process = system.processes[name] = stack.enter_context(running(command, log))
            with trio.move_on_after(START_WITHIN):
                while process.poll() is None:
                    if (line := log.read_text()).endswith("\n"):
                        return Address(line.splitlines()[0])
                    await trio.sleep(0.05)
            raise RuntimeError(f"the {name} did not start: {last_line(log)}")

        server = await start(
            "server",
            seed=seed.reveal().hex(),
            sealing=sealing.reveal().hex(),
            group=group.reveal().hex(),
            proxies=[(proxies[role].public().hex(), role) for role in PROXY_ROLES],
        )
        listed = {}
        for role in PROXY_ROLES:
            address = await start(role, seed=proxies[role].reveal().hex(), role=role, server=server)
            listed[role] = Proxy(proxies[role].public(), address, role)
        await trio.sleep(1.0)  # until the proxies have their links
        nursery = await stack.enter_async_context(trio.open_nursery())
        stack.callback(nursery.cancel_scope.cancel)
        for number in range(subscribers):
            await nursery.start(
                subscribe, network, listed["deliveries"], system.trunk, number, system.progress
            )
        system.publishers = Publishers(network, listed["publications"], system.trunk)
        yield system


def figures(effort: Effort) -> Iterator[Figure]:
    """Measure all sides in turn; each is idle while another is measured."""
    yield from trio.run(_measure, effort)


async def _measure(effort: Effort) -> list[Figure]:
    figures: list[Figure] = []
    with tempfile.TemporaryDirectory(prefix="hushcast-bench-") as place:
        for fan_out in FAN_OUTS:
            directory = Path(place) / str(fan_out)
            directory.mkdir()
            figures += await _beside(fan_out, effort, directory)
    return figures


async def _beside(fan_out: int, effort: Effort, directory: Path) -> list[Figure]:
    count = effort.amount(_MESSAGES[fan_out])
    busy: list[dict[str, float]] = []
    relay_cpu: list[float] = []
    async with AsyncExitStack() as stack:
        ours = await stack.enter_async_context(central(fan_out, directory / "central"))
        relay = await stack.enter_async_context(
            overlay(fan_out, directory / "relay.db", directory / "relay.log")
        )

        async def ours_turn() -> float:
            rate = await ours.measure(count)
            busy.append(ours.cpu)
            return rate

        async def relay_turn() -> float:
            rate = await relay.measure(_RELAYED * count)
            relay_cpu.append(relay.cpu)
            return rate

        turns: dict[str, Callable[[], Awaitable[float]]] = {"ours": ours_turn, "relay": relay_turn}
        for turn in turns.values():
            await turn()  # nothing counts before everything has run once
        busy.clear()
        relay_cpu.clear()
        rates = await alternate_async(effort.runs, turns)
    least = _TICK / (_RELAYED * count)  # what a tick of the kernel's clock is, where none passed
    return _table(fan_out, rates, busy, max(least, statistics.median(relay_cpu)))


def _table(
    fan_out: int, rates: dict[str, float | PeerMissing], busy: list[dict[str, float]], relay: float
) -> list[Figure]:
    ours, theirs = rates["ours"], rates["relay"]
    assert not isinstance(ours, PeerMissing)
    assert not isinstance(theirs, PeerMissing)
    said = f"1 KiB publications a second, {fan_out} out"
    peer = "the overlay's relay, spool on"
    table = [at_least(f"{said}, through server and proxies: at least times", ours, peer, theirs, None)]
    for name in busy[0]:
        took = statistics.median(one[name] for one in busy)
        who = name if name == "server" else f"proxy for {name}"
        alone = f"{said}, if the {who} had a core to itself: at least times"
        table.append(at_least(alone, 1e6 / max(took, 1.0), peer, 1e6 / relay, None))
    return table
