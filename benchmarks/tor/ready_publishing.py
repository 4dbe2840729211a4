"""Publishing over connections that are ready, beside publishing with none, in one network: part of figure 17.

Slots of an hour and more would take days. So slots stay for a minute in the mean, the least that can be set,
and an hour is as much shorter. First contacts are not, so more slots are still being dialled than in the long
run: what is measured is rather too slow.
"""

from __future__ import annotations

import os
import random
import statistics
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import trio

import hushcast
from benchmarks.figures import Effort, Figure, at_most
from hushcast_runtime.storage.state_lock import holder
from hushcast_testnet import processes
from hushcast_testnet.inventory import Member, deadline, describe, load, start

TOPIC = "ready"
PUBLICATIONS = 200  # of each setting and rate
SEED = 1
BUSY = 60.0  # publications an hour of a daemon that publishes much
STAYS = 60.0  # seconds of a slot in the mean: the least that can be set
WARM_UP = (
    300  # seconds after which sets hold as many slots as in the long run, and have rested from the start
)
IDLE = 60  # seconds in which nobody publishes, and the work of tors is counted
LATE = 120.0  # seconds that the last messages may take
WITHIN = 180.0  # seconds for a receipt, a subscription, and for daemons that start again, all at once
BETWEEN = 1.0  # seconds between the first publications of daemons


@dataclass(frozen=True)
class Holders:
    """Some daemons with one setting."""

    connections: int
    minutes: float
    """For which slots would stay."""
    daemons: int

    @property
    def hour(self) -> float:
        """Return the seconds that stand for an hour."""
        return 60.0 / self.minutes * STAYS

    def __str__(self) -> str:
        return f"{self.connections} ready for {self.minutes:g} minutes" if self.connections else "none ready"


NONE = Holders(0, 120, 4)
SETTINGS = (NONE, Holders(2, 120, 8), Holders(8, 75, 12))
"""As many daemons that 200 publications, one an hour of each, take a quarter of an hour, or less."""
CLIENTS = sum(holders.daemons for holders in SETTINGS)

Taken = Mapping[Holders, Sequence[float]]
"""Seconds from publications to their arrival."""


@dataclass(frozen=True)
class ReadyTimes:
    """What came out on one network."""

    first: Taken
    """Of the first publication of each daemon after its start."""
    hourly: Taken
    busy: Taken
    lost: int
    """Messages that had not come two minutes after the last one."""
    cpu_of_a_slot: float
    """Seconds of the tors' CPU to open a connection and hold it for a minute."""


def table(times: ReadyTimes, apart: str) -> Iterator[Figure]:
    """Return the lines of one distance: each beside daemons that hold none."""
    rates = (("the first after a start", times.first), ("one an hour", times.hourly))
    for what, taken in (*rates, (f"{BUSY:g} an hour", times.busy)):
        none = statistics.quantiles(taken[NONE], n=100, method="inclusive")
        for holders in SETTINGS[1:]:
            ours = statistics.quantiles(taken[holders], n=100, method="inclusive")
            for name, percent in (("median", 50), ("99th percentile", 99)):
                figure = f"publication to delivery, {holders}, {what}, {name}, seconds, {apart}"
                seconds = ours[percent - 1], "none ready", none[percent - 1]
                yield at_most(f"{figure}: at most times", *seconds, None)
    cpu = f"seconds of the tors' CPU to open and hold a ready connection, {apart}"
    yield Figure(cpu, times.cpu_of_a_slot, "", None, None, None, None)
    yield Figure(f"messages that did not come, {apart}", times.lost, "", None, None, None, None)


