"""Devices of one person over Tor: they are killed and away, subscribe and read in turns, and one is lost.

After every round all that is shared must be the same on all disks, and told. Everything is read with `once`,
so no message may be shown twice to the person. Half-way a device is killed, its disk is taken, it is removed,
and another one joins: nothing that the others write later may open with what was on that disk.
"""

from __future__ import annotations

import random
import shutil
import signal
import sqlite3
import time
from collections import Counter
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import trio

import hushcast
from hushcast_local.devices.circle_records import OwnCircle, load_circle
from hushcast_local.devices.subscription_plan import FOLLOWED_WITHIN
from hushcast_protocol.base.epochs import Calendar
from hushcast_protocol.base.errors import AuthenticationError
from hushcast_protocol.devices.beats import Beat, open_beat, seal_beat
from hushcast_protocol.devices.circle_secrets import Expelled, take_secret
from hushcast_runtime.storage.state_layout import DATABASE
from hushcast_runtime.storage.state_lock import holder
from hushcast_runtime.storage.store import SqliteStore
from hushcast_testnet import processes
from hushcast_testnet.inventory import Member, Testnet, describe, load, start

MOST_TOPICS = 4  # at one time: each subscription on each device takes work in every epoch
PUBLICATIONS = 3  # a round
READ_FOR = 4.0  # seconds that a program listens for what waits
SHOWN_WITHIN = 1.0  # seconds until what was shown is on disk: a commit waits a tenth of that
TOLD_WITHIN = 8  # epochs until all have told all; two or three where nothing is lost
BEGUN_WITHIN = FOLLOWED_WITHIN + 4  # epochs until what was told has begun, and ended, everywhere
READY_WITHIN = 240.0  # seconds
AWAY = (0.3, 2.0)  # epochs for which a device is away

Progress = Callable[[str], None]


@dataclass
class DeviceFigures:
    """What came of it."""

    rounds: int = 0
    kills: int = 0
    stops: int = 0
    subscribed: int = 0
    ended: int = 0
    published: int = 0
    shown: int = 0
    twice: int = 0
    """Messages that the person was shown twice."""
    missing: int = 0
    """Of topics that nobody ended: with a receipt, and never shown."""
    epochs_to_tell: list[float] = field(default_factory=list)
    """From the return of the last device of a round until all disks held the same."""
    opened: int = 0
    """What the disk that was taken opened of what came later."""
    problems: list[str] = field(default_factory=list)


def watch_devices(directory: Path, rounds: int, seed: int, progress: Progress) -> dict[str, Any]:
    """Let four clients of a running testnet be devices of one person, at first three; return the figures."""
    figures = trio.run(play_devices, load(directory), directory / "taken", rounds, seed, progress)
    is_well = not figures.problems and figures.twice == figures.opened == figures.missing == 0
    return {"ok": is_well, **vars(figures)}


async def play_devices(
    testnet: Testnet, folder: Path, rounds: int, seed: int, progress: Progress, whole: bool = True
) -> DeviceFigures:
    """Play so many rounds, with the loss of a device after half of them; its disk goes into `folder`.

    In the end all are to subscribe to the same, for which two days are waited where it is the `whole`.
    """
    person = _Person(testnet, folder, random.Random(seed), progress)  # noqa: S311 - a plan
    await person.meet()
    for number in range(1, rounds + 1):
        await person.round(number)
        if number == (rounds + 1) // 2:
            await person.lose_one()
    if whole:
        await person.become_alike()
    await person.finish()
    return person.figures


