"""Waiting: whether who waits for a busy daemon tells whose mailbox is whose, or who published.

An adversary who can hold up a daemon sees which mailboxes answer late, and so live in it. It sends what
would hold up a daemon that opened all of a read at once: a quarter of a MiB of empty frames behind the
proof of a handshake. In each trial it does so at one of several daemons, or answers so to whoever drops a
message at its relays, and asks at all mailboxes meanwhile. It guesses the one that was late, against what
it is in peace.
"""

from __future__ import annotations

import json
import math
import os
import random
import sqlite3
from collections.abc import Awaitable, Callable
from contextlib import suppress
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

import msgspec
import trio

import hushcast
from hushcast_directory.client import DirectoryClient
from hushcast_directory.trust import Trust
from hushcast_node.settings import NodeSettings
from hushcast_protocol.base.addresses import Address
from hushcast_protocol.base.errors import HushcastError
from hushcast_protocol.base.links import Link
from hushcast_protocol.base.roster import Descriptor, Network, sign_descriptor
from hushcast_protocol.base.secrets import ParcelKey, Seed
from hushcast_protocol.overlay.frames import MAX_OVERLAY_FRAME
from hushcast_runtime.config import load_settings
from hushcast_runtime.environment import system_environment
from hushcast_runtime.tor.settings import TorSettings
from hushcast_runtime.tor.transport import TorTransport
from hushcast_runtime.transports.base import Transport
from hushcast_runtime.transports.tcp import TcpTransport
from hushcast_testnet.inventory import Member, Testnet, load

AMOUNT = 256 * 1024  # bytes behind a proof: one read of a link
CONNECTIONS = 2  # that an adversary holds up a daemon with: they took a second of its processor
RELAYS = 6  # of the adversary, so that nearly every publication meets one of them
MOMENTS = (0.05, 0.15, 0.4)  # seconds after which it asks at each mailbox
PATIENCE = 30.0  # seconds for an answer
CERTAIN = 2.58  # standard deviations of an interval of 99 %: four cells of a soak rarely fail by chance

Progress = Callable[[str], None]


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

    def __init__(self, transport: Transport, network: Network) -> None:
        self._transport = transport
        self._network = network
        self._env = system_environment()
        self._peace: dict[str, list[float]] = {}
        self.answered: trio.Event | None = None
        """Set once somebody who dropped a message had its answer; none while relays behave."""

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
            with suppress(trio.BrokenResourceError, trio.ClosedResourceError), trio.move_on_after(PATIENCE):
                await asked.stream.send_all(data)
                await trio.sleep(PATIENCE)

        return go

    async def late(self, mailboxes: dict[str, Door], begin: Callable[[], Awaitable[None]]) -> str:
        """Ask at all mailboxes in peace, and then after `begin`; return whose was late."""
        peace = await self._times(mailboxes)
        for name, took in peace.items():
            self._peace.setdefault(name, []).append(took)
        times = await self._times(mailboxes, begin)
        return max(times, key=lambda name: times[name] - median(self._peace[name][-20:]))

    async def _times(
        self, mailboxes: dict[str, Door], begin: Callable[[], Awaitable[None]] | None = None
    ) -> dict[str, float]:
        """Return the longest that each mailbox took to answer."""
        asked: dict[str, list[Asked]] = {name: [] for name in mailboxes}

        async def reach(name: str) -> None:
            asked[name].append(await self.reach(mailboxes[name]))

        async with trio.open_nursery() as nursery:
            for name in mailboxes:
                for _ in MOMENTS:
                    nursery.start_soon(reach, name)
        longest = dict.fromkeys(mailboxes, 0.0)

        async def ask(name: str, one: Asked, moment: float) -> None:
            await trio.sleep(moment)
            longest[name] = max(longest[name], await one.seconds())

        if begin is not None:
            await begin()
        async with trio.open_nursery() as nursery:
            for name, ones in asked.items():
                for one, moment in zip(ones, MOMENTS, strict=True):
                    nursery.start_soon(ask, name, one, moment)
        return longest

    async def serve(self, seed: Seed, stream: trio.abc.Stream) -> None:
        """Answer at a relay of the adversary's: once armed, with all that is behind the proof."""
        link = Link.respond(self._network.id, seed, os.urandom, MAX_OVERLAY_FRAME)
        with suppress(HushcastError, trio.BrokenResourceError):
            list(link.receive(bytes(await stream.receive_some(4096))))
            data = link.data_to_send()
            if self.answered is None:
                await stream.send_all(data)
                while await stream.receive_some(4096):  # relays that are linked dial no more
                    pass
                return
            self.answered.set()
            await stream.send_all(data + _nothing(link))
            await trio.sleep(PATIENCE)

    async def register(self, seed: Seed, address: Address, directory: DirectoryClient, epoch: int) -> None:
        """Have a relay of the adversary's listed, again and again."""
        parcel_key = ParcelKey(os.urandom(32)).public()
        while True:
            now = int(self._env.now())
            body = Descriptor(self._network.id, seed.public(), address, parcel_key, now, now + 3 * epoch, 0)
            with suppress(HushcastError):
                await directory.register(sign_descriptor(seed, body))
            await trio.sleep(epoch / 2)


