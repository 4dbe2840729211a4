"""The adversary of `soak.waiting`: it wants to hold up daemons, asks at mailboxes, and has relays listed."""

from __future__ import annotations

import os
import random
from collections.abc import Awaitable, Callable
from contextlib import suppress
from statistics import median
from typing import NamedTuple

import trio

from hushcast_directory.client.directory_client import DirectoryClient
from hushcast_protocol.base.addresses import Address
from hushcast_protocol.base.errors import HushcastError
from hushcast_protocol.base.links import Link
from hushcast_protocol.base.roster import Descriptor, Network, sign_descriptor
from hushcast_protocol.base.secrets import ParcelKey, Seed
from hushcast_protocol.base.wire import Wire, encode
from hushcast_protocol.overlay.confirmations import confirm
from hushcast_protocol.overlay.frames import (
    MAX_OVERLAY_FRAME,
    Ack,
    Drop,
    Forward,
    OverlayFrame,
    ParcelAnswer,
    ParcelFrame,
    Receipt,
    decode_overlay,
)
from hushcast_protocol.overlay.parcels import open_parcel
from hushcast_runtime.environment import system_environment
from hushcast_runtime.transports.base import Transport

AMOUNT = 256 * 1024  # bytes behind a proof: one read of a link
MOMENTS = (0.05, 0.15, 0.4)  # seconds after which it asks at each mailbox
PATIENCE = 30.0  # seconds for an answer


class Door(NamedTuple):
    """Where an end is reached, and as whom."""

    key: bytes
    address: Address


class Asked(NamedTuple):
    """A connection on which nothing was said yet."""

    stream: trio.abc.Stream
    link: Link

    async def seconds(self) -> float:
        """Begin a handshake; return how long the answer took."""
        began = trio.current_time()
        with trio.move_on_after(PATIENCE):
            await self.stream.send_all(self.link.data_to_send())
            got = 0
            while got < 33 and (data := await self.stream.receive_some(4096)):
                got += len(data)
        await self.stream.aclose()
        return trio.current_time() - began


class Adversary:
    """Who holds up daemons, and asks at mailboxes."""

    def __init__(self, transport: Transport, network: Network, chance: random.Random) -> None:
        self._transport = transport
        self._network = network
        self._chance = chance
        self._env = system_environment()
        self._parcel_key = ParcelKey.draw(os.urandom)  # of all its relays
        self._peace: dict[str, list[float]] = {}
        self.met: trio.Event | None = None
        """Set once somebody begins a handshake with a relay of the adversary's, where that is waited for."""
        self.floods = False

    async def reach(self, door: Door) -> Asked:
        """Connect to an end."""
        stream = await self._transport.connect(door.address, self._env.isolation())
        return Asked(stream, Link.initiate(self._network.id, door.key, os.urandom, MAX_OVERLAY_FRAME))

    async def hold_up(self, door: Door) -> Callable[[], Awaitable[None]]:
        """Shake hands with an end; return what sends the last step and all that is behind it."""
        asked = await self.reach(door)
        await asked.stream.send_all(asked.link.data_to_send())
        while not asked.link.is_open:
            list(asked.link.receive(bytes(await asked.stream.receive_some(65536))))
        data = asked.link.data_to_send() + _nothing(asked.link)

        async def go() -> None:
            async with asked.stream:
                with suppress(trio.BrokenResourceError), trio.move_on_after(PATIENCE):
                    await asked.stream.send_all(data)
                    await trio.sleep(PATIENCE)

        return go

    async def late(
        self, mailboxes: dict[str, Door], begin: Callable[[], Awaitable[None]]
    ) -> dict[str, float]:
        """Ask at all mailboxes in peace, and then after `begin`; return by how much each was later."""
        peace = await self._times(mailboxes)
        for name, took in peace.items():
            self._peace.setdefault(name, []).append(took)
        times = await self._times(mailboxes, begin)
        return {name: took - median(self._peace[name][-20:]) for name, took in times.items()}

    async def _times(
        self, mailboxes: dict[str, Door], begin: Callable[[], Awaitable[None]] | None = None
    ) -> dict[str, float]:
        """Return the longest that each mailbox took to answer; none is always asked first."""
        asked: dict[str, list[Asked]] = {name: [] for name in mailboxes}
        order = self._chance.sample(list(mailboxes), len(mailboxes))

        async def reach(name: str) -> None:
            asked[name].append(await self.reach(mailboxes[name]))

        async with trio.open_nursery() as nursery:
            for name in order:
                for _ in MOMENTS:
                    nursery.start_soon(reach, name)
        longest = dict.fromkeys(mailboxes, 0.0)

        async def ask(name: str, one: Asked, moment: float) -> None:
            await trio.sleep(moment)
            longest[name] = max(longest[name], await one.seconds())

        if begin is not None:
            await begin()
        async with trio.open_nursery() as nursery:
            for name in order:
                for one, moment in zip(asked[name], MOMENTS, strict=True):
                    nursery.start_soon(ask, name, one, moment)
        return longest

    async def serve(self, seed: Seed, stream: trio.abc.Stream) -> None:
        """Answer at a relay of the adversary's as any would; where it `floods`, with all behind the proof."""
        link = Link.respond(self._network.id, seed, os.urandom, MAX_OVERLAY_FRAME)
        with suppress(HushcastError, trio.BrokenResourceError):
            list(link.receive(bytes(await stream.receive_some(4096))))
            data = link.data_to_send() + (_nothing(link) if self.floods else b"")
            if self.met is not None:
                self.met.set()
            await stream.send_all(data)
            forwards = 0
            while came := await stream.receive_some(65536):
                for frame in link.receive(bytes(came)):
                    if isinstance(frame, bytes):
                        said = decode_overlay(frame)
                        forwards += isinstance(said, Forward)
                        link.send(encode(self._answer(seed, said, forwards)))
                await stream.send_all(link.data_to_send())

    async def register(self, seed: Seed, address: Address, directory: DirectoryClient, epoch: int) -> None:
        """Have a relay of the adversary's listed, again and again."""
        parcel_key = self._parcel_key.public()
        while True:
            now = int(self._env.now())
            body = Descriptor(self._network.id, seed.public(), address, parcel_key, now, now + 3 * epoch, 0)
            with suppress(HushcastError):
                await directory.register(sign_descriptor(seed, body))
            await trio.sleep(epoch / 2)

    def _answer(self, seed: Seed, said: OverlayFrame, forwards: int) -> Wire:
        """Return what a relay answers that has acknowledged so many messages, this one included."""
        if isinstance(said, Drop):
            return Receipt("accepted")
        if isinstance(said, ParcelFrame):
            epoch = self._network.calendar.epoch(self._env.now())
            parcel = open_parcel(said.sealed, self._parcel_key, self._network.id, seed.public(), epoch)
            return ParcelAnswer(said.number, None, confirm(parcel.word, (), len(said.sealed), os.urandom))
        return Ack(forwards, ())


def _nothing(link: Link) -> bytes:
    assert link._outgoing is not None
    return b"".join(link._outgoing.seal(bytes(2000)) for _ in range(AMOUNT // 2020))
