"""Messages forwarded a second by one daemon: prepared before time is taken, and counted unopened."""

from __future__ import annotations

import os
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import trio

from benchmarks.processes import Progress, cpu_seconds
from benchmarks.relay.overlay import NETWORK, READ, Overlay, joined
from hushcast_protocol.base.crypto.aead import TAG
from hushcast_protocol.base.link.links import HELLO_SIZE, Link
from hushcast_protocol.base.wire import encode
from hushcast_protocol.overlay.frames import MAX_OVERLAY_FRAME, Ack, Forward, OverlayFrame
from hushcast_runtime.transports.base import StreamHandler
from hushcast_runtime.transports.tcp import TcpTransport

ACKNOWLEDGED_WITHIN = 10.0  # seconds
_LENGTH = 4  # bytes before each record of a link, and before each frame in one


class Throughput(Overlay):
    """`measure` sends through the daemon as fast as it goes, on loopback."""

    def __init__(self, next_hops: int) -> None:
        super().__init__(next_hops, TcpTransport())
        self._progress = Progress(next_hops)
        self._frame_size = 0
        self._sent = self._acknowledged = 0  # messages
        self._heard = trio.Event()
        self.cpu = 0.0
        """Microseconds of CPU that the daemon took a message, until it had acknowledged all of them."""

    async def measure(self, count: int) -> float:
        """Forward `count` new messages of 1 KiB; return the messages a second."""
        day = NETWORK.calendar.day(time.time())
        frames = [encode(Forward(self.message(day))) for _ in range(count)]
        # Trail and tokens have fixed sizes: what the daemon sends on is as long as what it got.
        self._frame_size = _LENGTH + len(frames[0])

        assert self.link is not None
        sealed = []
        for first in range(0, count, Progress.BATCH):
            for frame in frames[first : first + Progress.BATCH]:
                self.link.send(frame)
            sealed.append(self.link.data_to_send())

        async def send(first: int, last: int) -> None:
            assert self.stream is not None
            await self.stream.send_all(sealed[first // Progress.BATCH])

        assert self.process is not None
        before = cpu_seconds(self.process)
        seconds = await self._progress.measure(count, send)
        self._sent += count
        while self._acknowledged < self._sent:  # what it has to write is written by then
            self._heard = trio.Event()
            with trio.fail_after(ACKNOWLEDGED_WITHIN):
                await self._heard.wait()
        self.cpu = (cpu_seconds(self.process) - before) / count * 1e6
        return count / seconds

    async def hear(self, frame: OverlayFrame) -> None:
        """Count what the daemon has taken over."""
        if isinstance(frame, Ack):
            self._acknowledged = frame.number
            self._heard.set()

    def receive(self, number: int) -> StreamHandler:
        """Return the handler of a next hop: after the handshake count frames, and acknowledge each read.

        As with the brokers' ends, what arrives is not opened: the harness must not be what is measured. A
        record's length tells how many frames of the one size are in it.
        """
        end = self.receivers[number]

        async def handle(stream: trio.abc.Stream) -> None:
            link = Link.respond(NETWORK.id, end.seed, os.urandom, MAX_OVERLAY_FRAME)
            list(link.receive(await _exactly(stream, HELLO_SIZE)))
            await stream.send_all(link.data_to_send())
            header = await _exactly(stream, _LENGTH)
            proof = await _exactly(stream, int.from_bytes(header, "big"))
            list(link.receive(header + proof))
            assert link.is_open
            taken = 0  # messages
            buffer = bytearray()
            while data := await stream.receive_some(READ):
                buffer += data
                at, before = 0, taken
                while len(buffer) - at >= _LENGTH:
                    size = int.from_bytes(buffer[at : at + _LENGTH], "big")
                    if len(buffer) - at < _LENGTH + size:
                        break
                    at += _LENGTH + size
                    taken += (size - TAG) // self._frame_size
                del buffer[:at]
                if taken > before:
                    link.send(encode(Ack(taken, ())))
                    self._progress.note(number, taken - before)
                    await stream.send_all(link.data_to_send())

        return handle


async def _exactly(stream: trio.abc.Stream, size: int) -> bytes:
    data = b""
    while len(data) < size:
        more = await stream.receive_some(size - len(data))
        if not more:
            raise RuntimeError("the daemon ended a link")
        data += more
    return data


@asynccontextmanager
async def overlay(next_hops: int, store: Path | None, log: Path) -> AsyncIterator[Throughput]:
    """Run one daemon between a previous hop and `next_hops`; its store is on disk where a path is given."""
    async with joined(Throughput(next_hops), store, log) as network:
        yield network
