"""The two ends of an MQTT broker at their barest: packets prepared, bytes counted (MQTT 3.1.1, QoS 0)."""

from __future__ import annotations

import os
import subprocess
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import trio

from benchmarks.figures import PeerMissing
from benchmarks.processes import START_WITHIN, Progress, connect, cpu_seconds, running

PAYLOAD = 1024  # bytes
_TOPIC = b"bench"
_READ = 65536
_CONNACK, _SUBACK = 4, 5  # bytes


class Broker:
    """A running broker between one publisher and some subscribers."""

    def __init__(self, subscribers: int, process: subprocess.Popen[bytes]) -> None:
        self._progress = Progress(subscribers)
        self._process = process
        self._packet_size = 0
        self._publisher: trio.SocketStream | None = None
        self.cpu = 0.0
        """Microseconds of CPU that the broker took a message in the last measurement."""

    async def join(self, subscribers: int, port: int, log: Path, nursery: trio.Nursery) -> None:
        """Connect both ends."""
        with trio.move_on_after(START_WITHIN) as joining:
            for number in range(subscribers):
                stream = await self._connect(port, b"sub%d" % number, log)
                await stream.send_all(b"\x82" + _with_length(b"\x00\x01" + _text(_TOPIC) + b"\x00"))
                await _exactly(stream, _SUBACK)
                nursery.start_soon(self._count, number, stream)
            self._publisher = await self._connect(port, b"pub", log)
        if joining.cancelled_caught:
            raise PeerMissing("it does not answer")

    async def measure(self, count: int) -> float:
        """Pass `count` messages of 1 KiB; return the messages a second."""
        packets = [b"\x30" + _with_length(_text(_TOPIC) + os.urandom(PAYLOAD)) for _ in range(count)]
        self._packet_size = len(packets[0])

        async def send(first: int, last: int) -> None:
            assert self._publisher is not None
            await self._publisher.send_all(b"".join(packets[first:last]))

        before = cpu_seconds(self._process)
        seconds = await self._progress.measure(count, send)
        self.cpu = (cpu_seconds(self._process) - before) / count * 1e6
        return count / seconds

    async def _connect(self, port: int, client: bytes, log: Path) -> trio.SocketStream:
        stream = await connect(port, self._process, log)
        # Clean session, no keep-alive.
        await stream.send_all(b"\x10" + _with_length(_text(b"MQTT") + b"\x04\x02\x00\x00" + _text(client)))
        if (await _exactly(stream, _CONNACK))[3]:
            raise PeerMissing("it refuses the connection")
        return stream

    async def _count(self, number: int, stream: trio.SocketStream) -> None:
        waiting = 0  # bytes
        while data := await stream.receive_some(_READ):
            waiting += len(data)
            whole, waiting = divmod(waiting, self._packet_size)
            if whole:
                self._progress.note(number, whole)


@asynccontextmanager
async def broker(command: list[str], port: int, subscribers: int, log: Path) -> AsyncIterator[Broker]:
    """Run a broker that listens on `port`; raises `PeerMissing`."""
    async with trio.open_nursery() as nursery:
        with running(command, log) as process:
            try:
                between = Broker(subscribers, process)
                await between.join(subscribers, port, log, nursery)
                yield between
            finally:
                nursery.cancel_scope.cancel()


async def _exactly(stream: trio.SocketStream, size: int) -> bytes:
    data = b""
    while len(data) < size:
        more = await stream.receive_some(size - len(data))
        if not more:
            raise PeerMissing("it closes the connection")
        data += more
    return data


def _text(value: bytes) -> bytes:
    return len(value).to_bytes(2, "big") + value


def _with_length(rest: bytes) -> bytes:
    size, encoded = len(rest), bytearray()
    while True:
        size, digit = divmod(size, 128)
        encoded.append(digit | (0x80 if size else 0))
        if not size:
            return bytes(encoded) + rest