def _nothing(link: Link) -> bytes:
    assert link._outgoing is not None
    return b"".join(link._outgoing.seal(bytes(2000)) for _ in range(AMOUNT // 2020))


def mailboxes(testnet: Testnet) -> dict[str, Door]:
    """Return the mailboxes of daemons, by a topic of each daemon's own, as the relays above them know them.

    Whose they are is in the traces, which name the guesses and are no part of them.
    """
    owners: dict[bytes, str] = {}
    top = Path(testnet.nodes[0].config).parents[2]
    for file in (top / "traces").glob("*.truth.jsonl"):
        for row in map(json.loads, file.read_text().splitlines()):
            if row["kind"] == "subscribed":
                owners[bytes.fromhex(row["mailbox"])] = file.name.split(".")[0]
    found: dict[str, Door] = {}
    for member in testnet.nodes:
        if member.role == "relay":
            store = sqlite3.connect(f"file:{member.state}/state.db?mode=ro", uri=True)
            for (value,) in store.execute("select value from records where kind = 'lease'"):
                _, hop, address, *_ = msgspec.msgpack.decode(value)
                if hop[:1] == b"m" and hop[1:] in owners:
                    found[owners[hop[1:]]] = Door(hop[1:], Address(address))
            store.close()
    return found


def interval(right: int, trials: int) -> tuple[float, float]:
    """Return where the accuracy behind so many right guesses lies, at 99 % (Wilson)."""
    share, square = right / trials, CERTAIN**2
    middle = (share + square / (2 * trials)) / (1 + square / trials)
    width = CERTAIN * math.sqrt(share * (1 - share) / trials + square / (4 * trials**2))
    width /= 1 + square / trials
    return round(middle - width, 3), round(middle + width, 3)


def watch_waiting(directory: Path, trials: int, seed: int, progress: Progress) -> dict[str, Any]:
    """Guess on a running testnet; return how often that was right, beside chance.

    `ok` tells whether no guess is better than chance within its interval.
    """
    return trio.run(_watch, load(directory), trials, seed, progress)


class Scene(NamedTuple):
    """A testnet, and who looks at it."""

    testnet: Testnet
    settings: NodeSettings
    adversary: Adversary
    boxes: dict[str, Door]
    trials: int
    chance: random.Random
    progress: Progress

    def of(self, role: str) -> list[Member]:
        """Return the daemons of a role."""
        return [member for member in self.testnet.nodes if member.role == role]


async def _watch(testnet: Testnet, trials: int, seed: int, progress: Progress) -> dict[str, Any]:
    async with trio.open_nursery() as nursery:
        settings = load_settings(Path(testnet.nodes[0].config), NodeSettings)
        transport: Transport = TcpTransport()
        if testnet.tor is not None:
            control, socks = testnet.tor.clients[0].endpoints()
            transport = tor = TorTransport(TorSettings(control=control, socks=socks))
            await nursery.start(tor.run)
        for member in testnet.nodes:
            await nursery.start(_subscribe, member)
        boxes: dict[str, Door] = {}
        while len(boxes) < len(testnet.nodes):
            await trio.sleep(1)
            boxes = mailboxes(testnet)
        chance = random.Random(seed)  # noqa: S311
        adversary = Adversary(transport, settings.network.network())
        scene = Scene(testnet, settings, adversary, boxes, trials, chance, progress)
        cells = {"who hosts": await _hosts(scene)}
        await _join(scene, transport, nursery)
        cells["who published"] = await _published(scene)
        nursery.cancel_scope.cancel()
    return {"ok": all(cell["ok"] for cell in cells.values()), **cells}


async def _subscribe(
    member: Member, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED
) -> None:
    async with (
        hushcast.connect(member.socket, timeout=None) as daemon,
        daemon.subscribe(f"of {member.name} alone") as messages,
    ):
        task_status.started()
        async for _ in messages:
            pass


async def _status(member: Member) -> dict[str, Any]:
    async with hushcast.connect(member.socket, timeout=None) as daemon:
        return await daemon.status()


async def _hosts(scene: Scene) -> dict[str, Any]:
    """Hold up one relay in each trial; guess which mailbox is its daemon's."""
    doors = {
        member.name: Door(bytes.fromhex((await _status(member))["name"]), Address(member.address or ""))
        for member in scene.of("relay")
    }
    known = {name: scene.boxes[name] for name in doors}
    async with trio.open_nursery() as nursery:

        async def trial() -> bool:
            target = scene.chance.choice(list(doors))
            ready = [await scene.adversary.hold_up(doors[target]) for _ in range(CONNECTIONS)]

            async def begin() -> None:
                for go in ready:
                    nursery.start_soon(go)
                await trio.lowlevel.checkpoint()

            return await scene.adversary.late(known, begin) == target

        cell = await _cell(scene, "who hosts", trial, len(known))
        nursery.cancel_scope.cancel()
    return cell


async def _published(scene: Scene) -> dict[str, Any]:
    """Have one client publish in each trial, and meet a relay of the adversary's; guess which client."""
    clients = scene.of("client")
    known = {member.name: scene.boxes[member.name] for member in clients}
    adversary = scene.adversary

    async def trial() -> bool:
        publisher = scene.chance.choice(clients)

        async def begin() -> None:
            answered = adversary.answered = trio.Event()
            async with hushcast.connect(publisher.socket, timeout=None) as daemon:
                await daemon.enqueue("a topic of nobody", b"hello", at_once=True)
            with trio.fail_after(PATIENCE):
                await answered.wait()

        try:
            return await adversary.late(known, begin) == publisher.name
        finally:
            adversary.answered = None
            await trio.sleep(1)  # what was left of that publication goes to other relays

    return await _cell(scene, "who published", trial, len(known))


async def _join(scene: Scene, transport: Transport, nursery: trio.Nursery) -> None:
    """Have the adversary's relays listed, as anybody may."""
    pinned, network = scene.settings.network, scene.settings.network.network()
    address, key = Address(pinned.directory or ""), bytes.fromhex(pinned.directory_key or "")
    env = system_environment()
    directory = DirectoryClient(env, transport, network.id, address, Trust(network, key))
    for _ in range(RELAYS):
        seed = Seed(os.urandom(32))
        listener = await transport.listen(seed)
        nursery.start_soon(listener.serve, partial(scene.adversary.serve, seed))
        await listener.published()
        nursery.start_soon(scene.adversary.register, seed, listener.address, directory, network.epoch_seconds)
    wanted = len(scene.of("relay")) + RELAYS
    for member in scene.of("client"):
        listed = 0
        while listed < wanted:
            await trio.sleep(1)
            listed = (await _status(member))["roster"]["relays"]
    scene.progress("the adversary's relays are listed")


async def _cell(scene: Scene, name: str, trial: Callable[[], Awaitable[bool]], among: int) -> dict[str, Any]:
    """Make trials; one in which a connection breaks, or nobody meets the adversary, is none."""
    right = made = 0
    while made < scene.trials:
        guesses: list[bool] = []
        try:
            guesses.append(await trial())
        except* (HushcastError, OSError, trio.BrokenResourceError, trio.TooSlowError) as errors:
            scene.progress(f"{name}: no trial: {errors.exceptions[0]!r:.100}")
        right += sum(guesses)
        made += len(guesses)
        if guesses and made % 25 == 0:
            scene.progress(f"{name}: {right} of {made} right")
    low, high = interval(right, made)
    chance = round(1 / among, 3)
    return {"ok": low <= chance, "right": right, "trials": made, "99 %": [low, high], "chance": chance}
