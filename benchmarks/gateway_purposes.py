"""What purposes cost a gateway: 250 clients, the paper's modes and stores, beside one without purposes."""

from __future__ import annotations

import tempfile
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from subprocess import Popen

import trio

from benchmarks import gateway_process
from benchmarks.figures import Effort, Figure, PeerMissing, at_most
from benchmarks.peers.mqtt import connected, packet, text
from benchmarks.processes import cpu_seconds, free_port, running

CLIENTS = 250
MESSAGES = 100_000  # of one measurement, all clients together
FEW = 10_000  # of the list, which takes a hundred times as long
TURNS = 500  # messages one after the other, for the time that one takes
BATCH = 16  # messages that a client sends at once, and then waits for
PAYLOAD = 256  # bytes
NONE = "no purposes"
PURPOSE = "operations/billing"
# Mode, store, and how many times the work without purposes it may take; the flat list is for comparison.
SIDES: dict[str, tuple[str, str, float | None]] = {
    "on subscribe": ("subscribe", "cached", 1.03),
    "on publish, cached": ("publish", "cached", 1.08),
    "hybrid, cached": ("hybrid", "cached", 1.10),
    "on publish, tree": ("publish", "tree", None),
    "on publish, flat": ("publish", "flat", None),
}
_SECTION = """
[purposes]
mode = "{mode}"
store = "{store}"
vocabulary = "{vocabulary}"
"""
_CLAIMS = f'purposes = ["{PURPOSE}"]\nreserve = ["#"]\n'


class Fleet:
    """A gateway, and cars each of which sends positions that the next one reads."""

    def __init__(self, process: Popen[bytes], streams: list[trio.SocketStream]) -> None:
        self._process = process
        self._streams = streams
        payload = bytes(PAYLOAD)
        self._packets = [packet(0x30, text(_topic(number)) + payload) for number in range(CLIENTS)]

    async def measure(self, count: int) -> float:
        """Pass `count` messages; return the gateway's µs of CPU for one."""
        rounds = max(1, count // (CLIENTS * BATCH))
        before = cpu_seconds(self._process)
        async with trio.open_nursery() as nursery:
            for number in range(CLIENTS):
                nursery.start_soon(self._send, number, rounds)
        return (cpu_seconds(self._process) - before) / (rounds * CLIENTS * BATCH) * 1e6

    async def turns(self, count: int) -> float:
        """Pass `count` messages one after the other; return the median µs from one client to the next."""
        taken = []
        for turn in range(count):
            number = turn % CLIENTS
            began = time.perf_counter()
            await self._streams[number].send_all(self._packets[number])
            await _exactly(self._streams[(number + 1) % CLIENTS], len(self._packets[number]))
            taken.append(time.perf_counter() - began)
        return sorted(taken)[len(taken) // 2] * 1e6

    async def _send(self, number: int, rounds: int) -> None:
        one = self._packets[number]
        for _ in range(rounds):
            await self._streams[number].send_all(one * BATCH)
            await _exactly(self._streams[(number + 1) % CLIENTS], len(one) * BATCH)


def figures(effort: Effort) -> Iterator[Figure]:
    """Yield the figures."""
    work, latency = trio.run(_measured, effort)
    for name, (_, _, target) in SIDES.items():
        figure = f"purposes in a gateway, {CLIENTS} clients, {name}: µs of CPU a message: at most times"
        yield at_most(figure, work[name], NONE, work[NONE], target)
    for name in SIDES:
        figure = (
            f"purposes in a gateway, {CLIENTS} clients, {name}: µs until a message is there: at most times"
        )
        yield at_most(figure, latency[name], NONE, latency[NONE], None)


async def _measured(effort: Effort) -> tuple[dict[str, float], dict[str, float]]:
    """Measure all sides in turn, each idle meanwhile; return the least work and the medians of the time.

    The least: whatever else the machine does adds to the work, and takes nothing from it.
    """
    work: dict[str, list[float]] = {}
    latency: dict[str, list[float]] = {}
    with tempfile.TemporaryDirectory(prefix="hushcast-bench-") as folder:
        async with AsyncExitStack() as stack:
            fleets = {}
            for number, name in enumerate((NONE, *SIDES)):
                place = Path(folder) / str(number)
                place.mkdir()
                fleets[name] = await stack.enter_async_context(_fleet(place, SIDES.get(name)))
                await fleets[name].measure(effort.amount(FEW))  # warm
            for _ in range(effort.runs):
                for name, fleet in fleets.items():
                    count = effort.amount(FEW if "flat" in name else MESSAGES)
                    work.setdefault(name, []).append(await fleet.measure(count))
                    latency.setdefault(name, []).append(await fleet.turns(effort.amount(TURNS)))
    return {name: min(values) for name, values in work.items()}, {
        name: sorted(values)[len(values) // 2] for name, values in latency.items()
    }


@asynccontextmanager
async def _fleet(place: Path, side: tuple[str, str, float | None] | None) -> AsyncIterator[Fleet]:
    port, log = free_port(), place / "log"
    command = gateway_process.command(place, port)
    if side is not None:
        vocabulary = place / "vocabulary"
        vocabulary.write_text(f"{PURPOSE}\nmarketing/individualized\n")
        section = _SECTION.format(mode=side[0], store=side[1], vocabulary=vocabulary)
        config = place / "gateway.toml"
        config.write_text(config.read_text().replace("[anonymous]\n", f"{section}\n[anonymous]\n{_CLAIMS}"))
    with running(command, log) as process:
        streams = [await connected(port, b"car%d" % n, process, log) for n in range(CLIENTS)]
        for number, stream in enumerate(streams):
            await _prepare(number, stream, side is not None)
        yield Fleet(process, streams)
        for stream in streams:
            await stream.aclose()


async def _prepare(number: int, stream: trio.SocketStream, has_purposes: bool) -> None:
    """Reserve a car's topics, and subscribe to another car's, to the car's own orders, and to news."""
    if has_purposes:
        reserved = f"!RESERVE/cars/{number}/HASH{{operations,marketing|marketing/individualized}}"
        await stream.send_all(packet(0x32, text(reserved.encode()) + b"\x00\x01"))
        await _exactly(stream, 4)
    for wanted in (_topic((number - 1) % CLIENTS), b"cars/%d/orders" % number, b"news"):
        if has_purposes:
            wanted = b"!AP/%s{%s}" % (wanted, PURPOSE.encode())
        await stream.send_all(packet(0x82, b"\x00\x01" + text(wanted) + b"\x00"))
        if (await _exactly(stream, 5))[-1] != 0:
            raise PeerMissing("it refuses a subscription")


def _topic(number: int) -> bytes:
    return b"cars/%d/position" % number


async def _exactly(stream: trio.SocketStream, size: int) -> bytes:
    found = bytearray()
    while len(found) < size:
        more = await stream.receive_some(size - len(found))
        if not more:
            raise PeerMissing("it closes a connection")
        found += more
    return bytes(found)
