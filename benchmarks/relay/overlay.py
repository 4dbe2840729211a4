"""A network of one real daemon: a directory, one previous hop and some next hops, all held by the harness."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import asdict
from pathlib import Path
from typing import TypeVar

import trio

from benchmarks.processes import START_WITHIN, last_line, running
from hushcast_directory.server.configured_set import SetOfOne
from hushcast_directory.server.directory_server import DirectoryServer
from hushcast_directory.server.roll import Roll
from hushcast_protocol.authorities.directory_requests import Fetch, HeadAnswer
from hushcast_protocol.base.addresses import Address, parse_address
from hushcast_protocol.base.crypto.secrets import ParcelKey, Seed
from hushcast_protocol.base.errors import DecodeError
from hushcast_protocol.base.link.links import Link
from hushcast_protocol.base.roster import Descriptor, Network, check_descriptor, sign_descriptor
from hushcast_protocol.base.wire import encode
from hushcast_protocol.content.messages import HEADER, SEAL, TRAIL_SIZE, Message, message_id
from hushcast_protocol.overlay.elements import element
from hushcast_protocol.overlay.frames import (
    MAX_OVERLAY_FRAME,
    OverlayFrame,
    ParcelAnswer,
    ParcelFrame,
    Ping,
    decode_overlay,
)
from hushcast_protocol.overlay.leases import Install, ToRelay
from hushcast_protocol.overlay.parcels import Parcel, seal_parcel
from hushcast_protocol.overlay.profile import HARDENED
from hushcast_runtime.environment import system_environment
from hushcast_runtime.storage.store import MemoryStore
from hushcast_runtime.transports.base import StreamHandler, Transport, TransportError
from hushcast_runtime.transports.channel import accept_channel
from hushcast_testnet.tor.tor_network import TorClient

NETWORK = Network("bench", HARDENED.name, 24 * 3600)  # epochs so long that none ends within a measurement
PAYLOAD = 1024  # bytes
_BODY = HEADER + PAYLOAD + SEAL  # bytes of the smallest sealed body, which holds that payload
READ = 65536
_LENGTH = 4  # bytes before each frame of a link


class End:
    """One relay of the roster that the harness plays."""

    def __init__(self, seed: Seed) -> None:
        self.seed = seed
        self.id = seed.public()

    def descriptor(self, address: str) -> Descriptor:
        """Describe it as listed at an address."""
        now = int(time.time())
        key = ParcelKey.draw(os.urandom).public()
        return Descriptor(NETWORK.id, self.id, address, key, now, now + 2 * NETWORK.epoch_seconds, 0)


class Overlay:
    """The harness's end of the network: what it measures is for its subclasses."""

    def __init__(self, next_hops: int, transport: Transport, tor: TorClient | None = None) -> None:
        """`tor` are the doors by which the daemon reaches what `transport` reaches, if that is over Tor."""
        self._transport = transport
        self._tor = tor
        self.sender = End(Seed.draw(os.urandom))
        self.receivers = [End(Seed.draw(os.urandom)) for _ in range(next_hops)]
        self.trunk = os.urandom(16)
        self.stream: trio.abc.Stream | None = None
        self.link: Link | None = None
        self._answers = 0
        self._answered = trio.Event()
        self.process: subprocess.Popen[bytes] | None = None

    def message(self, day: int) -> Message:
        """Return a new message of 1 KiB that the daemon has routes for."""
        body = os.urandom(_BODY)
        return Message(message_id(day, body), day, (self.trunk,), bytes(TRAIL_SIZE), body)

    async def start(self, store: Path | None, nursery: trio.Nursery) -> list[str]:
        """Open directory and next hops; return the command that starts the daemon."""
        env, seed = system_environment(), Seed.draw(os.urandom)
        self._roll = Roll(NETWORK, seed, MemoryStore())
        sitting = SetOfOne(len(self.receivers) + 2)
        server = DirectoryServer(env, self._transport, self._roll, sitting)
        self._agreeing = server.agreeing
        directory = await self._transport.listen(seed)
        nursery.start_soon(server.run, directory)
        ends = [await self._transport.listen(end.seed) for end in (self.sender, *self.receivers)]
        for number, (end, listener) in enumerate(zip(self.receivers, ends[1:], strict=True)):
            nursery.start_soon(listener.serve, self.receive(number))
            await self._list(end, listener.address)
        await self._list(self.sender, ends[0].address)  # nobody sends to it
        for listener in (directory, *ends):
            await listener.published()
        settings = {
            "network": NETWORK.name,
            "epoch_seconds": NETWORK.epoch_seconds,
            "directory": directory.address,
            "directory_key": seed.public().hex(),
            "store": str(store) if store else None,
            "tor": asdict(self._tor) if self._tor else None,
            "is_client": False,
        }
        return [sys.executable, "-m", "benchmarks.relay.relay_process", json.dumps(settings)]

    async def join(self, process: subprocess.Popen[bytes], log: Path, nursery: trio.Nursery) -> None:
        """Wait until the daemon is listed, open the link of its previous hop and install the routes."""
        self.process = process
        ours = {self.sender.id, *(receiver.id for receiver in self.receivers)}
        with trio.move_on_after(START_WITHIN):
            # It is the directory's own, which tells nobody when it publishes.
            while self._agreeing.epoch is None and process.poll() is None:  # noqa: ASYNC110
                await trio.sleep(0.05)
        answer = self._agreeing.answer(Fetch(None))
        if not isinstance(answer, HeadAnswer) or not answer.seats:
            raise RuntimeError(f"the daemon did not register: {last_line(log)}")
        listed = (check_descriptor(entry.descriptor, NETWORK) for entry in answer.seats)
        daemon = next(one for one in listed if one.relay not in ours)
        await self._dial(daemon, nursery)
        await self._install(daemon)

    async def _list(self, end: End, address: Address) -> None:
        descriptor = end.descriptor(address)
        await self._roll.admit(descriptor, sign_descriptor(end.seed, descriptor))

    async def _dial(self, daemon: Descriptor, nursery: trio.Nursery) -> None:
        for _ in range(100):  # the daemon refuses relays until it has fetched the roster
            link = Link.initiate(NETWORK.id, daemon.relay, os.urandom, MAX_OVERLAY_FRAME, self.sender.seed)
            stream = await self._transport.connect(parse_address(daemon.address), "sender")
            channel, _ = await accept_channel(stream, link, decode_overlay)
            with suppress(DecodeError, TransportError):  # refused, or a stranger's with a box
                await channel.send(Ping())
                if await channel.receive():
                    self.stream, self.link = stream, link
                    nursery.start_soon(self._listen)
                    return
            await trio.sleep(0.2)
        raise RuntimeError("the daemon takes no link of a listed relay")

    async def _listen(self) -> None:
        """Read acknowledgements and answers to parcels."""
        assert self.stream is not None
        assert self.link is not None
        while data := await self.stream.receive_some(READ):
            for frame in self.link.receive(bytes(data)):
                assert isinstance(frame, bytes)
                answer = decode_overlay(frame)
                if isinstance(answer, ParcelAnswer):
                    assert answer.refused is None
                    self._answers += 1
                    self._answered.set()
                    self._answered = trio.Event()
                else:
                    await self.hear(answer)

    async def _install(self, daemon: Descriptor) -> None:
        now = time.time()
        calendar = NETWORK.calendar
        assert self.stream is not None
        assert self.link is not None
        routes = self.routes()
        for number, (source, sink) in enumerate(routes):
            routed = (element(HARDENED, self.trunk, daemon.relay, source.id),)
            install = Install(
                os.urandom(16), calendar.day(now), ToRelay(sink.id), routed, bytes(16), bytes(16)
            )
            parcel = Parcel(NETWORK.id, daemon.relay, calendar.epoch(now), install, 0, (), os.urandom(16))
            sealed = seal_parcel(parcel, daemon.parcel_key, os.urandom)
            self.link.send(encode(ParcelFrame(number + 1, sealed, None)))
        await self.stream.send_all(self.link.data_to_send())
        with trio.fail_after(START_WITHIN):
            while self._answers < len(routes):
                await self._answered.wait()

    def receive(self, number: int) -> StreamHandler:
        """Return the handler of a next hop's connections."""
        raise NotImplementedError

    def routes(self) -> list[tuple[End, End]]:
        """Return what the daemon is to forward: from which end to which."""
        return [(self.sender, receiver) for receiver in self.receivers]

    async def hear(self, frame: OverlayFrame) -> None:
        """Take what the daemon sends on the link of its previous hop."""


NetworkT = TypeVar("NetworkT", bound=Overlay)


@asynccontextmanager
async def joined(network: NetworkT, store: Path | None, log: Path) -> AsyncIterator[NetworkT]:
    """Run the daemon of a network."""
    async with trio.open_nursery() as nursery:
        command = await network.start(store, nursery)
        with running(command, log) as process:
            try:
                await network.join(process, log, nursery)
                yield network
            finally:
                nursery.cancel_scope.cancel()
