"""A network of one real daemon: a directory, one previous hop and some next hops, all held by the harness."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import trio

from benchmarks.processes import START_WITHIN, Progress, cpu_seconds, last_line, running
from hushcast_directory.registry import Registry
from hushcast_directory.server import DirectoryServer
from hushcast_protocol.addresses import Address, parse_address
from hushcast_protocol.frames import (
    MAX_OVERLAY_FRAME,
    Ack,
    Forward,
    ParcelAnswer,
    ParcelFrame,
    decode_overlay,
)
from hushcast_protocol.leases import Install, ToRelay
from hushcast_protocol.links import HELLO_SIZE, TAG, Link
from hushcast_protocol.messages import HEADER, SEAL, Message, message_id
from hushcast_protocol.parcels import Parcel, seal_parcel
from hushcast_protocol.profile import HARDENED
from hushcast_protocol.roster import Descriptor, Network, Relay, sign_descriptor
from hushcast_protocol.secrets import ParcelKey, Seed
from hushcast_protocol.tokens import element
from hushcast_protocol.trail import Trail
from hushcast_protocol.wire import encode
from hushcast_runtime.channel import accept_channel
from hushcast_runtime.environment import system_environment
from hushcast_runtime.store import MemoryStore
from hushcast_runtime.transports.streams import listen_on_loopback, port_of
from hushcast_runtime.transports.tcp import TcpTransport

NETWORK = Network("bench", HARDENED.name, 24 * 3600)  # epochs so long that none ends within a measurement
PAYLOAD = 1024  # bytes
_BODY = HEADER + PAYLOAD + SEAL  # bytes of the smallest sealed body, which holds that payload
_READ = 65536
_LENGTH = 4  # bytes before each frame of a link


class _End:
    """One relay of the roster that the harness plays: a link over a stream, at its barest."""

    def __init__(self, seed: Seed) -> None:
        self.seed = seed
        self.id = seed.public()

    def descriptor(self, address: str) -> Descriptor:
        now = int(time.time())
        key = ParcelKey.draw(os.urandom).public()
        return Descriptor(NETWORK.id, self.id, address, key, now, now + 2 * NETWORK.epoch_seconds, 0)


class Overlay:
    """The harness's end of the network; `measure` sends through the daemon."""

    def __init__(self, next_hops: int) -> None:
        self._sender = _End(Seed.draw(os.urandom))
        self._receivers = [_End(Seed.draw(os.urandom)) for _ in range(next_hops)]
        self._progress = Progress(next_hops)
        self._frame_size = 0
        self._trunk = os.urandom(16)
        self._stream: trio.SocketStream | None = None
        self._link: Link | None = None
        self._answers = 0
        self._answered = trio.Event()
        self._process: subprocess.Popen[bytes] | None = None
        self.cpu = 0.0
        """Microseconds of CPU that the daemon took a message in the last measurement."""

    async def measure(self, count: int) -> float:
        """Forward `count` new messages of 1 KiB; return the messages a second."""
        day = NETWORK.calendar.day(time.time())
        frames = []
        for _ in range(count):
            body = os.urandom(_BODY)
            message = Message(message_id(day, body), day, (self._trunk,), Trail().to_bytes(), body)
            frames.append(encode(Forward(message)))
        # Trail and tokens have fixed sizes: what the daemon sends on is as long as what it got.
        self._frame_size = _LENGTH + len(frames[0])

        assert self._link is not None
        sealed = []
        for first in range(0, count, Progress.BATCH):
            for frame in frames[first : first + Progress.BATCH]:
                self._link.send(frame)
            sealed.append(self._link.data_to_send())

        async def send(first: int, last: int) -> None:
            assert self._stream is not None
            await self._stream.send_all(sealed[first // Progress.BATCH])

        assert self._process is not None
        before = cpu_seconds(self._process)
        seconds = await self._progress.measure(count, send)
        self.cpu = (cpu_seconds(self._process) - before) / count * 1e6
        return count / seconds

    async def start(self, store: Path | None, log: Path, nursery: trio.Nursery) -> list[str]:
        """Open directory and next hops; return the command that starts the daemon."""
        env, seed = system_environment(), Seed.draw(os.urandom)
        self._registry = Registry(NETWORK, seed, MemoryStore(), len(self._receivers) + 2)
        server = DirectoryServer(env, TcpTransport(), NETWORK.id, seed, self._registry)
        directory = await TcpTransport().listen(seed)
        nursery.start_soon(server.run, directory)
        await self._list(self._sender, Address("127.0.0.1:9"))  # nobody sends to it
        for number, receiver in enumerate(self._receivers):
            listener = await listen_on_loopback()
            nursery.start_soon(trio.serve_listeners, self._receive(number), [listener])
            await self._list(receiver, Address(f"127.0.0.1:{port_of(listener)}"))
        settings = {
            "network": NETWORK.name,
            "epoch_seconds": NETWORK.epoch_seconds,
            "directory": directory.address,
            "directory_key": seed.public().hex(),
            "store": str(store) if store else None,
        }
        return [sys.executable, "-m", "benchmarks.relay_process", json.dumps(settings)]

    async def join(self, process: subprocess.Popen[bytes], log: Path, nursery: trio.Nursery) -> None:
        """Wait until the daemon is listed, open the link of its previous hop and install the routes."""
        self._process = process
        ours = {self._sender.id, *(receiver.id for receiver in self._receivers)}
        with trio.move_on_after(START_WITHIN):
            # The registry is the directory's own, which tells nobody when it publishes.
            while self._registry.newest is None and process.poll() is None:  # noqa: ASYNC110
                await trio.sleep(0.05)
        if self._registry.newest is None:
            raise RuntimeError(f"the daemon did not register: {last_line(log)}")
        daemon = next(relay for id, relay in self._registry.newest.relays.items() if id not in ours)
        await self._dial(daemon, nursery)
        await self._install(daemon)

    async def _list(self, end: _End, address: Address) -> None:
        descriptor = end.descriptor(address)
        await self._registry.admit(descriptor, sign_descriptor(end.seed, descriptor))

    async def _dial(self, daemon: Relay, nursery: trio.Nursery) -> None:
        host, _, port = parse_address(daemon.address).rpartition(":")
        for _ in range(100):  # the daemon refuses relays until it has fetched the roster
            link = Link.initiate(NETWORK.id, daemon.id, os.urandom, MAX_OVERLAY_FRAME, self._sender.seed)
            stream = await trio.open_tcp_stream(host, int(port))
            channel, _ = await accept_channel(stream, link, decode_overlay)
            self._stream, self._link = stream, link
            with trio.move_on_after(0.3) as waiting:
                await channel.receive()  # the end of a link that was refused; else nothing comes
            if waiting.cancelled_caught:
                nursery.start_soon(self._listen)
                return
            await trio.sleep(0.2)
        raise RuntimeError("the daemon takes no link of a listed relay")

    async def _listen(self) -> None:
        """Read acknowledgements and answers to parcels."""
        assert self._stream is not None
        assert self._link is not None
        while data := await self._stream.receive_some(_READ):
            for frame in self._link.receive(bytes(data)):
                assert isinstance(frame, bytes)
                answer = decode_overlay(frame)
                if isinstance(answer, ParcelAnswer):
                    assert answer.refused is None
                    self._answers += 1
                    self._answered.set()
                    self._answered = trio.Event()

    async def _install(self, daemon: Relay) -> None:
        now = time.time()
        calendar = NETWORK.calendar
        routed = (element(HARDENED, self._trunk, daemon.id, self._sender.id),)
        assert self._stream is not None
        assert self._link is not None
        for number, receiver in enumerate(self._receivers):
            install = Install(
                os.urandom(16), calendar.day(now), ToRelay(receiver.id), routed, bytes(16), bytes(16)
            )
            parcel = Parcel(NETWORK.id, daemon.id, calendar.epoch(now), install, 0, ())
            sealed = seal_parcel(parcel, daemon.parcel_key, os.urandom)
            self._link.send(encode(ParcelFrame(number + 1, sealed, None)))
        await self._stream.send_all(self._link.data_to_send())
        with trio.fail_after(START_WITHIN):
            while self._answers < len(self._receivers):
                await self._answered.wait()

    def _receive(self, number: int) -> Callable[[trio.SocketStream], object]:
        """Return the handler of a next hop: after the handshake count frames, and acknowledge each read.

        As with the brokers' ends, what arrives is not opened: the harness must not be what is measured. A
        record's length tells how many frames of the one size are in it.
        """
        end = self._receivers[number]

        async def handle(stream: trio.SocketStream) -> None:
            link = Link.respond(NETWORK.id, end.seed, os.urandom, MAX_OVERLAY_FRAME)
            list(link.receive(await _exactly(stream, HELLO_SIZE)))
            await stream.send_all(link.data_to_send())
            header = await _exactly(stream, _LENGTH)
            proof = await _exactly(stream, int.from_bytes(header, "big"))
            list(link.receive(header + proof))
            assert link.is_open
            taken = 0  # messages
            buffer = bytearray()
            while data := await stream.receive_some(_READ):
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


async def _exactly(stream: trio.SocketStream, size: int) -> bytes:
    data = b""
    while len(data) < size:
        more = await stream.receive_some(size - len(data))
        if not more:
            raise RuntimeError("the daemon ended a link")
        data += more
    return data


@asynccontextmanager
async def overlay(next_hops: int, store: Path | None, log: Path) -> AsyncIterator[Overlay]:
    """Run one daemon between a previous hop and `next_hops`; its store is on disk where a path is given."""
    network = Overlay(next_hops)
    async with trio.open_nursery() as nursery:
        command = await network.start(store, log, nursery)
        with running(command, log) as process:
            try:
                await network.join(process, log, nursery)
                yield network
            finally:
                nursery.cancel_scope.cancel()
