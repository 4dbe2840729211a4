"""Tables I and II of the paper anew: the work for a message, and the time until it is there.

The world is stated, as it is not in the paper. 250 clients, each with a reservation of its own and three
subscriptions, all for one purpose and all allowed, so that every side delivers the same; each client sends
on one topic, which the next one reads.
"""

from __future__ import annotations

import statistics
import tempfile
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

import msgspec
import trio

from benchmarks.figures import Effort, PeerMissing
from benchmarks.peers.mqtt import packet, text
from benchmarks.processes import cpu_seconds
from benchmarks.purpose_experiments.sides import (
    ALL,
    Given,
    Running,
    Side,
    exactly,
    reserve,
    started,
    subscribe,
)

CLIENTS = 250
MESSAGES = 24_000  # of one measurement, all clients together
FEW = 4_000  # of the list, which takes long
TURNS = 200  # messages one after the other, for the time that one takes
ROUNDS = 5  # for each run of the harness: short turns, so that some are undisturbed
BATCH = 16  # messages that a client sends at once, and then waits for
PAYLOAD = 256  # bytes
PURPOSE = "operations/billing"
TERMS = "operations,marketing|marketing/individualized"
GIVEN = Given(("operations/billing", "marketing/individualized"), (PURPOSE,))


class Row(msgspec.Struct, frozen=True):
    """A side of the tables; without values where it could not be measured."""

    name: str
    work: float | None = None
    """µs of CPU that the broker takes for a message: the least of the turns."""
    rate: float | None = None
    """Messages a second with the load on the same machine: the median."""
    latency: float | None = None
    """µs until a message is there, one at a time: a turn's median, the least of the turns."""
    latency_high: float | None = None
    """The same for 99 of 100."""
    missing: str = ""


class Fleet:
    """A broker, and cars each of which sends positions that the next one reads."""

    def __init__(self, broker: Running, streams: Sequence[trio.SocketStream]) -> None:
        self._broker = broker
        self._streams = streams
        payload = bytes(PAYLOAD)
        self._packets = [
            packet(0x30, text(_topic(number).encode()) + payload) for number in range(len(streams))
        ]

    async def measure(self, count: int) -> tuple[float, float]:
        """Pass `count` messages; return the broker's µs of CPU for one, and messages a second."""
        rounds = max(1, count // (len(self._streams) * BATCH))
        passed = rounds * len(self._streams) * BATCH
        before, began = cpu_seconds(self._broker.process), time.perf_counter()
        async with trio.open_nursery() as nursery:
            for number in range(len(self._streams)):
                nursery.start_soon(self._send, number, rounds)
        seconds = time.perf_counter() - began
        return (cpu_seconds(self._broker.process) - before) / passed * 1e6, passed / seconds

    async def turns(self, count: int) -> list[float]:
        """Pass `count` messages one after the other; return the µs of each, sorted."""
        taken = []
        for turn in range(count):
            number = turn % len(self._streams)
            began = time.perf_counter()
            await self._streams[number].send_all(self._packets[number])
            await exactly(self._next(number), len(self._packets[number]))
            taken.append((time.perf_counter() - began) * 1e6)
        return sorted(taken)

    async def _send(self, number: int, rounds: int) -> None:
        one = self._packets[number]
        for _ in range(rounds):
            await self._streams[number].send_all(one * BATCH)
            await exactly(self._next(number), len(one) * BATCH)

    def _next(self, number: int) -> trio.SocketStream:
        return self._streams[(number + 1) % len(self._streams)]


async def measured(effort: Effort, sides: Sequence[Side] = ALL, clients: int = CLIENTS) -> tuple[Row, ...]:
    """Measure all sides in turn, each idle meanwhile.

    Of work and latency the least counts: whatever else the machine does adds to them, and takes nothing away.
    """
    work: dict[Side, list[tuple[float, float]]] = {}
    turns: dict[Side, list[list[float]]] = {}
    gone: dict[Side, str] = {}
    with tempfile.TemporaryDirectory(prefix="hushcast-bench-") as folder:
        async with AsyncExitStack() as stack:
            fleets = {}
            for number, side in enumerate(sides):
                try:
                    fleet = await stack.enter_async_context(_fleet(side, Path(folder) / str(number), clients))
                except PeerMissing as why:
                    gone[side] = str(why)
                    continue
                fleets[side] = fleet
                await fleet.measure(effort.amount(FEW))  # warm
            for _ in range(effort.runs * ROUNDS):
                for side, fleet in fleets.items():
                    count = effort.amount(FEW if side.store == "flat" else MESSAGES)
                    work.setdefault(side, []).append(await fleet.measure(count))
                    turns.setdefault(side, []).append(await fleet.turns(effort.amount(TURNS)))
    return tuple(
        Row(side.name, missing=gone[side]) if side in gone else _row(side.name, work[side], turns[side])
        for side in sides
    )


def _row(name: str, work: list[tuple[float, float]], turns: list[list[float]]) -> Row:
    return Row(
        name,
        min(cpu for cpu, _ in work),
        statistics.median(rate for _, rate in work),
        min(one[len(one) // 2] for one in turns),
        min(one[len(one) * 99 // 100] for one in turns),
    )


@asynccontextmanager
async def _fleet(side: Side, place: Path, clients: int) -> AsyncIterator[Fleet]:
    with started(side, place, GIVEN) as broker:
        streams = [await broker.connect(b"car%d" % number) for number in range(clients)]
        for number, stream in enumerate(streams):
            await _prepare(number, stream, side, clients)
        yield Fleet(broker, streams)
        for stream in streams:
            await stream.aclose()


async def _prepare(number: int, stream: trio.SocketStream, side: Side, clients: int) -> None:
    """Reserve a car's topics, and subscribe to another car's, to the car's own orders, and to news."""
    if side.speaks:
        await reserve(stream, f"cars/{number}/#", TERMS)
    for wanted in (_topic((number - 1) % clients), f"cars/{number}/orders", "news"):
        if not await subscribe(stream, wanted, PURPOSE if side.speaks else ""):
            raise PeerMissing("it refuses a subscription")


def _topic(number: int) -> str:
    return f"cars/{number}/position"
