"""The in-process backend: hundreds of real daemons over the `memory` transport, under a mock clock."""

from __future__ import annotations

import gc
import random
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from statistics import fmean
from typing import Any

import trio
import trio.testing

from hushcast_local.inbox import Gap
from hushcast_local.outbox import Publication
from hushcast_local.probing import PROBES_AN_EPOCH
from hushcast_local.service import InboxFeed
from hushcast_overlay.route import Route
from hushcast_protocol.base.epochs import EPOCHS_A_DAY
from hushcast_protocol.base.errors import Refusal
from hushcast_protocol.base.roster import Network
from hushcast_protocol.content.bodies import Content
from hushcast_protocol.content.topics import Interest, Topic, parse_topic
from hushcast_protocol.overlay.profile import PROFILES, Root
from hushcast_runtime.transports.memory import CallAt
from hushcast_runtime.wording import counted
from hushcast_testnet.clock_calls import ClockCalls
from hushcast_testnet.faults import NO_FAULTS, Faults, keep_churning, kill_at_once, make_droppers
from hushcast_testnet.members import LONGEST_WAY, Member, SimulatedNetwork
from hushcast_testnet.probe_readers import ProbeReaders, draw_interest, draw_values
from hushcast_testnet.roster_delays import RosterDelays

EPOCH_SECONDS = 3600
BEGIN = 10_000 * EPOCHS_A_DAY * EPOCH_SECONDS + 2.5 * EPOCH_SECONDS
PROBES_A_RELAY = 2  # an epoch of each subscription for each relay, two drops each, where some lose messages
BETWEEN_PUBLICATIONS = 0.25  # virtual seconds
SETTLE_WITHIN = 900.0  # virtual seconds after the last publication in which all must have arrived
PROBES_A_RELAY = 1  # an epoch of each subscription for each relay, two drops each, where some lose messages
REPAIRED_AFTER = 2  # epochs after a fault, from which publications count as repaired


@dataclass(frozen=True)
class Scenario:
    """What to simulate."""

    nodes: int
    subscribers: int
    publications: int
    topics: int = 1
    depth: int | None = None
    profile: str = "hardened"
    origins: int = 1
    seed: int = 1
    traces: Path | None = None
    faults: Faults = NO_FAULTS
    trees: int = 1
    minutes: float | None = None
    """Virtual minutes over which publications are spread; else they follow closely upon each other.

    With faults and without minutes half of them follow the fault, and half come when it is repaired.
    """
    delay_rosters: float = 0.0
    """Epochs by which the directory delays rosters for some; for the minutes given, and without faults."""
    read_probes: float = 0.0
    """Share of the relays that read probes; with one subscriber a topic, as above."""


@dataclass(frozen=True)
class Result:
    """The result; the same scenario gives the same result except for `seconds`."""

    nodes: int
    pairs: int
    delivered: int
    duplicates: int
    transmissions: int
    ideal: int
    virtual_seconds: float
    seconds: float
    receipts: int
    """Publications that a relay gave a receipt for."""
    lost_with_receipt: int
    """Pairs of such publications that were not delivered."""
    gaps_reported: int
    repaired: dict[str, int]
    """`pairs` and those `delivered` of publications two epochs after the fault and later."""
    told: dict[str, Any]
    """Where relays lose messages: what coverage tells the subscribers in the end, in the mean.

    The `share` of origins that reach them, the share `delivered` of probes, how many of the `bad` relays each
    has `found`, and how many `honest` ones each suspects.
    """
    companions: dict[str, Any]
    """What a directory that delays rosters finds (`RosterDelays.found`)."""
    conditions: dict[str, Any]
    """What relays that read probes find (`ProbeReaders.found`)."""

    def as_dict(self) -> dict[str, Any]:
        """Return the fields for JSON."""
        return asdict(self)


def simulate(scenario: Scenario, progress: Callable[[str], None] = lambda text: None) -> Result:
    """Run a scenario to its end; `progress` hears what is being done."""
    # trio shuffles its run queue: with a seeded order of its own a run replays exactly.
    internals: Any = trio._core._run
    internals._r = random.Random(scenario.seed)  # noqa: S311
    internals._ALLOW_DETERMINISTIC_SCHEDULING = True
    began = time.perf_counter()
    clock = trio.testing.MockClock(autojump_threshold=0)
    with rare_collections():
        result = trio.run(_Simulation(scenario, progress, ClockCalls(clock).call_at).run, clock=clock)
    return replace(result, seconds=round(time.perf_counter() - began, 3))


