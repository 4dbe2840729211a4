"""Daemons under cover of a testnet over Tor, each behind a watched SOCKS port; some rounds have messages."""

from __future__ import annotations

import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import trio

import hushcast
from benchmarks.cover import fault
from benchmarks.cover.process_costs import ProcessCosts, bytes_passed, process_costs
from benchmarks.cover.sights import BLOCKS, Course
from benchmarks.cover.socks_watch import SocksWatch
from hushcast_protocol.base.cover_terms import LEAST_ROUND
from hushcast_runtime.environment import system_environment
from hushcast_runtime.storage.state_lock import holder
from hushcast_testnet import processes
from hushcast_testnet.inventory import Member, describe, load, run_by

QUIET = 120.0  # seconds in which relays are looked at before there is any daemon under cover
SOONEST, LATEST = 5.0, 12.0  # seconds between two messages: letters of a round have room for as many
SIZE = 1_000  # bytes of a message at most
LOOK_EVERY = 2.0  # seconds
WITHIN = 1_200.0  # seconds until the letters of all daemons are passed
TOPICS = [f"cover-{number}" for number in range(8)]  # each round has one of four: so most have a message


@dataclass
class CoveredClient:
    """One daemon under cover, and who watches its line."""

    member: Member
    is_sound: bool
    watch: SocksWatch
    course: Course | None = None
    missed: int = 0
    """Rounds of its turns."""


@dataclass
class CoverRun:
    """What was seen and counted."""

    relays: Sequence[Member]
    clients: list[CoveredClient] = field(default_factory=list)
    began: float = 0.0
    """When the turns began, in Unix time, and how many seconds they took."""
    seconds: float = 0.0
    quiet: Mapping[str, ProcessCosts] = field(default_factory=dict)
    """What each relay took in `QUIET` before there were daemons under cover."""
    taken: Mapping[str, ProcessCosts] = field(default_factory=dict)
    """What each relay and daemon took during the turns."""
    passed: int = 0
    """Letters that relays passed meanwhile, as porters and as seconds."""


class CoverScene:
    """A testnet with cover that has just come up over Tor, all of whose clients are taken."""

    def __init__(self, directory: Path, sound: int, counted: int) -> None:
        """Have `sound` clients without a fault, and `counted` rounds of each block."""
        self._net = load(directory)
        assert self._net.tor is not None
        _, self._socks = self._net.tor.clients[0].endpoints()
        self._sound, self._counted = sound, counted
        self._run = CoverRun([member for member in self._net.nodes if member.role == "relay"])

    async def measure(self) -> CoverRun:
        """Measure; raise a `HushcastError`, or `trio.TooSlowError` if letters are not passed in time."""
        run = self._run
        before = self._costs(run.relays)
        await trio.sleep(QUIET)
        run.quiet = _since(before, self._costs(run.relays))
        async with trio.open_nursery() as nursery:
            for number, member in enumerate(one for one in self._net.nodes if one.role == "client"):
                client = CoveredClient(member, number < self._sound, SocksWatch(self._socks))
                await nursery.start(client.watch.run)
                await _start_under_cover(client)
                run.clients.append(client)
            with trio.fail_after(WITHIN):
                for client in run.clients:
                    await _begun(client.member)
            await self._turns()
            nursery.cancel_scope.cancel()
        return run

    async def _turns(self) -> None:
        run = self._run
        members = [*run.relays, *(client.member for client in run.clients)]
        before, passed, run.began = self._costs(members), await self._passed(), time.time()
        missed = [await _missed(client.member) for client in run.clients]
        async with trio.open_nursery() as nursery:
            for number, client in enumerate(run.clients):
                first = int(time.time() // LEAST_ROUND) + 1
                client.course = Course(first, number % 2 == 0, self._counted)
                nursery.start_soon(_turns_of, client.member, client.course)
        run.seconds = time.time() - run.began
        run.taken = _since(before, self._costs(members))
        run.passed = await self._passed() - passed
        for client, earlier in zip(run.clients, missed, strict=True):
            client.missed = await _missed(client.member) - earlier

    def _costs(self, members: Sequence[Member]) -> dict[str, ProcessCosts]:
        passed = bytes_passed(self._socks.port)
        pids = {member.name: holder(Path(member.state)) for member in members}
        return {name: process_costs(pid, passed) for name, pid in pids.items() if pid is not None}

    async def _passed(self) -> int:
        told = [await describe(relay) for relay in self._run.relays]
        return sum(one["counters"]["letters_passed"] for one in told)


async def _start_under_cover(client: CoveredClient) -> None:
    """Start a client again under cover, behind its watched port, a faulty one as another program."""
    member = client.member
    pid = holder(Path(member.state))
    record = None if pid is None else processes.find(member.name, pid)
    await processes.stop([] if record is None else [record])
    config = Path(member.config)
    config.write_text(_under_cover(config.read_text(), client.watch.port))
    module = run_by(member.role) if client.is_sound else (fault.__name__,)
    await processes.launch(member.name, [sys.executable, "-m", *module, member.config], member.home / "log")


def _under_cover(config: str, port: int) -> str:
    changed = {"mode = ": 'mode = "socks"', "socks = ": f'socks = "127.0.0.1:{port}"'}
    lines = [
        next((new for old, new in changed.items() if line.startswith(old)), line)
        for line in config.splitlines()
        if not line.startswith("control = ")
    ]
    return "\n".join([*lines, "[cover]", "on = true", 'hold = "never"', ""])


async def _begun(member: Member) -> None:
    """Wait until a porter passes a daemon's letters."""
    while True:
        cover = (await describe(member)).get("cover") or {}
        if cover.get("begins_in") == 0 and cover["rounds"] > 1:
            return
        await trio.sleep(LOOK_EVERY)


async def _turns_of(member: Member, course: Course) -> None:
    env = system_environment()
    async with hushcast.connect(member.socket) as daemon:
        for block in range(BLOCKS):
            ends = course.end_of(block) * LEAST_ROUND
            while course.is_busy(block) and env.now() < ends - LATEST:
                await trio.sleep(env.uniform(SOONEST, LATEST))
                await daemon.enqueue(TOPICS[env.below(len(TOPICS))], "m" * env.below(SIZE))
            await trio.sleep(max(0.0, ends - env.now()))


async def _missed(member: Member) -> int:
    missed: int = (await describe(member))["cover"]["missed"]
    return missed


def _since(before: Mapping[str, ProcessCosts], now: Mapping[str, ProcessCosts]) -> dict[str, ProcessCosts]:
    return {name: now[name].since(cost) for name, cost in before.items() if name in now}
