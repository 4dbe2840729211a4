"""Waiting: whether who waits for a busy daemon tells whose mailbox is whose, or who published.

An adversary who can hold up a daemon sees which mailboxes answer late, and so live in it. It sends what
would hold up a daemon that opened all of a read at once: a quarter of a MiB of empty frames behind the
proof of a handshake. In each trial it does so at one of several daemons, or answers so to whoever drops a
message at its relays, and asks at all mailboxes meanwhile. It guesses the one that was late, against what
it is in peace.

Publishing is work by itself. So in half of the trials, in between, the relays give an honest receipt: what
these tell, no attack is needed for.
"""

from __future__ import annotations

import os
import random
from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import trio

import hushcast
from hushcast_directory.client.directory_client import DirectoryClient
from hushcast_directory.client.trust import Trust
from hushcast_node.settings import JoinedNetworkSection, NodeSettings
from hushcast_protocol.base.addresses import Address
from hushcast_protocol.base.errors import HushcastError
from hushcast_protocol.base.secrets import Seed
from hushcast_runtime.environment import system_environment
from hushcast_runtime.processes.config import load_settings
from hushcast_runtime.tor.settings import TorSettings
from hushcast_runtime.tor.transport import TorTransport
from hushcast_runtime.transports.base import Transport
from hushcast_runtime.transports.tcp import TcpTransport
from hushcast_testnet.inventory import Member, Testnet, load
from soak.adversary import PATIENCE, Adversary, Door
from soak.guesses import Trial, told
from soak.relay_disks import owners, relay_records

CONNECTIONS = 2  # that an adversary holds up a daemon with: they took a second of its processor
RELAYS = 6  # of the adversary, so that nearly every publication meets one of them

Progress = Callable[[str], None]


def mailboxes(testnet: Testnet) -> dict[str, Door]:
    """Return the mailboxes of daemons, by a topic of each daemon's own, as the relays above them know them.

    Whose they are is in the traces, which name the guesses and are no part of them.
    """
    known = owners(testnet)
    found: dict[str, Door] = {}
    for _, _, value in relay_records(testnet, "lease"):
        _, hop, address, *_ = msgspec.msgpack.decode(value)
        if hop[:1] == b"m" and hop[1:] in known:
            found[known[hop[1:]]] = Door(hop[1:], Address(address))
    return found


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
        adversary = Adversary(transport, settings.network.network(), chance)
        scene = Scene(testnet, settings, adversary, boxes, trials, chance, progress)
        cells = await _hosts(scene)
        await _join(scene, transport, nursery)
        cells |= await _published(scene)
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

        async def trial() -> Trial:
            target = scene.chance.choice(list(doors))
            ready = [await scene.adversary.hold_up(doors[target]) for _ in range(CONNECTIONS)]

            async def begin() -> None:
                for go in ready:
                    nursery.start_soon(go)
                await trio.lowlevel.checkpoint()

            return Trial(target, await scene.adversary.late(known, begin))

        cells = await _cells(scene, {"who hosts": trial}, len(known))
        nursery.cancel_scope.cancel()
    return cells


async def _published(scene: Scene) -> dict[str, Any]:
    """Have one client publish in each trial, and meet a relay of the adversary's; guess which client."""
    clients = scene.of("client")
    known = {member.name: scene.boxes[member.name] for member in clients}
    adversary = scene.adversary

    async def trial(floods: bool) -> Trial:
        publisher = scene.chance.choice(clients)

        async def begin() -> None:
            met = adversary.met = trio.Event()
            adversary.floods = floods
            async with hushcast.connect(publisher.socket, timeout=None) as daemon:
                await daemon.enqueue("a topic of nobody", b"hello", at_once=True)
            with trio.fail_after(PATIENCE):
                await met.wait()

        try:
            return Trial(publisher.name, await adversary.late(known, begin))
        finally:
            adversary.met, adversary.floods = None, False
            await trio.sleep(1)  # what was left of that publication goes to other relays

    kinds = {"who published": partial(trial, True), "who published to who is honest": partial(trial, False)}
    return await _cells(scene, kinds, len(known))


async def _join(scene: Scene, transport: Transport, nursery: trio.Nursery) -> None:
    """Have the adversary's relays listed, as anybody may."""
    pinned, network = scene.settings.network, scene.settings.network.network()
    assert isinstance(pinned, JoinedNetworkSection), "a testnet of relays has a directory"
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


async def _cells(
    scene: Scene, kinds: Mapping[str, Callable[[], Awaitable[Trial]]], among: int
) -> dict[str, Any]:
    """Make trials of each kind, in turns; one in which a connection breaks, or nobody is met, is none."""
    made: dict[str, list[Trial]] = {name: [] for name in kinds}
    while left := [name for name, trials in made.items() if len(trials) < scene.trials]:
        for name in scene.chance.sample(left, len(left)):
            try:
                made[name].append(await kinds[name]())
            except* (HushcastError, OSError, trio.BrokenResourceError, trio.TooSlowError) as errors:
                scene.progress(f"{name}: no trial: {errors.exceptions[0]!r:.100}")
            else:
                if len(made[name]) % 25 == 0:
                    scene.progress(f"{name}: {told(made[name], among)}")
    return {name: told(trials, among) for name, trials in made.items()}
