"""The path between the daemons of a `tcp` testnet: a proxy for all their connections, which injects faults.

A daemon is identified by its own loopback address. Each can be cut off, delayed, or made to lose packets. The
proxy simulates TCP's reaction: bytes that are cut off wait, as they would for retransmission; a lost packet
stalls the following ones for a retransmission timeout that doubles; too many losses in a row reset the
connection.
"""

from __future__ import annotations

import math
import random
import socket
import struct
import sys
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import msgspec
import trio

from hushcast_protocol.base.addresses import parse_address, split
from hushcast_protocol.base.errors import HushcastError
from hushcast_runtime.files import write_private
from hushcast_runtime.transports.base import TransportError
from hushcast_runtime.transports.lines import Lines
from hushcast_runtime.transports.streams import LOOPBACK, listen_on_socket
from hushcast_testnet.processes import ProcessRecord

PORT_FILE, CONTROL = "port", "control.sock"
MAX_ASKED = 256  # bytes of a request to the proxy on the path
_IN_FLIGHT = 64  # chunks in one direction before the sender waits, as in a socket
_CHUNK = 16 * 1024  # bytes
_PACKET = 1448  # bytes of a full TCP segment on Ethernet
_FIRST_TIME_OUT = 0.2  # seconds until a lost packet is sent again; Linux's least
_RESENDINGS = 6  # in a row before the connection is given up; real stacks take more, and longer


class PathConditions(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The faults on all traffic of one daemon."""

    host: str
    """The daemon: its loopback address, or in containers its name."""
    cut: bool = False
    delay: Annotated[float, msgspec.Meta(ge=0)] = 0.0
    """Seconds one way; each chunk takes up to half as much again."""
    loss: Annotated[float, msgspec.Meta(ge=0, lt=1)] = 0.0
    """Share of packets."""


class PathProcess(msgspec.Struct, frozen=True):
    """The process of the proxy, as recorded by `up`."""

    process: ProcessRecord
    address: str
    control: str


async def set_conditions(control: Path, conditions: PathConditions) -> None:
    """Change what one daemon meets from now on; raise `TransportError` if the relay is not there."""
    try:
        stream = await trio.open_unix_socket(control)
        async with stream:
            lines = Lines(stream, MAX_ASKED)
            await lines.write(msgspec.json.encode(conditions))
            answer = await lines.read()
    except (OSError, trio.BrokenResourceError):
        answer = None
    if answer is None:
        raise TransportError("the proxy on the path does not answer: the testnet is not whole")


class _Reset(Exception):
    """Too many packets in a row were lost."""


@dataclass(frozen=True)
class PathEnd:
    """One end of a connection: its stream and the daemon behind it."""

    stream: trio.SocketStream
    host: str


class PathRelay:
    """Forwards connections, with the faults that are set."""

    def __init__(self, chance: random.Random) -> None:
        self._chance = chance
        self._conditions: dict[str, PathConditions] = {}
        self._changed = trio.lowlevel.ParkingLot()

    def set(self, conditions: PathConditions) -> None:
        """Change what one daemon meets."""
        self._conditions[conditions.host] = conditions
        self._changed.unpark_all()

    async def carry(self, stream: trio.SocketStream) -> None:
        """Pass one connection on until it ends at either side."""
        source = stream.socket.getpeername()[0]
        async with stream:
            with suppress(OSError, HushcastError, trio.BrokenResourceError, trio.ClosedResourceError):
                host, port = await _asked(stream)
                await self._pass(source, host)
                await trio.sleep(2 * self._delay(source, host))
                async with await trio.open_tcp_stream(host, port) as onward:
                    await stream.send_all(b"\n")
                    await self.join(PathEnd(stream, source), PathEnd(onward, host))

    async def join(self, one: PathEnd, other: PathEnd) -> None:
        """Pass everything on between two ends until either has ended."""
        try:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(self._pump, one, other)
                nursery.start_soon(self._pump, other, one)
        except* _Reset:
            for end in (one, other):
                end.stream.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        except* (trio.BrokenResourceError, trio.ClosedResourceError):
            pass  # either side is gone, and the other hears of it by our closing
        await self._pass(one.host, other.host)  # nor does the end of a connection get through a cut

    async def _pump(self, source: PathEnd, sink: PathEnd) -> None:
        arrivals, departures = trio.open_memory_channel[tuple[float, bytes]](_IN_FLIGHT)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._deliver, departures, source.host, sink)
            async with arrivals:
                while chunk := await source.stream.receive_some(_CHUNK):
                    due = trio.current_time() + self._lag(source.host, sink.host, len(chunk))
                    await arrivals.send((due, chunk))

    async def _deliver(
        self, chunks: trio.MemoryReceiveChannel[tuple[float, bytes]], source: str, sink: PathEnd
    ) -> None:
        async for due, chunk in chunks:
            if due > trio.current_time():
                await trio.sleep_until(due)
            await self._pass(source, sink.host)
            await sink.stream.send_all(chunk)
        await self._pass(source, sink.host)
        await sink.stream.send_eof()

    async def _pass(self, one: str, other: str) -> None:
        while any(known.cut for known in self._on(one, other)):
            await self._changed.park()

    def _lag(self, one: str, other: str, size: int) -> float:
        arrives = math.prod(1 - known.loss for known in self._on(one, other)) ** math.ceil(size / _PACKET)
        lag, time_out = self._delay(one, other) * self._chance.uniform(1, 1.5), _FIRST_TIME_OUT
        for _ in range(_RESENDINGS):
            if self._chance.random() < arrives:
                return lag
            lag, time_out = lag + time_out, 2 * time_out
        raise _Reset

    def _delay(self, one: str, other: str) -> float:
        return sum(known.delay for known in self._on(one, other))

    def _on(self, one: str, other: str) -> list[PathConditions]:
        return [self._conditions[host] for host in {one, other} if host in self._conditions]


async def _asked(stream: trio.SocketStream) -> tuple[str, int]:
    line = await Lines(stream, MAX_ASKED).read()
    address = parse_address((line or b"").decode("ascii", "replace"))
    if not address.startswith("127."):
        raise TransportError("the path leads to loopback addresses only")
    return split(address)


async def serve(home: Path) -> None:
    """Run a relay until cancelled; its port and its control socket are told in `home`."""
    relay = PathRelay(random.Random())  # noqa: S311 - losses, not secrets
    doors = await trio.open_tcp_listeners(0, host=LOOPBACK)
    async with trio.open_nursery() as nursery:
        await nursery.start(trio.serve_listeners, relay.carry, doors)
        await nursery.start(hear_of_conditions, relay, home / CONTROL)
        write_private(home / PORT_FILE, str(doors[0].socket.getsockname()[1]).encode())


async def hear_of_conditions(
    relay: PathRelay, control: Path, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED
) -> None:
    """Listen at a control socket for what is to happen to daemons, until cancelled."""

    async def listen(stream: trio.SocketStream) -> None:
        async with stream:
            with suppress(trio.BrokenResourceError, msgspec.MsgspecError):
                lines = Lines(stream, MAX_ASKED)
                while (line := await lines.read()) is not None:
                    relay.set(msgspec.json.decode(line, type=PathConditions))
                    await lines.write(b"{}")

    listener = await listen_on_socket(control)
    task_status.started()
    await trio.serve_listeners(listen, [listener])


if __name__ == "__main__":
    trio.run(serve, Path(sys.argv[1]))
