"""Daemons under cover of a testnet over Tor, each with a tor of its own and watched on both sides of it."""

from __future__ import annotations

import random
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec
import trio

import hushcast
from benchmarks.cover import fault, prompt_relay
from benchmarks.cover.activities import Applications
from benchmarks.cover.footing import Footing
from benchmarks.cover.process_costs import ProcessCosts, bytes_on_disk, bytes_passed, process_costs
from benchmarks.cover.relay_roles import Parts, chains_in, parts_of
from benchmarks.cover.sights import WatchedLine
from benchmarks.cover.socks_watch import Piece, SocksWatch
from benchmarks.cover.turns import SETTLED, Doing, Turn, Turns
from hushcast_protocol.base.cover_terms import LEAST_ROUND
from hushcast_protocol.base.epochs import EPOCHS_A_DAY
from hushcast_protocol.base.wire import RelayId
from hushcast_runtime.storage.state_layout import DATABASE
from hushcast_runtime.storage.state_lock import holder
from hushcast_testnet import processes
from hushcast_testnet.inventory import Member, describe, load, run_by
from hushcast_testnet.tor.line_watch import OBSERVER

QUIET = 60.0  # seconds in which relays are looked at before there is any daemon under cover
LOOK_EVERY = 2.0  # seconds
READY_WITHIN = 180.0  # seconds until all relays are there again
BEGUN_WITHIN = 300.0  # seconds until letters of daemons are passed; who is not there then takes no part
DAY_BEGINS_WITHIN = 120.0  # seconds: then turns wait for it
GRACE = 4  # rounds at the end in which what was published still comes
_PUBLISHERS = 2  # clients without cover, which publish what the others read


@dataclass
class CoveredClient:
    """One daemon under cover, and what was seen of it."""

    member: Member
    is_sound: bool
    watch: SocksWatch
    turns: list[Turn] = field(default_factory=list)
    line: WatchedLine = field(default_factory=lambda: WatchedLine([], [], []))


@dataclass
class CoverRun:
    """What was seen and counted."""

    relays: Sequence[Member]
    clients: list[CoveredClient] = field(default_factory=list)
    footing: Footing = field(default_factory=Footing)
    began: float = 0.0
    """When the turns began, in Unix time, and how many seconds they took."""
    seconds: float = 0.0
    quiet: Mapping[str, ProcessCosts] = field(default_factory=dict)
    """What each relay took in `QUIET` before there were daemons under cover."""
    taken: Mapping[str, ProcessCosts] = field(default_factory=dict)
    """What each relay and daemon took during the turns."""
    passed: int = 0
    """Letters that relays passed meanwhile, as porters and as seconds."""
    parts: Mapping[str, Parts] = field(default_factory=dict)
    """Of how many daemons each relay was what."""
    grown: Mapping[str, int] = field(default_factory=dict)
    """By how many bytes each relay's disk grew."""


def clients_for(watched: int) -> int:
    """Return how many clients a testnet needs for so many that are watched."""
    return watched + _PUBLISHERS