async def measure(directory: Path, effort: Effort) -> ReadyTimes:
    """Measure on a testnet whose last `CLIENTS` clients nobody has used yet, and whose first one subscribes.

    Raises a `HushcastError` or `trio.TooSlowError` if something takes minutes.
    """
    net = load(directory)
    assert net.tor is not None
    tors = [process.pid for process in net.tor.processes if process.name.startswith("tor ")]
    listener = next(member for member in net.nodes if member.role == "client")
    left = iter(net.nodes[-CLIENTS:])
    groups = {holders: [next(left) for _ in range(holders.daemons)] for holders in SETTINGS}
    idle, count = effort.amount(IDLE), effort.amount(PUBLICATIONS)
    draw = random.Random(SEED)  # noqa: S311 - it is to be repeated
    async with (
        hushcast.connect(Path(listener.socket or ""), timeout=WITHIN) as daemon,
        daemon.subscribe(TOPIC) as messages,
        trio.open_nursery() as nursery,
    ):
        deliveries = Deliveries()
        nursery.start_soon(deliveries.listen, messages)
        before = await _cpu_in(idle, tors)
        await _start_again(groups)
        once = {holders: [(BETWEEN, member) for member in members] for holders, members in groups.items()}
        first = await deliveries.of(once)
        await trio.sleep(effort.amount(WARM_UP))
        then = await _cpu_in(idle, tors)
        hourly = await deliveries.of(
            {holders: _moments(holders, each, 1.0, count, draw) for holders, each in groups.items()}
        )
        busy: dict[Holders, Sequence[float]] = {}
        for holders, one in groups.items():  # in turn, or it measures how many circuits a tor can build
            plan = {holders: _moments(holders, one[:1], BUSY, count, draw)}
            busy |= await deliveries.of(plan)
        nursery.cancel_scope.cancel()
    opened = idle * sum(holders.daemons * holders.connections for holders in SETTINGS) / STAYS
    return ReadyTimes(first, hourly, busy, deliveries.lost, (then - before) / opened)


def _moments(
    holders: Holders, members: Sequence[Member], an_hour: float, count: int, draw: random.Random
) -> Sequence[tuple[float, Member]]:
    """Return pauses in seconds, and at which daemon is published after each."""
    rate = an_hour * len(members) / holders.hour
    return [(draw.expovariate(rate), draw.choice(members)) for _ in range(count)]


class Deliveries:
    """When messages came, and how long they took."""

    def __init__(self) -> None:
        self._came: dict[str, float] = {}
        self._news = trio.Event()
        self.lost = 0
        """How many had not come when their time was over."""

    async def listen(self, messages: hushcast.Messages) -> None:
        """Note what comes, until cancelled."""
        while True:
            self._came.setdefault((await anext(messages)).id, trio.current_time())
            self._news.set()
            self._news = trio.Event()

    async def of(self, plans: Mapping[Holders, Sequence[tuple[float, Member]]]) -> Taken:
        """Publish, after each pause at each daemon, and return how long the messages took."""
        sent: dict[Holders, dict[str, float]] = {holders: {} for holders in plans}

        async def publish(member: Member, began: dict[str, float]) -> None:
            now = trio.current_time()
            with suppress(hushcast.HushcastError):
                async with hushcast.connect(Path(member.socket or "")) as daemon:
                    began[(await daemon.publish(TOPIC, "x", timeout=WITHIN)).id] = now
                return
            self.lost += 1

        async def keep(holders: Holders) -> None:
            for pause, member in plans[holders]:
                await trio.sleep(pause)
                nursery.start_soon(publish, member, sent[holders])

        async with trio.open_nursery() as nursery:
            for holders in plans:
                nursery.start_soon(keep, holders)
        with trio.move_on_after(LATE):
            while any(message not in self._came for began in sent.values() for message in began):
                await self._news.wait()
        came = self._came
        taken = {
            holders: [came[message] - moment for message, moment in began.items() if message in came]
            for holders, began in sent.items()
        }
        self.lost += sum(map(len, sent.values())) - sum(map(len, taken.values()))
        return taken


async def _start_again(groups: Mapping[Holders, Sequence[Member]]) -> None:
    """Start all daemons again, with the slots that they are to have."""
    for holders, members in groups.items():
        for member in members:
            config = Path(member.config)
            section = f"[ready]\nconnections = {holders.connections}\nminutes = 1\n"
            config.write_text(f"{config.read_text()}\n{section}")
            if (pid := holder(Path(member.state))) is not None and (old := processes.find(member.name, pid)):
                await processes.stop([old])
            await start(member)
    with deadline(WITHIN, "daemons that were started again are not ready in time"):
        for member in (member for members in groups.values() for member in members):
            while not (await describe(member)).get("ready"):  # noqa: ASYNC110 - it tells nobody
                await trio.sleep(0.2)


async def _cpu_in(seconds: float, pids: Sequence[int]) -> float:
    """Return the seconds of CPU that processes take in so many seconds to come."""
    before = _cpu(pids)
    await trio.sleep(seconds)
    return _cpu(pids) - before


def _cpu(pids: Sequence[int]) -> float:
    fields = [Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split() for pid in pids]
    return sum(int(each[11]) + int(each[12]) for each in fields) / os.sysconf("SC_CLK_TCK")
