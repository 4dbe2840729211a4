"""The proxy before the doors of a private network's tors: each connection between them takes its time.

A tor is advertised at a door of the proxy's and listens elsewhere. Opening a connection takes a round trip,
as TCP's handshake does; after that, each byte and each end arrives so much later than it was sent, however
many are under way.
"""

from __future__ import annotations

import math
import sys
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path

import msgspec
import trio

from hushcast_runtime.storage.state_lock import locked
from hushcast_testnet.tor.distance import ConnectionDelay, Distance

FOLDER = "distance"  # of a network's directory: the proxy's own
DOORS_FILE = "doors.json"
MAX_CONNECTIONS = 2000  # at once; each takes two descriptors
MAX_IN_FLIGHT = 8 * 1024 * 1024  # bytes of one connection and way; then the sender waits, as for a window
_CHUNK = 64 * 1024  # bytes
_KEPT = 256  # bytes that Python takes to keep a chunk, however short
_GONE = (trio.BrokenResourceError, trio.ClosedResourceError)


class TorDoor(msgspec.Struct, frozen=True):
    """A door of one tor: where it is advertised, and where it listens."""

    name: str
    host: str
    port: int
    own_host: str
    own_port: int


class DistanceOrder(msgspec.Struct, frozen=True):
    """What the proxy is to do."""

    distance: Distance
    doors: Sequence[TorDoor]


class DistanceProxy:
    """Carries connections to doors, each with the delay that it draws."""

    def __init__(self, distance: Distance) -> None:
        self._distance = distance
        self._came: Counter[str] = Counter()
        self._open = 0

    async def carry(self, door: TorDoor, stream: trio.SocketStream) -> None:
        """Pass one connection on until both sides have ended it; one too many ends at once."""
        async with stream:
            if self._open >= MAX_CONNECTIONS:
                return
            delay = self._distance.draw(door.name, self._came[door.name])
            self._came[door.name] += 1
            self._open += 1
            try:
                await trio.sleep(delay.round_trip)
                with suppress(OSError):  # nobody listens there: the other tor has ended
                    await _join(stream, door, delay)
            finally:
                self._open -= 1


async def _join(stream: trio.SocketStream, door: TorDoor, delay: ConnectionDelay) -> None:
    async with (
        await trio.open_tcp_stream(door.own_host, door.own_port) as onward,
        trio.open_nursery() as nursery,
    ):
        nursery.start_soon(pass_on, stream, onward, delay.there)
        nursery.start_soon(pass_on, onward, stream, delay.back)


class _Flight:
    """What is under way: chunks in order, each with the moment when it is due."""

    def __init__(self) -> None:
        self._arrivals, self._departures = trio.open_memory_channel[tuple[float, bytes]](math.inf)
        self._held = 0
        self._room = trio.lowlevel.ParkingLot()

    async def begin(self, due: float, chunk: bytes) -> None:
        """Put a chunk on its way, and return when there is room for another."""
        self._held += len(chunk) + _KEPT
        self._arrivals.send_nowait((due, chunk))
        while self._held >= MAX_IN_FLIGHT:
            await self._room.park()

    def end(self) -> None:
        """Tell that there comes no more."""
        self._arrivals.close()

    async def land(self, sink: trio.abc.HalfCloseableStream) -> None:
        """Deliver what is under way when it is due, and its end."""
        async for due, chunk in self._departures:
            await trio.sleep_until(due)
            await sink.send_all(chunk)
            self._held -= len(chunk) + _KEPT
            self._room.unpark_all()


async def pass_on(source: trio.abc.ReceiveStream, sink: trio.abc.HalfCloseableStream, seconds: float) -> None:
    """Hand what a source sends to a sink, each byte and the end so many seconds later, in order.

    A source that breaks has ended; what is under way arrives all the same. Returns when the end has arrived,
    or the sink takes no more.
    """
    flight = _Flight()
    async with trio.open_nursery() as nursery:

        async def deliver() -> None:
            with suppress(*_GONE):
                await flight.land(sink)
                await trio.sleep_until(ended)
                await sink.send_eof()
            nursery.cancel_scope.cancel()

        nursery.start_soon(deliver)
        with suppress(*_GONE):
            while chunk := await source.receive_some(_CHUNK):
                await flight.begin(trio.current_time() + seconds, bytes(chunk))
        ended = trio.current_time() + seconds
        flight.end()


async def serve(order: DistanceOrder, home: Path) -> None:
    """Run the proxy until cancelled. It holds the lock of `home` once all its doors are open."""
    proxy = DistanceProxy(order.distance)
    async with trio.open_nursery() as nursery:
        for door in order.doors:
            listeners = await trio.open_tcp_listeners(door.port, host=door.host)
            nursery.start_soon(trio.serve_listeners, partial(proxy.carry, door), listeners)
        with locked(home):
            await trio.sleep_forever()


def main(file: Path) -> None:
    """Run the proxy by the order in a file; its home is the file's folder."""
    trio.run(serve, msgspec.json.decode(file.read_bytes(), type=DistanceOrder), file.parent)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
