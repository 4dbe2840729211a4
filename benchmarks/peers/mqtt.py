"""The two ends of an MQTT broker at their barest: packets prepared, bytes counted (3.1.1, QoS 0 or 1)."""

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

    def __init__(self, subscribers: int, process: subprocess.Popen[bytes], qos: int = 0) -> None:
        self._qos = qos
        # Brokers keep some hundred or thousand messages for a subscriber that has not acknowledged.
        self._progress = Progress(subscribers, 512 if qos else Progress.WINDOW)
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
                await stream.send_all(b"\x82" + _with_length(b"\x00\x01" + text(_TOPIC) + bytes([self._qos])))
                await _exactly(stream, _SUBACK)
                nursery.start_soon(self._count, number, stream)
            self._publisher = await self._connect(port, b"pub", log)
            if self._qos:
                nursery.start_soon(_read_all, self._publisher)
        if joining.cancelled_caught:
            raise PeerMissing("it does not answer")

    async def measure(self, count: int) -> float:
        """Pass `count` messages of 1 KiB; return the messages a second."""
        head, topic = bytes([0x30 | self._qos << 1]), text(_TOPIC)
        packets = [
            head + _with_length(topic + self._id(number) + os.urandom(PAYLOAD)) for number in range(count)
        ]
        self._packet_size = len(packets[0])

        async def send(first: int, last: int) -> None:
            assert self._publisher is not None
            await self._publisher.send_all(b"".join(packets[first:last]))

        before = cpu_seconds(self._process)
        seconds = await self._progress.measure(count, send)
        self.cpu = (cpu_seconds(self._process) - before) / count * 1e6
        return count / seconds

    def _id(self, number: int) -> bytes:
        return (1 + number % 65_535).to_bytes(2, "big") if self._qos else b""

    async def _connect(self, port: int, client: bytes, log: Path) -> trio.SocketStream:
        return await connected(port, client, self._process, log)

    async def _count(self, number: int, stream: trio.SocketStream) -> None:
        waiting = 0  # bytes
        kept = bytearray()
        while data := await stream.receive_some(_READ):
            waiting += len(data)
            if self._qos:
                await self._acknowledge(stream, kept, data)
            whole, waiting = divmod(waiting, self._packet_size)
            if whole:
                self._progress.note(number, whole)

    async def _acknowledge(self, stream: trio.SocketStream, kept: bytearray, data: bytes) -> None:
        kept += data
        size, place = self._packet_size, 5 + len(_TOPIC)  # behind type, length and topic
        whole = len(kept) - len(kept) % size
        if whole:
            ids = [bytes(kept[start + place : start + place + 2]) for start in range(0, whole, size)]
            del kept[:whole]
            await stream.send_all(b"".join(b"\x40\x02" + one for one in ids))


@asynccontextmanager
async def broker(
    command: list[str], port: int, subscribers: int, log: Path, qos: int = 0
) -> AsyncIterator[Broker]:
    """Run a broker that listens on `port`; raises `PeerMissing`."""
    async with trio.open_nursery() as nursery:
        with running(command, log) as process:
            try:
                between = Broker(subscribers, process, qos)
                await between.join(subscribers, port, log, nursery)
                yield between
            finally:
                nursery.cancel_scope.cancel()


async def connected(
    port: int, client: bytes, process: subprocess.Popen[bytes], log: Path
) -> trio.SocketStream:
    """Connect a client; raises `PeerMissing`."""
    stream = await connect(port, process, log)
    # Clean session, no keep-alive.
    await stream.send_all(b"\x10" + _with_length(text(b"MQTT") + b"\x04\x02\x00\x00" + text(client)))
    if (await _exactly(stream, _CONNACK))[3]:
        raise PeerMissing("it refuses the connection")
    return stream


async def _read_all(stream: trio.SocketStream) -> None:
    while await stream.receive_some(_READ):
        pass  # acknowledgements, which are counted at the other end


async def _exactly(stream: trio.SocketStream, size: int) -> bytes:
    data = b""
    while len(data) < size:
        more = await stream.receive_some(size - len(data))
        if not more:
            raise PeerMissing("it closes the connection")
        data += more
    return data


def packet(first: int, rest: bytes) -> bytes:
    """Return a packet whose first byte is given."""
    return bytes([first]) + _with_length(rest)


def text(value: bytes) -> bytes:
    """Return a text with its length before it."""
    return len(value).to_bytes(2, "big") + value


def _with_length(rest: bytes) -> bytes:
    size, encoded = len(rest), bytearray()
    while True:
        size, digit = divmod(size, 128)
        encoded.append(digit | (0x80 if size else 0))
        if not size:
            return bytes(encoded) + rest
