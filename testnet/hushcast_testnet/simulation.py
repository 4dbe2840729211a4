"""The in-process backend: hundreds of real daemons over the `memory` transport, under a mock clock."""

from __future__ import annotations

import functools
import gc
import random
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import trio
import trio.testing

from hushcast_directory.registry import Registry
from hushcast_directory.server import DirectoryServer
from hushcast_node.daemon import Daemon, OverlayFeed, Parts
from hushcast_node.identity import draw_identity
from hushcast_node.outbox import Publication
from hushcast_node.subscription import Subscription
from hushcast_node.tracing import FileTracer, NoTracer, Tracer
from hushcast_protocol.bodies import Content
from hushcast_protocol.epochs import EPOCHS_A_DAY
from hushcast_protocol.profile import PROFILES, Root
from hushcast_protocol.roster import Network, check_roster
from hushcast_protocol.secrets import Seed
from hushcast_protocol.tokens import topic_key
from hushcast_protocol.topics import Interest, Topic, parse_topic
from hushcast_runtime.environment import Environment, simulated_environment
from hushcast_runtime.store import MemoryStore
from hushcast_runtime.transports.memory import MemoryNetwork

EPOCH_SECONDS = 3600
BEGIN = 10_000 * EPOCHS_A_DAY * EPOCH_SECONDS + 2.5 * EPOCH_SECONDS
"""Unix time at which a simulation begins: early on a day, in the middle of an epoch."""
SHORTEST_WAY, LONGEST_WAY = 0.05, 0.15  # virtual seconds that a stream takes one way; Tor's are of this order
BETWEEN_PUBLICATIONS = 0.25  # virtual seconds
SETTLE_WITHIN = 600.0  # virtual seconds after the last publication in which all must have arrived


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


@dataclass(frozen=True)
class Result:
    """What came of it; the same scenario gives the same result but for `seconds`."""

    nodes: int
    pairs: int
    delivered: int
    duplicates: int
    transmissions: int
    ideal: int
    virtual_seconds: float
    seconds: float

    def as_dict(self) -> dict[str, float]:
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
    with _rare_collections():
        result = trio.run(_Simulation(scenario, progress).run, clock=clock)
    return replace(result, seconds=round(time.perf_counter() - began, 3))


@contextmanager
def _rare_collections() -> Iterator[None]:
    """Collect garbage rarely: walking the objects of hundreds of daemons took a third of the time."""
    before = gc.get_threshold()
    gc.set_threshold(100_000, 50, 1000)
    try:
        yield
    finally:
        gc.set_threshold(*before)