@contextmanager
def rare_collections() -> Iterator[None]:
    """Collect garbage rarely: walking the objects of hundreds of daemons took a third of the time."""
    before = gc.get_threshold()
    gc.set_threshold(100_000, 50, 1000)
    try:
        yield
    finally:
        gc.set_threshold(*before)


@dataclass
class _Sent:
    """One publication of a simulation."""

    topic: Topic
    time: float  # virtual seconds
    publication: Publication | None = None  # none where it was refused

    @property
    def accepted(self) -> Publication | None:
        """The publication, if a relay gave a receipt."""
        return self.publication if self.publication is not None and self.publication.origins else None


class _Simulation:
    """One run."""

    def __init__(self, scenario: Scenario, progress: Callable[[str], None], call_at: CallAt) -> None:
        self._scenario = scenario
        self._progress = progress
        base = PROFILES[scenario.profile]
        self._simulated = SimulatedNetwork(
            Network("simulation", scenario.profile, EPOCH_SECONDS),
            replace(base, depth=scenario.depth or base.depth, origins=scenario.origins, trees=scenario.trees),
            scenario.seed,
            BEGIN,
            scenario.traces,
            self._probes(),
            call_at,
        )
        self._env = self._simulated.env
        self._relays: list[Member] = []
        self._clients: list[Member] = []
        self._sent: list[_Sent] = []
        self._shown: Counter[tuple[bytes, int]] = Counter()
        self._arrived = trio.lowlevel.ParkingLot()
        self._fault_at = 0.0
        self._gaps = 0
        self._delays: RosterDelays | None = None
        self._readers: ProbeReaders | None = None

    def _probes(self) -> float:
        """Return the probes of a subscription in an epoch: enough to find droppers within two, or none."""
        if self._scenario.read_probes:
            return PROBES_AN_EPOCH
        return PROBES_A_RELAY * self._scenario.nodes if self._scenario.faults.droppers else 0.0

    async def run(self) -> Result:
        """Bring the network up, subscribe, publish, let faults happen, wait, count."""
        scenario = self._scenario
        async with trio.open_nursery() as nursery:
            self._progress(f"starting {counted(scenario.nodes, 'relay')}")
            await self._start(nursery)
            names = [f"topic {number}" for number in range(scenario.topics)]
            if scenario.read_probes:
                interests = [draw_interest(name, self._env) for name in names]
            else:
                interests = [Interest(parse_topic(name)) for name in names]
            self._progress(
                f"subscribing {counted(scenario.subscribers, 'time')} to {counted(len(interests), 'topic')}"
            )
            routes = await self._subscribe(interests, nursery)
            self._set_out(interests)
            self._progress(f"publishing {counted(scenario.publications, 'message')}")
            await self._publish(interests, nursery)
            await self._settle()
            result = self._count(routes)
            nursery.cancel_scope.cancel()
        self._simulated.close()
        return result

    async def _start(self, nursery: trio.Nursery) -> None:
        scenario, simulated = self._scenario, self._simulated
        await simulated.open_directory(scenario.nodes, nursery)
        clients = scenario.subscribers if simulated.profile.root is Root.MAILBOX else 0
        self._relays = [
            Member(simulated, f"relay-{number}", is_relay=True) for number in range(scenario.nodes)
        ]
        self._clients = [Member(simulated, f"client-{number}", is_relay=False) for number in range(clients)]
        for member in self._relays + self._clients:
            await member.start(nursery)
        for member in self._relays + self._clients:
            while not member.daemon.ready:  # noqa: ASYNC110 - a mock clock makes waiting free
                await trio.sleep(1)  # virtual seconds

    def _set_out(self, interests: list[Interest]) -> None:
        """Have those who only want to learn begin."""
        scenario, simulated = self._scenario, self._simulated
        if scenario.delay_rosters:
            spy, delay = self._relays[-1], scenario.delay_rosters
            self._delays = RosterDelays(simulated.registry, self._env, spy, self._clients, delay)
        if scenario.read_probes:
            self._readers = ProbeReaders(simulated, interests)
            count = max(1, round(scenario.read_probes * len(self._relays)))
            self._readers.bribe(self._env.sample(self._relays, count))

    async def _subscribe(self, interests: list[Interest], nursery: trio.Nursery) -> dict[Topic, list[Route]]:
        """Subscribe on every topic; under listed roots by random relays, else by clients."""
        routes: dict[Topic, list[Route]] = {interest.topic: [] for interest in interests}

        async def subscribe(member: Member, interest: Interest, number: int) -> None:
            feed = await member.daemon.service.subscribe(interest)
            route = next(
                held for held in member.daemon.overlay.routes.held if held.wanted.interest == interest
            )
            routes[interest.topic].append(route)
            nursery.start_soon(self._listen, feed, number)

        async with trio.open_nursery() as subscribing:
            for interest in interests:
                members = self._clients or self._env.sample(self._relays, self._scenario.subscribers)
                for number, member in enumerate(members):
                    subscribing.start_soon(subscribe, member, interest, number)
        return routes

    async def _listen(self, feed: InboxFeed, subscriber: int) -> None:
        while (arrival := await feed.next()) is not None:
            if isinstance(arrival, Gap):
                self._gaps += 1
                continue
            number, received = arrival
            feed.shown(number)
            self._shown[received.id, subscriber] += 1
            self._arrived.unpark_all()

    async def _publish(self, interests: list[Interest], nursery: trio.Nursery) -> None:
        """Publish on schedule; faults begin after the first tenth."""
        scenario, faults = self._scenario, self._scenario.faults
        began = trio.current_time()
        async with trio.open_nursery() as publishing:
            for number in range(scenario.publications):
                await trio.sleep_until(began + self._due(number))
                if number == scenario.publications // 10 and faults:
                    self._fault_at = trio.current_time()
                    kill_at_once(faults, self._relays, self._env)
                    make_droppers(faults, self._relays, self._env)
                    nursery.start_soon(keep_churning, faults, self._relays, self._env, nursery)
                interest = interests[number % len(interests)]
                sent = _Sent(interest.topic, trio.current_time())
                self._sent.append(sent)
                up = [member for member in self._relays + self._clients if member.is_up]
                content = Content(b"simulated", draw_values(interest, self._env))
                publishing.start_soon(self._publish_one, up[self._env.below(len(up))], sent, content)
            if scenario.delay_rosters or scenario.read_probes:  # they look on for as long as was said
                await trio.sleep_until(began + self._due(scenario.publications))

    def _due(self, number: int) -> float:
        """Return when a publication is due, in virtual seconds after the first."""
        scenario = self._scenario
        if scenario.minutes is not None:
            return 60.0 * scenario.minutes * number / scenario.publications
        due = number * BETWEEN_PUBLICATIONS
        if scenario.faults and number >= scenario.publications // 2:
            due += REPAIRED_AFTER * EPOCH_SECONDS
        return due

    async def _publish_one(self, member: Member, sent: _Sent, content: Content) -> None:
        with suppress(Refusal):
            publication = await member.daemon.service.enqueue(sent.topic, content)
            assert isinstance(publication, Publication)  # only what has a token may be known already
            sent.publication = publication

    async def _settle(self) -> None:
        pairs = (
            len([sent for sent in self._sent if sent.publication is not None]) * self._scenario.subscribers
        )
        with trio.move_on_after(SETTLE_WITHIN):
            while len(self._shown) < pairs:
                await self._arrived.park()
        await trio.sleep(LONGEST_WAY * 20)  # late duplicates would come now

    def _count(self, routes: dict[Topic, list[Route]]) -> Result:
        subscribers = self._scenario.subscribers
        accepted = [(sent, sent.accepted) for sent in self._sent if sent.accepted is not None]
        shown = Counter(message for message, _ in self._shown)
        later = self._fault_at + REPAIRED_AFTER * EPOCH_SECONDS
        repaired = [publication for sent, publication in accepted if sent.time >= later]
        return Result(
            nodes=self._scenario.nodes,
            pairs=len(self._sent) * subscribers,
            delivered=len(self._shown),
            duplicates=self._shown.total() - len(self._shown),
            transmissions=sum(member.counters["messages_sent"] for member in self._relays),
            ideal=sum(_ideal(publication, routes[sent.topic]) for sent, publication in accepted),
            virtual_seconds=round(trio.current_time(), 3),
            seconds=0.0,
            receipts=len(accepted),
            lost_with_receipt=sum(subscribers - shown[publication.message.id] for _, publication in accepted),
            gaps_reported=self._gaps,
            repaired={
                "pairs": len(repaired) * subscribers,
                "delivered": sum(shown[publication.message.id] for publication in repaired),
            },
            told=self._told([held for some in routes.values() for held in some]),
            companions=self._delays.found() if self._delays is not None else {},
            conditions=self._readers.found() if self._readers is not None else {},
        )

    def _told(self, routes: list[Route]) -> dict[str, Any]:
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


def _ideal(publication: Publication, routes: list[Route]) -> int:
    """Return the sum of the ways from a publication's origins to the mailboxes."""
    day = publication.message.day
    trees = [planned.installation.tree for held in routes for planned in held.on(day)]
    return sum(tree.path_length(o) for tree in trees for o in publication.origins if o in tree.parents)
