"""The proxy before the doors of a private network's tors: each connection between them takes its time.

A tor is advertised at a door of the proxy's and listens elsewhere. Opening a connection takes a round trip,
as TCP's handshake does; after that, each byte and each end arrives so much later than it was sent, however
many are under way. Meanwhile the proxy can watch lines, as an observer outside could.
"""

from __future__ import annotations

import math
import sys
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import closing, suppress
from functools import partial
from pathlib import Path

import msgspec
import trio

from hushcast_runtime.storage.state_lock import locked
from hushcast_testnet.tor.distance import ConnectionDelay, Distance
from hushcast_testnet.tor.line_watch import LineSight, LineWatch, WatchedLines, unseen

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
    watched: WatchedLines | None = None


class DistanceProxy:
    """Carries connections to doors, each with the delay that it draws."""

    def __init__(self, distance: Distance, watch: LineWatch | None = None) -> None:
        self._distance = distance
        self._watch = watch or LineWatch()
        self._came: Counter[str] = Counter()
        self._open = 0

    async def carry(self, door: TorDoor, stream: trio.SocketStream) -> None:
        """Pass one connection on until both sides have ended it; one too many ends at once."""
        async with stream:
            if self._open >= MAX_CONNECTIONS:
                return
            delay = self._distance.draw(door.name, self._came[door.name])
            sight = self._watch.sight(stream)
            self._came[door.name] += 1
            self._open += 1
            try:
                await trio.sleep(delay.round_trip)
                with suppress(OSError):  # nobody listens there: the other tor has ended
                    await _join(stream, door, delay, sight)
            finally:
                self._open -= 1


async def _join(stream: trio.SocketStream, door: TorDoor, delay: ConnectionDelay, sight: LineSight) -> None:
    async with (
        await trio.open_tcp_stream(door.own_host, door.own_port) as onward,
        trio.open_nursery() as nursery,
    ):
        nursery.start_soon(partial(pass_on, stream, onward, delay.there, left=sight.upward))
        nursery.start_soon(partial(pass_on, onward, stream, delay.back, arrived=sight.downward))


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

    async def land(self, sink: trio.abc.HalfCloseableStream, arrived: Callable[[int], None]) -> None:
        """Deliver what is under way when it is due, and its end."""
        async for due, chunk in self._departures:
            await trio.sleep_until(due)
            arrived(len(chunk))
            await sink.send_all(chunk)
            self._held -= len(chunk) + _KEPT
            self._room.unpark_all()


async def pass_on(
    source: trio.abc.ReceiveStream,
    sink: trio.abc.HalfCloseableStream,
    seconds: float,
    *,
    left: Callable[[int], None] = unseen,
    arrived: Callable[[int], None] = unseen,
) -> None:
    """Hand what a source sends to a sink, each byte and the end so many seconds later, in order.

    `left` hears how many bytes the source sent, `arrived` how many the sink gets, at their moments. A source
    that breaks has ended; what is under way arrives all the same. Returns when the end has arrived, or the
    sink takes no more.
    """
    flight = _Flight()
    async with trio.open_nursery() as nursery:

        async def deliver() -> None:
            with suppress(*_GONE):
                await flight.land(sink, arrived)
                await trio.sleep_until(ended)
                await sink.send_eof()
            nursery.cancel_scope.cancel()

        nursery.start_soon(deliver)
        with suppress(*_GONE):
            while chunk := await source.receive_some(_CHUNK):
                left(len(chunk))
                await flight.begin(trio.current_time() + seconds, bytes(chunk))
        ended = trio.current_time() + seconds
        flight.end()


async def serve(order: DistanceOrder, home: Path) -> None:
    """Run the proxy until cancelled. It holds the lock of `home` once all its doors are open."""
    with closing(LineWatch(order.watched)) as watch:
        await _open(order, DistanceProxy(order.distance, watch), home)


async def _open(order: DistanceOrder, proxy: DistanceProxy, home: Path) -> None:
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