class _Simulation:
    """One run."""

    def __init__(self, scenario: Scenario, progress: Callable[[str], None]) -> None:
        self._scenario = scenario
        self._progress = progress
        self._env = simulated_environment(f"{scenario.seed} all", BEGIN)
        self._wires = MemoryNetwork(lambda: self._env.uniform(SHORTEST_WAY, LONGEST_WAY))
        self._network = Network("simulation", scenario.profile, EPOCH_SECONDS)
        base = PROFILES[scenario.profile]
        self._profile = replace(base, depth=scenario.depth or base.depth, origins=scenario.origins)
        self._directory_seed = Seed.draw(self._env.randomness)
        # Equal work is done once for all: stretching a topic's key, checking a roster's signatures.
        self._derive = functools.cache(topic_key)
        self._check_roster = functools.cache(check_roster)
        self._relays: list[Daemon] = []
        self._clients: list[Daemon] = []
        self._tracers: list[FileTracer] = []
        self._shown: Counter[tuple[bytes, int]] = Counter()
        self._arrived = trio.Event()

    async def run(self) -> Result:
        """Bring the network up, subscribe, publish, wait, count."""
        scenario = self._scenario
        async with trio.open_nursery() as nursery:
            self._progress(f"starting {scenario.nodes} relays")
            await self._start_directory(nursery)
            await self._start_daemons(nursery)
            topics = [parse_topic(f"topic {number}") for number in range(scenario.topics)]
            self._progress(f"subscribing {scenario.subscribers} times to {len(topics)} topics")
            subscriptions = await self._subscribe(topics, nursery)
            self._progress(f"publishing {scenario.publications} messages")
            publications = await self._publish(topics, nursery)
            pairs = len(publications) * scenario.subscribers
            with trio.move_on_after(SETTLE_WITHIN):
                while sum(1 for _ in self._shown) < pairs:
                    await self._arrived.wait()
            await trio.sleep(LONGEST_WAY * 20)  # late duplicates would come now
            result = self._count(publications, subscriptions, pairs)
            nursery.cancel_scope.cancel()
        for tracer in self._tracers:
            tracer.close()
        return result

    async def _start_directory(self, nursery: trio.Nursery) -> None:
        registry = Registry(self._network, self._directory_seed, MemoryStore(), self._scenario.nodes)
        transport = self._wires.transport()
        server = DirectoryServer(self._env, transport, self._network.id, self._directory_seed, registry)
        listener = await transport.listen(self._directory_seed)
        self._directory_address = listener.address
        nursery.start_soon(server.run, listener)

    async def _start_daemons(self, nursery: trio.Nursery) -> None:
        clients = self._scenario.subscribers if self._profile.root is Root.MAILBOX else 0
        for number in range(self._scenario.nodes):
            self._relays.append(self._daemon(f"relay-{number}", is_relay=True))
        for number in range(clients):
            self._clients.append(self._daemon(f"client-{number}", is_relay=False))
        for daemon in self._relays + self._clients:
            await nursery.start(daemon.run)
        for daemon in self._relays + self._clients:
            while not daemon.ready:  # noqa: ASYNC110 - a mock clock makes waiting free
                await trio.sleep(1)  # virtual seconds

    def _daemon(self, name: str, is_relay: bool) -> Daemon:
        env = simulated_environment(f"{self._scenario.seed} {name}", BEGIN)
        identity = draw_identity(env.randomness) if is_relay else None
        node = identity.seed.public().hex() if identity else name
        return Daemon(
            Parts(
                self._network,
                self._profile,
                self._directory_address,
                self._directory_seed.public(),
                identity,
                env,
                self._wires.transport(),
                MemoryStore(),
                self._tracer(name, node, env),
                self._derive,
                self._check_roster,
            )
        )

    def _tracer(self, name: str, node: str, env: Environment) -> Tracer:
        if self._scenario.traces is None:
            return NoTracer()
        tracer = FileTracer(self._scenario.traces, name, node, BEGIN, EPOCH_SECONDS, env)
        self._tracers.append(tracer)
        return tracer

    async def _subscribe(self, topics: list[Topic], nursery: trio.Nursery) -> dict[Topic, list[Subscription]]:
        """Subscribe on every topic; under listed roots by random relays, else by clients."""
        subscriptions: dict[Topic, list[Subscription]] = {topic: [] for topic in topics}

        async def subscribe(daemon: Daemon, topic: Topic, number: int) -> None:
            interest = Interest(topic)
            feed = await daemon.subscribe(interest)
            assert daemon.subscriber is not None
            held = next(held for held in daemon.subscriber.subscriptions if held.interest == interest)
            subscriptions[topic].append(held)
            nursery.start_soon(self._listen, feed, number)

        async with trio.open_nursery() as subscribing:
            for topic in topics:
                daemons = self._clients or self._env.sample(self._relays, self._scenario.subscribers)
                for number, daemon in enumerate(daemons):
                    subscribing.start_soon(subscribe, daemon, topic, number)
        return subscriptions

    async def _listen(self, feed: OverlayFeed, subscriber: int) -> None:
        while (arrival := await feed.next()) is not None:
            number, received = arrival
            feed.shown(number)
            self._shown[received.id, subscriber] += 1
            self._arrived.set()
            self._arrived = trio.Event()

    async def _publish(self, topics: list[Topic], nursery: trio.Nursery) -> list[tuple[Topic, Publication]]:
        publications: list[tuple[Topic, Publication]] = []

        async def publish(daemon: Daemon, topic: Topic) -> None:
            publications.append((topic, await daemon.start_publication(topic, Content(b"simulated"))))

        async with trio.open_nursery() as publishing:
            for number in range(self._scenario.publications):
                daemon = self._env.sample(self._relays + self._clients, 1)[0]
                publishing.start_soon(publish, daemon, topics[number % len(topics)])
                await trio.sleep(BETWEEN_PUBLICATIONS)
        return publications

    def _count(
        self,
        publications: list[tuple[Topic, Publication]],
        subscriptions: dict[Topic, list[Subscription]],
        pairs: int,
    ) -> Result:
        ideal = 0
        for topic, publication in publications:
            for subscription in subscriptions[topic]:
                tree = subscription.planned[publication.message.day].installation.tree
                ideal += sum(tree.path_length(o) for o in publication.origins if o in tree.parents)
        return Result(
            nodes=self._scenario.nodes,
            pairs=pairs,
            delivered=len(self._shown),
            duplicates=self._shown.total() - len(self._shown),
            transmissions=sum(d.counters["messages_sent"] for d in self._relays),
            ideal=ideal,
            virtual_seconds=round(trio.current_time(), 3),
            seconds=0.0,
        )
