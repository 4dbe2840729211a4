"""The in-process backend: hundreds of real daemons over the `memory` transport, under a mock clock."""

from __future__ import annotations

import gc
import random
import resource
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from statistics import fmean
from typing import Any

import trio
import trio.testing

from hushcast_local.outbox import OutboxPublication
from hushcast_overlay.routes.route import OverlayRoute
from hushcast_protocol.base.epochs import EPOCHS_A_DAY
from hushcast_protocol.base.roster import Network
from hushcast_protocol.base.versions.manner import NEWEST
from hushcast_protocol.content.topics import Interest, Topic
from hushcast_protocol.overlay.profile import PROFILES, Root
from hushcast_protocol.overlay.tree import Tree
from hushcast_runtime.transports.memory import CallAt
from hushcast_runtime.wording import counted
from hushcast_testnet.inventory import CarrierName
from hushcast_testnet.simulations.broker_simulation import BrokersSimulation
from hushcast_testnet.simulations.central_simulation import CentralSimulation
from hushcast_testnet.simulations.clock_calls import ClockCalls
from hushcast_testnet.simulations.faults import keep_churning, kill_at_once, make_droppers
from hushcast_testnet.simulations.overlay_costs import costs_of
from hushcast_testnet.simulations.overlay_members import OverlayMember, OverlayWorld
from hushcast_testnet.simulations.probe_readers import ProbeReaders
from hushcast_testnet.simulations.roster_delays import RosterDelays
from hushcast_testnet.simulations.scenario import BEGIN, EPOCH_SECONDS, Scenario, SimulationResult
from hushcast_testnet.simulations.simulated_run import SimulatedListener, SimulatedPublication, SimulatedRun
from hushcast_testnet.simulations.told_relays import told_relays

PROBES_A_RELAY = 1  # an epoch of each subscription for each relay, two drops each, where some lose messages


def simulate(scenario: Scenario, progress: Callable[[str], None] = lambda text: None) -> SimulationResult:
    """Run a scenario to its end; `progress` hears what is being done."""
    # trio shuffles its run queue: with a seeded order of its own a run replays exactly.
    internals: Any = trio._core._run
    internals._r = random.Random(scenario.seed)  # noqa: S311
    internals._ALLOW_DETERMINISTIC_SCHEDULING = True
    began, worked = time.perf_counter(), time.process_time()
    clock = trio.testing.MockClock(autojump_threshold=0)
    with rare_collections():
        result = trio.run(
            _MADE[scenario.carrier](scenario, progress, ClockCalls(clock).call_at).run, clock=clock
        )
    return replace(
        result,
        seconds=round(time.perf_counter() - began, 3),
        cpu_seconds=round(time.process_time() - worked, 3),
        megabytes=round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / 1e6, 1),
    )


@contextmanager
def rare_collections() -> Iterator[None]:
    """Collect garbage rarely: walking the objects of hundreds of daemons took a third of the time."""
    before = gc.get_threshold()
    gc.set_threshold(100_000, 50, 1000)
    try:
        yield
    finally:
        gc.set_threshold(*before)


