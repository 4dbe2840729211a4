"""The experiments of VB §5: what it takes to subscribe, to publish, and to publish while others do."""

from __future__ import annotations

import gc
import random
import time
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Any

import trio
import trio.testing

from hushcast_local.inbox_records import ReportedGap
from hushcast_local.outbox import OutboxPublication
from hushcast_local.service import InboxFeed
from hushcast_protocol.content.bodies import Content
from hushcast_protocol.content.topics import Interest, parse_topic
from hushcast_runtime.wording import counted
from hushcast_testnet.compare.brokers_system import start_brokers
from hushcast_testnet.compare.central_system import start_central
from hushcast_testnet.compare.machines import Processors
from hushcast_testnet.compare.modelled_network import MachineUser, MachineWorld, ModelledNetwork, NetworkScene
from hushcast_testnet.compare.tree_system import start_tree
from hushcast_testnet.simulations.clock_calls import ClockCalls
from hushcast_testnet.simulations.overlay_simulation import rare_collections

TEXT = b"a small text string"  # "Messages chosen were small text strings"
SETTLE = (
    5.0  # virtual seconds before it is looked whether machines are idle: some links wait two to be opened
)
BETWEEN = 1.0  # virtual seconds as above, after publications
TELL_EVERY, PATIENCE = 0.1, 20.0  # virtual seconds between looks, real seconds between words
AT_LEAST = 10  # publications that are in a mean of figure 5
WITHIN = 900.0  # virtual seconds for anything

Start = Callable[[MachineWorld, trio.Nursery], Awaitable[ModelledNetwork]]
STARTS: dict[str, Start] = {"central": start_central, "tree": start_tree, "brokers": start_brokers}


@dataclass(frozen=True)
class ExperimentPlan:
    """What is measured on one network."""

    subscribers: tuple[int, ...]
    """How many subscribe, one wave after the other, each on a topic of its own."""
    publications: int
    """In each wave, one after the other, each by another subscriber."""
    steady: int = 0
    """The wave in which several publish at the same time."""
    publishers: tuple[int, ...] = ()
    """How many do."""


@dataclass(frozen=True)
class ExperimentPoint:
    """One measurement: a figure of the paper (3 to 5), its x, and seconds."""

    figure: int
    x: int
    seconds: float


Keep = Callable[[int, list[ExperimentPoint], dict[str, Any]], None]
"""Keeps what was measured in a wave of so many subscribers, and who had most to do while they subscribed."""


class NotDeliveredError(Exception):
    """Something did not arrive within `WITHIN`: a fault of the program, or of the model."""


def measure(scene: NetworkScene, plan: ExperimentPlan, progress: Callable[[str], None], keep: Keep) -> None:
    """Run a network and measure; `keep` hears of each wave.

    Work is measured on this machine, so a run does not replay to the last digit; what is drawn does.
    """
    internals: Any = trio._core._run
    internals._r = random.Random(scene.seed)  # noqa: S311
    internals._ALLOW_DETERMINISTIC_SCHEDULING = True
    clock = trio.testing.MockClock(autojump_threshold=0)
    call_at = ClockCalls(clock).call_at
    processors = Processors()
    unwatch = processors.watch_collector()
    try:
        with rare_collections():
            experiment = _Experiment(MachineWorld(scene, processors, call_at), plan, progress, keep)
            trio.run(experiment.run, clock=clock, instruments=[processors])
    finally:
        unwatch()
    del experiment
    gc.collect()  # the next network needs the room


