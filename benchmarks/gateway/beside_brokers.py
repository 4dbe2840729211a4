"""The gateway beside other brokers: messages a second, memory of idle clients, look-up among filters."""

from __future__ import annotations

import tempfile
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from functools import partial
from pathlib import Path

import trio

from benchmarks.figures import Effort, Figure, PeerMissing, alternate_async, at_least, at_most, missing
from benchmarks.gateway import gateway_process
from benchmarks.peers import amqtt, mosquitto
from benchmarks.peers.mqtt import Broker, connected
from benchmarks.processes import free_port, resident, running
from hushcast_protocol.mqtt.topics.filter_tree import FilterTree

MESSAGES, FEW = 100_000, 4_000  # of one measurement; amqtt is measured with few
CLIENTS = 750  # of one user, who may have four fifths of the 1,000 places
FILTERS = (10, 10_000)
OURS = "hushcast gateway"

Start = Callable[[int, Path, int], AbstractAsyncContextManager[Broker]]


def figures(effort: Effort) -> Iterator[Figure]:
    """Yield the figures."""
    for qos, least in ((0, 0.5), (1, 0.5)):
        yield from trio.run(_throughput, effort, qos, least)
    yield from trio.run(_idle)
    yield _look_up(effort)


async def _throughput(effort: Effort, qos: int, least: float) -> list[Figure]:
    text = f"gateway: messages a second 1→1, 1 KiB, QoS {qos}: at least times"
    sides: dict[str, tuple[Start, int]] = {
        OURS: (gateway_process.start, effort.amount(MESSAGES)),
        "mosquitto": (mosquitto.start, effort.amount(MESSAGES)),
        "amqtt": (amqtt.start, effort.amount(FEW)),
    }
    with tempfile.TemporaryDirectory(prefix="hushcast-bench-") as folder:
        taken = await alternate_async(
            effort.runs,
            {
                name: partial(_measured, start, qos, count, Path(folder))
                for name, (start, count) in sides.items()
            },
        )
    ours = taken[OURS]
    if isinstance(ours, PeerMissing):
        return [missing(text, None, OURS, ours, least)]
    found = []
    for name, target in (("mosquitto", least), ("amqtt", 10.0 if qos == 0 else None)):
        value = taken[name]
        if isinstance(value, PeerMissing):
            found.append(missing(text, ours, name, value, target))
        else:
            found.append(at_least(text, ours, name, value, target))
    return found


async def _measured(start: Start, qos: int, count: int, folder: Path) -> float:
    async with start(1, folder, qos) as between:
        await between.measure(max(1, count // 10))  # warm
        return await between.measure(count)


async def _idle() -> list[Figure]:
    text = f"gateway: KiB of memory for each of {CLIENTS:,} idle clients: at most times"
    with tempfile.TemporaryDirectory(prefix="hushcast-bench-") as folder:
        port, other = free_port(), free_port()
        ours = await _memory(gateway_process.command(Path(folder), port), port, Path(folder) / "log")
        try:
            peer = await _memory(mosquitto.command(Path(folder), other), other, Path(folder) / "other")
        except PeerMissing as why:
            return [missing(text, ours, "mosquitto", why, None)]
    return [at_most(text, ours, "mosquitto", peer, None)]


async def _memory(command: list[str], port: int, log: Path) -> float:
    with running(command, log) as process:
        async with _crowd(port, process, log, 1):
            before = resident(process.pid)
            async with _crowd(port, process, log, CLIENTS - 1):
                return (resident(process.pid) - before) / (CLIENTS - 1) / 1024


@asynccontextmanager
async def _crowd(port: int, process: object, log: Path, count: int) -> AsyncIterator[None]:
    streams = [await connected(port, b"idle%d" % number, process, log) for number in range(count)]  # type: ignore[arg-type]
    await trio.sleep(1)
    try:
        yield
    finally:
        for stream in streams:
            await stream.aclose()


def _look_up(effort: Effort) -> Figure:
    few, many = (min(_microseconds(count) for _ in range(effort.runs)) for count in FILTERS)
    text = f"gateway: µs to look a topic up among {FILTERS[1]:,} filters: at most times"
    return at_most(text, many, f"the same among {FILTERS[0]}", few, 10.0)


def _microseconds(count: int) -> float:
    """Return the time of one look-up among filters of a house: a tenth of them with wildcards."""
    tree: FilterTree[int] = FilterTree()
    for number in range(count):
        room, device = divmod(number, 25)
        end = "#" if number % 20 == 0 else "+" if number % 20 == 10 else "state"
        tree.put(f"home/room{room}/device{device}/{end}", number)
    topics = [f"home/room{number % count // 25}/device{number % 25}/state" for number in range(2_000)]
    began = time.perf_counter()
    for topic in topics:
        tree.match(topic)
    return (time.perf_counter() - began) / len(topics) * 1e6