class CoverScene:
    """A testnet with cover that has just come up over Tor, whose clients' links are observed."""

    def __init__(
        self, directory: Path, sound: int, minutes: float, seed: int, tell: Callable[[str], None]
    ) -> None:
        """Have `sound` clients without a fault, and turns for so many minutes; `tell` hears how it goes."""
        self._net = load(directory)
        assert self._net.tor is not None
        ways = [client.endpoints()[1] for client in self._net.tor.clients]
        members = [one for one in self._net.nodes if one.role == "client"]
        self._publishers = members[:_PUBLISHERS]
        self._minutes, self._seed, self._tell = minutes, seed, tell
        self._names: Mapping[str, RelayId] = {}
        self._links = directory / "traces" / f"{OBSERVER}.observations.jsonl"
        self._run = CoverRun(
            [one for one in self._net.nodes if one.role == "relay"],
            [
                CoveredClient(member, number < sound, SocksWatch(way))
                for number, (member, way) in enumerate(
                    zip(members[_PUBLISHERS:], ways[1 + _PUBLISHERS :], strict=True)
                )
            ],
        )

    async def measure(self) -> CoverRun:
        """Measure; raise a `HushcastError`, or `trio.TooSlowError` if relays are not there in time."""
        run = self._run
        self._tell("starting relays again, as such that begin at once")
        await _start_again(run.relays, lambda member: (prompt_relay.__name__,))
        with trio.fail_after(READY_WITHIN):
            for relay in run.relays:
                await _is_ready(relay)
        before = self._costs(run.relays)
        await trio.sleep(QUIET)
        run.quiet = _since(before, self._costs(run.relays))
        async with trio.open_nursery() as nursery:
            for client in run.clients:
                await nursery.start(client.watch.run)
            self._tell("starting daemons under cover")
            await self._start_under_cover()
            await self._begun()
            await trio.sleep(until_bills_went(time.time(), EPOCHS_A_DAY * self._net.epoch))
            nursery.start_soon(run.footing.watch)
            await self._have_turns()
            nursery.cancel_scope.cancel()
        outside = _outside(self._links, self._net.began)
        for client in run.clients:
            seen = client.line.heard
            client.line = WatchedLine(client.watch.seen, outside.get(client.member.name, []), seen)
        return run

    async def _start_under_cover(self) -> None:
        clients = {client.member.name: client for client in self._run.clients}
        for client in clients.values():
            config = Path(client.member.config)
            config.write_text(_under_cover(config.read_text(), client.watch.port))

        def module(member: Member) -> Sequence[str]:
            return run_by(member.role) if clients[member.name].is_sound else (fault.__name__,)

        await _start_again([client.member for client in clients.values()], module)

    async def _begun(self) -> None:
        """Wait until a porter passes the letters of all daemons, or for as long as that may take."""
        waiting = [client.member for client in self._run.clients]
        with trio.move_on_after(BEGUN_WITHIN):
            while waiting:
                waiting = [member for member in waiting if not _has_begun(await describe(member))]
                await trio.sleep(LOOK_EVERY)
        self._tell(f"letters of {len(self._run.clients) - len(waiting)} daemons are passed")

    async def _have_turns(self) -> None:
        run = self._run
        members = [*run.relays, *(client.member for client in run.clients)]
        counted, disks = await self._counted(), self._disks()
        before, run.began = self._costs(members), time.time()
        until = int((run.began + 60 * self._minutes) // LEAST_ROUND)
        async with AsyncExitStack() as held:
            ways = [hushcast.connect(one.socket) for one in self._publishers]
            publishers = [await held.enter_async_context(way) for way in ways]
            async with trio.open_nursery() as nursery:
                for number, client in enumerate(run.clients):
                    publisher = publishers[number % _PUBLISHERS]
                    nursery.start_soon(self._take_part, number, client, publisher, until)
        run.seconds = time.time() - run.began
        run.taken = _since(before, self._costs(members))
        run.grown = {name: disk - disks[name] for name, disk in self._disks().items()}
        done = {name: now - counted[name] for name, now in (await self._counted()).items()}
        run.passed = sum(one["letters_passed"] for one in done.values())
        run.parts = self._parts(done, run.seconds / LEAST_ROUND)

    async def _take_part(
        self, number: int, client: CoveredClient, publisher: hushcast.Daemon, until: int
    ) -> None:
        footing, chance = self._run.footing, random.Random(f"{self._seed} {number}")  # noqa: S311
        missed = await _missed(client.member)
        footing.rounds += until - int(time.time() // LEAST_ROUND)
        if missed is None:  # it is not there
            footing.missed += until - int(time.time() // LEAST_ROUND)
            return
        async with hushcast.connect(client.member.socket) as own, trio.open_nursery() as nursery:
            name = client.member.name
            applications = Applications(name, own, publisher, chance)
            nursery.start_soon(applications.listen)
            pair = random.Random(f"{self._seed} turns {number // 2}")  # noqa: S311
            turns = Turns(pair, number % 2 == 1)
            first = int(time.time() // LEAST_ROUND) + 1
            while first < until:
                is_told = bool(client.turns) and await applications.is_told(len(self._run.relays))
                series = turns.series(first, until, is_told)
                if series:
                    self._tell(f"{name}: {', '.join(turn.doing for turn in series)}")
                for turn in series:
                    if turn.doing == Doing.READING:
                        nursery.start_soon(applications.have_read, turn)
                client.turns += series
                for turn in series:
                    await applications.act(turn)
                first = series[-1].end if series else first + 1
                await trio.sleep(max(0.0, first * LEAST_ROUND - time.time()))
            await trio.sleep(GRACE * LEAST_ROUND)
            nursery.cancel_scope.cancel()
        client.line = WatchedLine([], [], applications.heard)
        footing.published += len(applications.published)
        footing.heard += len(applications.heard)
        footing.missed += (await _missed(client.member) or 0) - missed

    def _costs(self, members: Sequence[Member]) -> dict[str, ProcessCosts]:
        passed = bytes_passed()
        pids = {member.name: holder(Path(member.state)) for member in members}
        return {name: process_costs(pid, passed) for name, pid in pids.items() if pid is not None}

    def _disks(self) -> dict[str, int]:
        return {relay.name: bytes_on_disk(Path(relay.state)) for relay in self._run.relays}

    async def _counted(self) -> dict[str, Counter[str]]:
        """Return what each relay has counted; its name in the network is known then."""
        told = {relay.name: await describe(relay) for relay in self._run.relays}
        self._names = {name: bytes.fromhex(one["name"]) for name, one in told.items()}
        return {name: Counter(one["counters"]) for name, one in told.items()}

    def _parts(self, done: Mapping[str, Mapping[str, int]], rounds: float) -> dict[str, Parts]:
        members = [client.member for client in self._run.clients]
        chains = [chain for one in members for chain in chains_in(Path(one.state) / DATABASE)]
        return {name: parts_of(self._names[name], chains, one, rounds) for name, one in done.items()}


def until_bills_went(now: float, day: int) -> float:
    """Return for how long to wait so that no day of so many seconds begins soon, or has just begun.

    With the first letters of a day all daemons hand in their lanes' bills.
    """
    into = now % day
    left = day - into if day - into < DAY_BEGINS_WITHIN else -into
    return max(0.0, left + SETTLED * LEAST_ROUND)


async def _start_again(members: Sequence[Member], module: Callable[[Member], Sequence[str]]) -> None:
    """Stop daemons, and start each again, run by a module."""
    pids = [(member.name, holder(Path(member.state))) for member in members]
    found = [processes.find(name, pid) for name, pid in pids if pid is not None]
    await processes.stop([one for one in found if one is not None])
    for member in members:
        command = [sys.executable, "-m", *module(member), member.config]
        await processes.launch(member.name, command, member.home / "log")


async def _is_ready(member: Member) -> None:
    while not (await describe(member)).get("ready"):  # noqa: ASYNC110 - another process makes it true
        await trio.sleep(LOOK_EVERY)


def _under_cover(config: str, port: int) -> str:
    changed = {"mode = ": 'mode = "socks"', "socks = ": f'socks = "127.0.0.1:{port}"'}
    lines = [
        next((new for old, new in changed.items() if line.startswith(old)), line)
        for line in config.splitlines()
        if not line.startswith("control = ")
    ]
    return "\n".join([*lines, "[cover]", "on = true", "read = true", 'hold = "never"', ""])


def _has_begun(described: Mapping[str, Any]) -> bool:
    cover = described.get("cover") or {}
    return cover.get("begins_in") == 0 and cover["rounds"] > 1


async def _missed(member: Member) -> int | None:
    """Return how many rounds a daemon missed so far; `None` where its letters are not passed."""
    described = await describe(member)
    return int(described["cover"]["missed"]) if _has_begun(described) else None


def _outside(trace: Path, began: float) -> Mapping[str, list[Piece]]:
    """Return what an observer saw between daemons' own tors and all others, by the daemons' names."""
    found: dict[str, list[Piece]] = {}
    for one in _lines(trace):
        found.setdefault(one["line"], []).append(Piece(began + one["time"], 0, one["upward"], one["size"]))
    return found


def _lines(trace: Path) -> Iterator[dict[str, Any]]:
    with trace.open("rb") as file:
        yield from (one for line in file if (one := msgspec.json.decode(line))["kind"] == "carried")


def _since(before: Mapping[str, ProcessCosts], now: Mapping[str, ProcessCosts]) -> dict[str, ProcessCosts]:
    return {name: now[name].since(cost) for name, cost in before.items() if name in now}