class _Experiment:
    def __init__(
        self, world: MachineWorld, plan: ExperimentPlan, progress: Callable[[str], None], keep: Keep
    ) -> None:
        self._world = world
        self._plan = plan
        self._progress = progress
        self._keep = keep
        self._doing = ""
        self._points: list[ExperimentPoint] = []
        self._load: dict[str, Any] = {}
        self._topic = parse_topic("comparison")
        self._users: list[MachineUser] = []
        self._subscribers: list[MachineUser] = []
        self._seen: dict[tuple[bytes, int], float] = {}
        """When which subscriber reported a message."""
        self._arrived = trio.lowlevel.ParkingLot()

    async def run(self) -> None:
        scene, plan = self._world.scene, self._plan
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._tell_time)
            self._tell("starting")
            started = await STARTS[scene.system](self._world, nursery)
            self._users = started.users
            for count in plan.subscribers:
                self._tell("opening links")
                await started.prepare()
                await self._settle(SETTLE)
                await self._wave(count, nursery)
            nursery.cancel_scope.cancel()

    async def _wave(self, count: int, nursery: trio.Nursery) -> None:
        """Have so many subscribe, measure, and have them unsubscribe."""
        plan = self._plan
        self._points, self._topic = [], parse_topic(f"comparison {count}")
        self._subscribers = self._world.env.sample(self._users, count)
        self._tell(f"{counted(count, 'participant')} subscribe")
        await self._subscribe(nursery)
        await self._settle(SETTLE)
        self._tell(f"publishing to {count}")
        for publisher in self._cycled(plan.publications):
            [(_, last)] = await self._publish([publisher])
            self._note(4, count, last)
        for publishers in plan.publishers if count == plan.steady else ():
            self._tell(f"{publishers} publish at once")
            await self._publish_together(publishers)
        self._keep(count, self._points, self._load)
        self._tell(f"{counted(count, 'participant')} unsubscribe")
        async with trio.open_nursery() as unsubscribing:
            for user in self._subscribers:
                unsubscribing.start_soon(self._unsubscribe, user)
        await self._settle(SETTLE)

    async def _unsubscribe(self, user: MachineUser) -> None:
        user.machine.run_here()
        await user.daemon.service.unsubscribe(self._topic)

    def _tell(self, doing: str) -> None:
        self._doing = doing
        self._progress(doing)

    async def _tell_time(self) -> None:
        """Tell now and then how far the clock of the network is: what takes long is a few seconds of it."""
        told = time.monotonic()
        while True:
            await trio.sleep(TELL_EVERY)
            if time.monotonic() - told > PATIENCE:
                told = time.monotonic()
                self._progress(f"{self._doing}, {trio.current_time():.1f} s of the network's time are over")

    async def _settle(self, seconds: float) -> None:
        """Wait until all that was begun is done, and the machines are idle."""
        idle = trio.current_time() + seconds
        while idle > trio.current_time():
            await trio.sleep_until(idle)
            idle = max(machine.busy_until for machine in self._world.machines)

    def _cycled(self, count: int) -> list[MachineUser]:
        """Draw so many subscribers, none twice before all were drawn."""
        drawn: list[MachineUser] = []
        while len(drawn) < count:
            drawn += self._world.env.sample(self._subscribers, count - len(drawn))
        return drawn

    async def _subscribe(self, nursery: trio.Nursery) -> None:
        """All at once, until the last is done: figure 3."""
        began, ends = trio.current_time(), []
        before = [(machine, machine.processor.worked, machine.tor.worked) for machine in self._world.machines]
        said = self._world.wires.said.copy()

        async def subscribe(number: int, user: MachineUser) -> None:
            user.machine.run_here()
            feed = await user.daemon.service.subscribe(Interest(self._topic))
            ends.append(user.machine.done())
            nursery.start_soon(self._listen, feed, number, user)

        with trio.move_on_after(WITHIN) as scope:
            async with trio.open_nursery() as subscribing:
                for number, user in enumerate(self._subscribers):
                    subscribing.start_soon(subscribe, number, user)
        if scope.cancelled_caught:
            raise NotDeliveredError("subscriptions were not ready in time")
        self._note(3, len(self._subscribers), max(ends) - began)
        self._load = _most(
            (machine.name, machine.processor.worked - processor, machine.tor.worked - tor)
            for machine, processor, tor in before
        ) | {"sent": dict(self._world.wires.said - said)}

    async def _listen(self, feed: InboxFeed, number: int, user: MachineUser) -> None:
        user.machine.run_here()
        while (arrival := await feed.next()) is not None:
            assert not isinstance(arrival, ReportedGap)
            cursor, received = arrival
            self._seen.setdefault((received.id, number), user.machine.done())
            feed.shown(cursor)
            self._arrived.unpark_all()

    async def _publish(self, publishers: Sequence[MachineUser]) -> list[tuple[float, float]]:
        """Have some publish at once; for each subscriber of them return seconds to its own copy, and to all.

        The second are those until the last subscriber has reported it.
        """
        began, sent = trio.current_time(), dict[int, bytes]()
        every = range(len(self._subscribers))

        async def publish(number: int, user: MachineUser) -> None:
            user.machine.run_here()
            publication = await user.daemon.service.enqueue(self._topic, Content(TEXT))
            assert isinstance(publication, OutboxPublication)
            sent[number] = publication.message.id

        with trio.move_on_after(WITHIN) as scope:
            async with trio.open_nursery() as publishing:
                for number, user in enumerate(publishers):
                    publishing.start_soon(publish, number, user)
            while len(self._seen) < len(sent) * len(every):
                await self._arrived.park()
        if scope.cancelled_caught:
            raise NotDeliveredError("a publication did not reach all subscribers in time")
        times = []
        for number, user in enumerate(publishers):
            seen = [self._seen[sent[number], each] - began for each in every]
            if user in self._subscribers:
                times.append((seen[self._subscribers.index(user)], max(seen)))
        self._seen.clear()
        await self._settle(BETWEEN)
        return times

    async def _publish_together(self, count: int) -> None:
        """Have so many publish at once: figure 5, in the mean over those that subscribe, too.

        Few publishers do it several times, so that the mean is over as many.
        """
        env, subscribers = self._world.env, self._subscribers
        own = []
        for _ in range(max(1, AT_LEAST // count)):
            publishers = env.sample(subscribers, count)
            others = [user for user in self._users if user not in subscribers]
            publishers += env.sample(others, count - len(publishers))
            own += [mine for mine, _ in await self._publish(publishers)]
        self._note(5, count, fmean(own))

    def _note(self, figure: int, x: int, seconds: float) -> None:
        self._points.append(ExperimentPoint(figure, x, round(seconds, 6)))


def _most(loads: Iterable[tuple[str, float, float]]) -> dict[str, Any]:
    """Say whose processor, and whose tor, had most to do, and how much is the mean of all."""
    names, processors, tors = zip(*loads, strict=True)
    return {
        part: {
            "most": names[seconds.index(max(seconds))],
            "seconds": round(max(seconds), 6),
            "mean": round(fmean(seconds), 6),
        }
        for part, seconds in (("processor", processors), ("tor", tors))
    }