class _Simulation(SimulatedRun):
    """One run on the overlay."""

    def __init__(self, scenario: Scenario, progress: Callable[[str], None], call_at: CallAt) -> None:
        base = PROFILES[scenario.profile]
        depth, origins = scenario.depth or base.depth, scenario.origin_count
        probes = PROBES_A_RELAY * scenario.nodes if scenario.faults.droppers else 0.0
        self._simulated = OverlayWorld(
            Network("simulation", scenario.profile, EPOCH_SECONDS),
            replace(base, depth=depth, origins=origins, trees=scenario.trees),
            scenario.seed,
            BEGIN,
            scenario.traces,
            NEWEST.probes_an_epoch if scenario.read_probes else probes,
            call_at,
        )
        super().__init__(scenario, progress, self._simulated.env)
        self._relays: list[OverlayMember] = []
        self._clients: list[OverlayMember] = []
        self._routes: list[tuple[Topic, OverlayRoute]] = []
        self._trees: dict[tuple[Topic, int], list[Tree]] = {}
        self._delays: RosterDelays | None = None
        self._readers: ProbeReaders | None = None

    async def run(self) -> SimulationResult:
        """Run, and close the traces."""
        try:
            return await super().run()
        finally:
            self._simulated.close()

    async def _start(self, nursery: trio.Nursery) -> None:
        scenario, simulated = self._scenario, self._simulated
        self._progress(f"starting {counted(scenario.nodes, 'relay')}")
        authorities = 0 if scenario.delay_rosters else scenario.authorities  # the one that lies is alone
        await simulated.open_directory(scenario.nodes, nursery, authorities, scenario.shard_size)
        self._relays = [
            OverlayMember(simulated, f"relay-{number}", is_relay=True) for number in range(scenario.nodes)
        ]
        self._clients = [
            OverlayMember(simulated, f"client-{number}", is_relay=False)
            for number in range(scenario.client_count)
        ]
        await self._start_all(self._nodes(), nursery)

    def _nodes(self) -> list[OverlayMember]:
        return self._relays + self._clients

    def _subscribers(self) -> list[OverlayMember]:
        """Return random clients, or relays where there are no clients."""
        pool, count = self._clients or self._relays, self._scenario.subscribers
        return pool if len(pool) == count else self._env.sample(pool, count)

    async def _listen(self, listening: SimulatedListener, nursery: trio.Nursery) -> None:
        await super()._listen(listening, nursery)
        routes, interest = listening.node.daemon.overlay.routes.held, listening.interest
        await told_relays(listening.node.daemon, interest)
        held = next(held for held in routes if held.wanted.interest == interest)
        self._routes.append((interest.topic, held))

    async def _subscribe(self, interests: list[Interest], nursery: trio.Nursery) -> None:
        """Subscribe, and have those who only want to learn begin."""
        await super()._subscribe(interests, nursery)
        nursery.start_soon(self._note_trees)
        scenario, simulated = self._scenario, self._simulated
        if scenario.delay_rosters:
            spy, delay = self._relays[-1], scenario.delay_rosters
            (directory,) = simulated.directory.agreeing()
            self._delays = RosterDelays(directory, self._env, spy, self._clients, delay)
        if scenario.read_probes:
            self._readers = ProbeReaders(simulated, interests)
            count = max(1, round(scenario.read_probes * len(self._relays)))
            self._readers.bribe(self._env.sample(self._relays, count))

    def _break(self, nursery: trio.Nursery) -> None:
        faults = self._scenario.faults
        kill_at_once(faults, self._relays, self._env)
        make_droppers(faults, self._relays, self._env)
        nursery.start_soon(keep_churning, faults, self._relays, self._env, nursery)

    async def _settle(self) -> None:
        await super()._settle()
        for _, held in self._routes:
            await held.coverage.judge()

    def _figures(self) -> dict[str, Any]:
        self._look_at_trees()
        return {
            "transmissions": sum(member.counters["messages_sent"] for member in self._relays),
            "ideal": sum(self._ideal(sent, publication) for sent, publication in self._accepted()),
            "told": self._told([held for _, held in self._routes]),
            "companions": self._delays.found() if self._delays is not None else {},
            "conditions": self._readers.found() if self._readers is not None else {},
            "hidden": {},
            "costs": costs_of(self._relays, self._clients),
        }

    def _settles_within(self) -> float:
        """What waits for a host that went comes when it is back, or relays are told of the other."""
        faults = self._scenario.faults
        return EPOCHS_A_DAY * EPOCH_SECONDS if faults.kill or faults.churn else super()._settles_within()

    def _ideal(self, sent: SimulatedPublication, publication: OutboxPublication) -> int:
        """Return the sum of the ways from a publication's origins to roots, and from hosts to owners."""
        trees = self._trees.get((sent.topic, publication.message.day), [])
        ways = sum(tree.path_length(o) for tree in trees for o in publication.origins if o in tree.parents)
        return ways + (len(trees) if self._simulated.profile.root is Root.HOST else 0)

    async def _note_trees(self) -> None:
        """Note the trees of each day before it is over, until cancelled."""
        while True:
            self._look_at_trees()
            await trio.sleep(EPOCH_SECONDS)

    def _look_at_trees(self) -> None:
        calendar, now = self._simulated.network.calendar, self._env.now()
        for day in {calendar.day(now), *calendar.open_days(now)}:
            for topic in {topic for topic, _ in self._routes}:
                held = [planned for one, route in self._routes if one == topic for planned in route.on(day)]
                if held:  # else it is over
                    self._trees[topic, day] = [planned.installation.tree for planned in held]

    def _told(self, routes: list[OverlayRoute]) -> dict[str, Any]:
        bad = {relay.key for relay in self._relays if relay.drops}
        told = [held.coverage.describe() for held in routes]
        if not bad or not all(coverage["probes"] for coverage in told):
            return {}
        suspected = [{bytes.fromhex(relay) for relay in coverage["suspects"]} for coverage in told]
        return {
            "share": round(fmean(coverage["share"] for coverage in told), 4),
            "delivered": round(fmean(coverage["delivered"] for coverage in told), 4),
            "bad": len(bad),
            "found": round(fmean(len(named & bad) for named in suspected), 2),
            "honest": round(fmean(len(named - bad) for named in suspected), 2),
        }


_MADE: Mapping[CarrierName, Callable[[Scenario, Callable[[str], None], CallAt], SimulatedRun]] = {
    "overlay": _Simulation,
    "central": CentralSimulation,
    "brokers": BrokersSimulation,
}