class _Person:
    def __init__(self, testnet: Testnet, folder: Path, draw: random.Random, progress: Progress) -> None:
        self.figures = DeviceFigures()
        *clients, self._spare = (member for member in testnet.nodes if member.role == "client")
        self._devices = clients[:3]
        self._publisher = next(member for member in testnet.nodes if member.role == "relay")
        self._epoch = testnet.epoch
        self._calendar = Calendar(testnet.epoch)
        self._folder, self._draw, self._progress = folder, draw, progress
        self._wanted: dict[str, str] = {}  # links by topics' names
        self._published: dict[str, str] = {}  # topics by ids of messages
        self._shown: Counter[str] = Counter()
        self._lost: Member | None = None

    async def meet(self) -> None:
        """Let all join the first one's circle, and have something to read."""
        for number, other in enumerate(self._devices[1:], 2):
            await self._join(other, f"device {number}")
        for _ in range(2):
            await self._begin(self._devices[0])
        await self._until_told("they met")

    async def round(self, number: int) -> None:
        """Change, publish and read while one is away; then let all come back, and wait until all is told."""
        away, *there = self._draw.sample(self._devices, len(self._devices))
        is_killed = self._draw.random() < 0.5
        await self._end(away, is_killed)
        for device in there:
            if self._draw.random() < 0.5 and len(self._wanted) < MOST_TOPICS:
                await self._begin(device)
            elif self._draw.random() < 0.3 and len(self._wanted) > 1:
                await self._stop_wanting(device)
        await self._publish()
        await self._read(there[0])
        if self._draw.random() < 0.5:
            await trio.sleep(SHOWN_WITHIN)
            await self._end(there[0], is_killed=True)
            await self._start(there[0])
        await trio.sleep(self._draw.uniform(*AWAY) * self._epoch)
        await self._start(away)
        await self._until_told(f"round {number}")
        self.figures.rounds = number

    async def lose_one(self) -> None:
        """Take a device's disk while it is off, remove it on another one, and let a new one join."""
        self._lost = lost = self._devices.pop()
        await self._end(lost, is_killed=True)
        shutil.copytree(lost.state, self._folder / "disk", ignore=shutil.ignore_patterns("*.sock"))
        async with hushcast.connect(self._devices[0].socket) as daemon:
            name = next(one.name for one in await daemon.devices() if one.name.endswith("3"))
            await daemon.remove_device(name)
        await self._until_told("one was removed")
        await self._join(self._spare, "device 4")
        self._devices.append(self._spare)
        await self._until_told("another one joined")

    async def become_alike(self) -> None:
        """Wait until all have begun and ended what they were told."""
        await self._until(self._subscribe_to_same, BEGUN_WITHIN, "all subscribe to the same")

    async def finish(self) -> None:
        """Read everything on all, one after another; try the disk."""
        for device in self._devices:
            await self._read(device)
            await self._until_told("all was read on one")
        figures, shown = self.figures, self._shown
        figures.shown, figures.twice = len(shown), sum(count > 1 for count in shown.values())
        figures.missing = sum(
            name in self._wanted and message not in shown for message, name in self._published.items()
        )
        if self._lost is not None:
            figures.opened = await self._tried(self._lost)

    async def _join(self, other: Member, title: str) -> None:
        with trio.fail_after(READY_WITHIN):
            async with (
                hushcast.connect(self._devices[0].socket, timeout=None) as daemon,
                hushcast.connect(other.socket, timeout=None) as joining,
            ):
                invitation = await daemon.invite_device("device 1")
                await joining.join_devices(invitation.link, title)
        self._progress(f"{title} joined")

    async def _begin(self, device: Member) -> None:
        self.figures.subscribed += 1
        name = f"topic {self.figures.subscribed}"
        self._wanted[name] = link = hushcast.new_link(name, private=True)
        with trio.fail_after(READY_WITHIN):
            async with hushcast.connect(device.socket, timeout=None) as daemon, daemon.subscribe(link):
                pass

    async def _stop_wanting(self, device: Member) -> None:
        link = self._wanted.pop(self._draw.choice(sorted(self._wanted)))
        self.figures.ended += 1
        async with hushcast.connect(device.socket) as daemon:
            await daemon.unsubscribe(link)

    async def _publish(self) -> None:
        async with hushcast.connect(self._publisher.socket) as daemon:
            for _ in range(PUBLICATIONS):
                name = self._draw.choice(sorted(self._wanted))
                published = await daemon.publish(self._wanted[name], name)
                self._published[published.id] = name
                self.figures.published += 1

    async def _read(self, device: Member) -> None:
        """Let a program show, or acknowledge, what comes of all that this device subscribes to."""
        async with hushcast.connect(device.socket) as daemon, trio.open_nursery() as nursery:
            for held in await daemon.subscriptions():
                if held.topic in self._wanted and held.is_ready:
                    nursery.start_soon(self._read_one, device, self._wanted[held.topic])

    async def _read_one(self, device: Member, link: str) -> None:
        modes: tuple[Literal["automatic", "never"], ...] = ("automatic", "never")
        mode = self._draw.choice(modes)
        async with (
            hushcast.connect(device.socket) as daemon,
            daemon.subscribe(link, acknowledge=mode, once=True) as messages,
        ):
            with trio.move_on_after(READ_FOR):
                async for message in messages:
                    self._shown[message.id] += 1
                    messages.done()

    async def _end(self, device: Member, is_killed: bool) -> None:
        pid = holder(Path(device.state))
        assert pid is not None, f"{device.name} does not run"
        process = processes.find(device.name, pid)
        assert process is not None
        if is_killed:
            self.figures.kills += 1
            processes.send([process], signal.SIGKILL)
            while holder(Path(device.state)) is not None:  # noqa: ASYNC110
                await trio.sleep(0.05)
        else:
            self.figures.stops += 1
            await processes.stop([process])

    async def _start(self, device: Member) -> None:
        await start(device)
        with trio.fail_after(READY_WITHIN):
            while not (await describe(device)).get("ready"):  # noqa: ASYNC110
                await trio.sleep(0.1)

    async def _until_told(self, what: str) -> None:
        await self._until(self._have_told, TOLD_WITHIN, what)

    async def _until(self, condition: Callable[[], Any], epochs: int, what: str) -> None:
        began = time.monotonic()
        while not await condition():
            if time.monotonic() - began > epochs * self._epoch:
                self.figures.problems.append(f"not within {epochs} epochs: {what}")
                break
            await trio.sleep(0.5)
        took = round((time.monotonic() - began) / self._epoch, 2)
        if condition == self._have_told:
            self.figures.epochs_to_tell.append(took)
        self._progress(f"{what}: {took} epochs")

    async def _have_told(self) -> bool:
        """Tell whether all disks hold the same, and nothing that was read waits to be told."""
        day = self._day
        disks = [await disk_of(Path(device.state), self._folder, day) for device in self._devices]
        circles = [one for one in disks if one is not None]
        return (
            len(circles) == len(self._devices)
            and len({(one.state.summary(day), one.keys.rank) for one in circles}) == 1
            and not any(one.unsaid for one in circles)
        )

    async def _subscribe_to_same(self) -> bool:
        for device in self._devices:
            async with hushcast.connect(device.socket) as daemon:
                held = await daemon.subscriptions()
            if {one.topic for one in held if one.is_ready} != self._wanted.keys():
                return False
        return True

    async def _tried(self, lost: Member) -> int:
        """Return how much of what came later the lost device opens, by its disk and when it is on again."""
        day = self._day
        now = await disk_of(Path(self._devices[0].state), self._folder, day)
        taken = await disk_of(self._folder / "disk", self._folder, day)
        assert now is not None
        assert taken is not None
        await self._start(lost)
        await trio.sleep(3 * self._epoch)
        after = await disk_of(Path(lost.state), self._folder, day)
        later = {entry.stamp for entry in now.state if entry.counter > taken.state.counter}
        assert later, "something was written later"
        learnt = {entry.stamp for entry in after.state} if after is not None else set()
        return len(later & learnt) + opened_with(taken, now, day)

    @property
    def _day(self) -> int:
        return self._calendar.day(time.time())


def opened_with(taken: OwnCircle, now: OwnCircle, day: int) -> int:
    """Return how much of what the circle says now opens with the secrets of a disk, or is found by them."""
    found = 0
    beat = seal_beat(now.keys.secret, now.seed, Beat(now.key, day, now.state.summary(day)), random.randbytes)
    for secret in (taken.keys.secret, *(former for former, _ in taken.former)):
        found += secret.topic() == now.keys.secret.topic()
        try:
            open_beat(secret, beat)
        except AuthenticationError:
            continue
        found += 1
    assert now.change is not None
    try:
        take_secret(now.change, taken.key, taken.agreement)
    except (Expelled, AuthenticationError):
        return found
    return found + 1


async def disk_of(state: Path, folder: Path, day: int) -> OwnCircle | None:
    """Return what a device's disk holds of its circle, also while its daemon runs."""
    folder.mkdir(exist_ok=True)
    copy = folder / DATABASE
    copy.unlink(missing_ok=True)
    with closing(sqlite3.connect(state / DATABASE)) as disk, closing(sqlite3.connect(copy)) as kept:
        disk.backup(kept)
    store = SqliteStore(copy)
    try:
        return await load_circle(store, day)
    finally:
        store.close()
