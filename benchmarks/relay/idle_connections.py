"""Figure: connections to one relay over which nothing has come, as daemons hold them ready, and their flood.

A relay holds as many as its room for them has places, whoever opens them. First a thousand come to one relay,
then ten thousand in all, and then a flood of ten handshakes a second, in a tenth of the time.
"""

from __future__ import annotations

import math
import os
import statistics
import tempfile
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import trio

from benchmarks.figures import Effort, Figure, at_most
from benchmarks.processes import resident
from benchmarks.relay.overlay import NETWORK, End, Overlay, joined
from hushcast_overlay.relay.strangers import MAX_READY
from hushcast_protocol.base.addresses import parse_address
from hushcast_protocol.base.crypto.secrets import Seed
from hushcast_protocol.base.link.links import Link
from hushcast_protocol.base.roster import Descriptor
from hushcast_protocol.overlay.elements import ORIGIN
from hushcast_protocol.overlay.frame_directions import decode_receipt
from hushcast_protocol.overlay.frames import (
    MAX_OVERLAY_FRAME,
    Ack,
    Drop,
    Forward,
    Receipt,
    decode_overlay,
)
from hushcast_runtime.transports.base import StreamHandler, TransportError
from hushcast_runtime.transports.channel import Channel, accept_channel, open_channel
from hushcast_runtime.transports.tcp import TcpTransport

FEW, MANY = 1_000, 10_000  # daemons with a connection each
FLOOD = 12_000  # handshakes: twelve times as many as there are places, ten a second for twenty minutes
PACE = 100.0  # a second
HAND_INS = 200
PAUSE = 0.2  # seconds between two of them
AT_ONCE = 50  # handshakes
SETTLED = 2.0  # seconds after the last one
WITHIN = 30.0  # seconds for one hand-in
KIB = 1024
BOUND = 16.0  # KiB of memory for each that is held
FILES_MORE = 1.05  # times as many open files as there are places: some connections are opened or end


@dataclass(frozen=True)
class _State:
    """What a process holds."""

    memory: int
    """Bytes."""
    files: int


def figures(effort: Effort) -> Iterator[Figure]:
    """Measure on one relay over loopback tcp, in a process of its own."""
    with tempfile.TemporaryDirectory(prefix="hushcast-bench-") as place:
        yield from trio.run(_measure, Path(place) / "log", effort)


class _Idle(Overlay):
    """A relay to which strangers connect, and one next hop for what they hand in."""

    def __init__(self) -> None:
        super().__init__(1, TcpTransport())
        self.relay: Descriptor | None = None

    def routes(self) -> list[tuple[End, End]]:
        """Return that of what is handed in."""
        source = End(Seed.draw(os.urandom))
        source.id = ORIGIN
        return [(source, self.receivers[0])]

    def receive(self, number: int) -> StreamHandler:
        """Return a handler that takes all."""

        async def handle(stream: trio.abc.Stream) -> None:
            link = Link.respond(NETWORK.id, self.receivers[number].seed, os.urandom, MAX_OVERLAY_FRAME)
            channel, _ = await accept_channel(stream, link, decode_overlay)
            taken = 0
            with suppress(TransportError):
                while batch := await channel.receive():
                    taken += sum(isinstance(frame, Forward) for frame in batch)
                    await channel.send(Ack(taken, ()))

        return handle

    async def _install(self, daemon: Descriptor) -> None:
        self.relay = daemon
        await super()._install(daemon)

    async def opened(self) -> Channel[Receipt]:
        """Open a connection under no name."""
        assert self.relay is not None
        link = Link.initiate(NETWORK.id, self.relay.relay, os.urandom, MAX_OVERLAY_FRAME)
        address = parse_address(self.relay.address)
        channel, _ = await open_channel(self._transport, address, os.urandom(8).hex(), link, decode_receipt)
        return channel

    async def hold(self, count: int, holding: trio.Nursery, pace: float = math.inf) -> None:
        """Open that many more, so many a second at most, and keep each until the relay ends it."""
        places = trio.CapacityLimiter(AT_ONCE)

        async def keep(channel: Channel[Receipt]) -> None:
            try:
                with suppress(TransportError):
                    await channel.stirred()
            finally:
                await channel.aclose()

        async def one() -> None:
            async with places:
                holding.start_soon(keep, await self.opened())

        began = trio.current_time()
        async with trio.open_nursery() as opening:
            for number in range(count):
                await trio.sleep_until(began + number / pace)
                opening.start_soon(one)
        await trio.sleep(SETTLED)

    async def hand_in(self, count: int) -> list[float]:
        """Hand in one message after the other, each over a new connection; return the seconds of each."""
        taken = []
        for _ in range(count):
            await trio.sleep(PAUSE)
            began = trio.current_time()
            with trio.fail_after(WITHIN):
                channel = await self.opened()
                await channel.send(Drop(self.message(NETWORK.calendar.day(time.time())), None))
                receipt = await channel.one(WITHIN)
            taken.append(trio.current_time() - began)
            await channel.aclose()
            if receipt.verdict != "accepted":
                raise RuntimeError(f"the relay refused a message: {receipt.verdict}")
        return taken

    def state(self) -> _State:
        """Return what the relay's process holds."""
        assert self.process is not None
        pid = self.process.pid
        return _State(resident(pid), len(list(Path(f"/proc/{pid}/fd").iterdir())))


async def _measure(log: Path, effort: Effort) -> list[Figure]:
    few, many, hand_ins = (effort.amount(amount) for amount in (FEW, MANY, HAND_INS))
    async with joined(_Idle(), None, log) as network, trio.open_nursery() as holding:
        quiet = await network.hand_in(hand_ins)
        none = network.state()
        await network.hold(few, holding)
        some = network.state()
        await network.hold(many - few, holding)
        most = network.state()
        flooded = await _flooded(network, effort.amount(FLOOD), holding)
        after = network.state()
        holding.cancel_scope.cancel()
    each = (some.memory - none.memory) / few / KIB
    held = [(state.memory - none.memory) / KIB**2 for state in (some, most)]
    room = min(MAX_READY, many)
    unhurried, hurried = (statistics.median(times) * 1e3 for times in (quiet, flooded))
    last = statistics.quantiles(flooded, n=100, method="inclusive")[-1] * 1e3
    flood = f"while {PACE:g} connections a second come that say nothing"
    return [
        at_most(
            f"memory of one of {few:,} idle connections, KiB: at most times", each, "the bound", BOUND, 1
        ),
        _files(f"for {few:,} idle connections", some.files - none.files, few),
        _files(f"when {many:,} came", most.files - none.files, room),
        _files(flood, after.files - none.files, MAX_READY),
        at_most(f"memory when {many:,} came, MiB: at most times", held[1], f"{few:,}", held[0], None),
        at_most(
            f"to hand a message in {flood}, median, ms: at most times", hurried, "none come", unhurried, None
        ),
        at_most("the same, 99th percentile: at most times", last, "none come, median", unhurried, None),
    ]


def _files(when: str, ours: int, places: int) -> Figure:
    return at_most(f"open files of a relay {when}: at most times", ours, "places", places, FILES_MORE)


async def _flooded(network: _Idle, count: int, holding: trio.Nursery) -> list[float]:
    """Return how long it takes to hand in while so many connections come that say nothing."""
    taken: list[float] = []

    async def hand_in() -> None:
        while True:
            taken.extend(await network.hand_in(1))

    async with trio.open_nursery() as nursery:
        nursery.start_soon(hand_in)
        await network.hold(count, holding, PACE)
        nursery.cancel_scope.cancel()
    return taken
