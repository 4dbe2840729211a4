"""Figure: what one hop adds over Tor: a message's way through a daemon, against the bare ways to and from it.

One relay of the harness's has an onion connection to the daemon, and the daemon has one to another. A message
goes through the daemon there, and one back; pings on both connections take the bare ways there and back. So
nothing need be assumed of how the two directions of a connection compare: what the messages take beyond the
pings is what two passages through the daemon add.
"""

from __future__ import annotations

import os
import statistics
import tempfile
import time
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import astuple, dataclass
from pathlib import Path

import trio

from benchmarks.figures import Effort, Figure, at_most, missing
from benchmarks.relay.overlay import NETWORK, End, Overlay, joined
from benchmarks.tor.private_tor import DISTANCES, over_tor, private_network
from hushcast_protocol.base.errors import UsageError
from hushcast_protocol.base.link.links import Link
from hushcast_protocol.base.wire import Wire, encode
from hushcast_protocol.overlay.frames import (
    MAX_OVERLAY_FRAME,
    Ack,
    Forward,
    OverlayFrame,
    Ping,
    decode_overlay,
)
from hushcast_runtime.transports.base import StreamHandler, Transport, TransportError
from hushcast_runtime.transports.channel import accept_channel
from hushcast_testnet.tor.distance import Distance
from hushcast_testnet.tor.tor_network import TorClient

MESSAGES = 30  # a run and direction
SILENCE = 0.2  # seconds before each send
WARM = 5  # rounds before the first that counts
ARRIVE_WITHIN = 30.0  # seconds for one message

Send = Callable[[Wire], Awaitable[None]]


def figures(effort: Effort) -> Iterator[Figure]:
    """Measure with the spool on disk, as daemons have it."""
    for distance in DISTANCES:
        yield _figure(effort, distance)


def _figure(effort: Effort, distance: Distance) -> Figure:
    way = f"one way over an onion connection, tors {distance.ms} ms apart, median, ms"
    name = f"{way}, with what a hop adds: at most times"
    runs: list[_Round] = []
    why: BaseException | None = None
    try:
        runs = trio.run(_measure, effort, distance)
    except* (UsageError, TransportError, trio.TooSlowError) as failures:
        why = failures.exceptions[0]
    if why is not None:
        return missing(name, None, "without", why, 1.1)
    bare = statistics.median(run.bare for run in runs)
    added = statistics.median(run.added for run in runs)
    return at_most(name, (bare + added) * 1e3, "without", bare * 1e3, 1.1)


@dataclass(frozen=True)
class _Round:
    """Seconds that messages took through the daemon, and pings on the connections to it."""

    there: float
    back: float
    near: float
    far: float

    @property
    def bare(self) -> float:
        """One way over one of the connections, in the mean of both and of the directions."""
        return (self.near + self.far) / 4

    @property
    def added(self) -> float:
        """What one passage through the daemon takes beyond the ways to and from it."""
        return (self.there + self.back - self.near - self.far) / 2


class _Connection:
    """One connection to the daemon: what the harness sends there and hears."""

    def __init__(self, send: Send) -> None:
        self._send = send
        self._taken = 0
        self.arrived = self._answered = trio.Event()

    async def hear(self, frame: OverlayFrame) -> None:
        """Take a frame, and acknowledge messages."""
        if isinstance(frame, Forward):
            self._taken += 1
            self.arrived.set()
            await self._send(Ack(self._taken, ()))
        elif isinstance(frame, Ack):
            self._answered.set()

    async def ping(self) -> float:
        """Return the seconds until a ping is answered."""
        self._answered = trio.Event()
        return await self._until(Ping(), self._answered)

    async def message(self, frame: Forward, to: _Connection) -> float:
        """Return the seconds until a message arrives at the other connection's end."""
        self._answered = acknowledged = trio.Event()
        to.arrived = trio.Event()
        took = await self._until(frame, to.arrived)
        await acknowledged.wait()
        return took

    async def _until(self, frame: Wire, event: trio.Event) -> float:
        # tor does not switch off Nagle's algorithm: what follows another small write within the 40 ms of a
        # delayed acknowledgement waits for it, a ping as well as a message.
        await trio.sleep(SILENCE)
        began = trio.current_time()
        await self._send(frame)
        await event.wait()
        return trio.current_time() - began


class Delays(Overlay):
    """`round` sends one message through the daemon each way, and pings both connections beside it."""

    def __init__(self, transport: Transport, tor: TorClient) -> None:
        super().__init__(1, transport, tor)
        self._near = _Connection(self._send)
        self._far: _Connection | None = None

    def routes(self) -> list[tuple[End, End]]:
        """Return both ways through the daemon."""
        return [(self.sender, self.receivers[0]), (self.receivers[0], self.sender)]

    async def warm(self) -> None:
        """Have the daemon dial its next hop, and all code run; raises `trio.TooSlowError`."""
        with trio.fail_after(ARRIVE_WITHIN):
            await self._send(self._new_message())
            while self._far is None:  # noqa: ASYNC110 - the handler of a connection sets it
                await trio.sleep(SILENCE)
        for _ in range(WARM):
            await self.round()

    async def round(self) -> _Round:
        """Measure once; raises `trio.TooSlowError`."""
        near, far = self._near, self._far
        assert far is not None
        with trio.fail_after(ARRIVE_WITHIN):
            there = await near.message(self._new_message(), far)
            back = await far.message(self._new_message(), near)
            return _Round(there, back, await near.ping(), await far.ping())

    def _new_message(self) -> Forward:
        return Forward(self.message(NETWORK.calendar.day(time.time())))

    async def _send(self, frame: Wire) -> None:
        assert self.link is not None
        assert self.stream is not None
        self.link.send(encode(frame))
        await self.stream.send_all(self.link.data_to_send())

    async def hear(self, frame: OverlayFrame) -> None:
        """Take what the daemon sends to the near end."""
        await self._near.hear(frame)

    def receive(self, number: int) -> StreamHandler:
        """Return the handler of the far end."""

        async def handle(stream: trio.abc.Stream) -> None:
            link = Link.respond(NETWORK.id, self.receivers[number].seed, os.urandom, MAX_OVERLAY_FRAME)
            channel, _ = await accept_channel(stream, link, decode_overlay)
            self._far = _Connection(channel.send)
            while batch := await channel.receive():
                for frame in batch:
                    await self._far.hear(frame)

        return handle


async def _measure(effort: Effort, distance: Distance) -> list[_Round]:
    """Return the medians of each run."""
    with tempfile.TemporaryDirectory(prefix="hushcast-bench-") as place:
        directory = Path(place)
        async with (
            private_network(directory / "tor", distance) as client,
            over_tor(client) as transport,
            joined(Delays(transport, client), directory / "state.db", directory / "log") as network,
        ):
            await network.warm()
            runs = []
            for _ in range(effort.runs):
                rounds = [astuple(await network.round()) for _ in range(effort.amount(MESSAGES))]
                runs.append(_Round(*map(statistics.median, zip(*rounds, strict=True))))
            return runs
