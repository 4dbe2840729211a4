"""One simulated run, whatever the carrier: nodes subscribe, publish on schedule, and arrivals are counted."""

from __future__ import annotations

from abc import ABC, abstractmethod
from bisect import bisect
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import accumulate
from typing import Any

import msgspec
import trio

from hushcast_local.inbox_records import ReportedGap
from hushcast_local.outbox import OutboxPublication
from hushcast_local.service import InboxFeed
from hushcast_protocol.base.errors import Refusal
from hushcast_protocol.content.attributes import Values
from hushcast_protocol.content.bodies import Content
from hushcast_protocol.content.topics import Interest, Topic, parse_topic
from hushcast_runtime.environment import Environment
from hushcast_runtime.wording import counted
from hushcast_testnet.progress import now_and_then
from hushcast_testnet.simulations.lives import LONGEST_WAY, NodeLife
from hushcast_testnet.simulations.map_interests import draw_cell, draw_place, map_topic
from hushcast_testnet.simulations.probe_readers import draw_interest, draw_values
from hushcast_testnet.simulations.scenario import EPOCH_SECONDS, REPAIRED_AFTER, Scenario, SimulationResult

BETWEEN_PUBLICATIONS = 0.25  # virtual seconds
SHOWN_WITHIN = 60.0  # virtual seconds after all subscribed in which brokers show what they may
ANSWERED_WITHIN = 300.0  # the same where they ask a service: a step of a search takes half a minute
SETTLE_WITHIN = 900.0  # virtual seconds after the last publication in which all must have arrived


@dataclass
class SimulatedPublication:
    """One publication of a simulation."""

    topic: Topic
    time: float  # virtual seconds
    values: Values
    wanted: int
    """Subscribers who want it."""
    publication: OutboxPublication | None = None  # none where it was refused

    @property
    def accepted(self) -> OutboxPublication | None:
        """The publication, if somebody gave a receipt."""
        return self.publication if self.publication is not None and self.publication.origins else None


@dataclass
class SimulatedListener:
    """One application, which listens at a node and remembers how far it came."""

    node: NodeLife
    interest: Interest
    number: int
    """Of the subscriber, among those on its topic."""
    cursor: int | None = None


class SimulatedRun(ABC):
    """What a run is on every carrier."""

    def __init__(self, scenario: Scenario, progress: Callable[[str], None], env: Environment) -> None:
        self._scenario = scenario
        self._progress = progress
        self._env = env
        self._sent: list[SimulatedPublication] = []
        self._wanted: dict[Topic, list[Interest]] = defaultdict(list)
        """What subscribers want."""
        self._shown: Counter[tuple[bytes, int]] = Counter()
        self._arrived = trio.lowlevel.ParkingLot()
        self._fault_at = 0.0
        self._gaps = 0

    @abstractmethod
    async def _start(self, nursery: trio.Nursery) -> None:
        """Bring the network up."""

    @abstractmethod
    def _nodes(self) -> Sequence[NodeLife]:
        """Return the daemons that publish."""

    @abstractmethod
    def _subscribers(self) -> Sequence[NodeLife]:
        """Return daemons that are to subscribe to one topic."""

    @abstractmethod
    def _break(self, nursery: trio.Nursery) -> None:
        """Let faults happen from now on."""

    @abstractmethod
    def _figures(self) -> dict[str, Any]:
        """Return the fields of the result that depend on the carrier."""

    async def run(self) -> SimulationResult:
        """Bring the network up, subscribe, publish, let faults happen, wait, count."""
        scenario = self._scenario
        async with trio.open_nursery() as nursery:
            await self._start(nursery)
            names = [f"topic {number}" for number in range(scenario.topics)]
            if scenario.terms is not None:
                interests = [Interest(map_topic(name)) for name in names]
            elif scenario.read_probes:
                interests = [draw_interest(name, self._env) for name in names]
            else:
                interests = [Interest(parse_topic(name)) for name in names]
            self._progress(
                f"subscribing {counted(scenario.subscribers, 'time')} to {counted(len(interests), 'topic')}"
            )
            await self._subscribe(interests, nursery)
            await self._publish(interests, nursery)
            await self._settle()
            result = self._count()
            await self._afterwards()
            nursery.cancel_scope.cancel()
        return result

    async def _start_all(self, lives: Iterable[NodeLife], nursery: trio.Nursery) -> None:
        """Start nodes, and return when all are ready."""
        nodes = list(lives)
        for node in nodes:
            await node.start(nursery)
        tell = now_and_then(self._progress)
        for number, node in enumerate(nodes):
            while not node.daemon.ready:
                tell(f"{number} of {len(nodes)} daemons are ready")
                await trio.sleep(1)  # virtual seconds

    async def _subscribe(self, interests: list[Interest], nursery: trio.Nursery) -> None:
        """Have nodes subscribe; they listen in the nursery."""
        terms, tell, done = self._scenario.terms, now_and_then(self._progress), 0

        async def listen(listening: SimulatedListener) -> None:
            nonlocal done
            await self._listen(listening, nursery)
            done += 1
            tell(f"{counted(done, 'subscription')} of {len(interests) * self._scenario.subscribers} ready")

        async with trio.open_nursery() as subscribing:
            for interest in interests:
                for number, node in enumerate(self._subscribers()):
                    own = interest if terms is None else draw_cell(interest.topic, self._env)
                    self._wanted[own.topic].append(own)
                    listening = SimulatedListener(node, own, number)
                    # Where too few want the same, it is not ready until more do.
                    (subscribing if terms is None else nursery).start_soon(listen, listening)
        if terms is not None:
            await trio.sleep(ANSWERED_WITHIN if self._scenario.tomography else SHOWN_WITHIN)

    async def _listen(self, listening: SimulatedListener, nursery: trio.Nursery) -> None:
        """Subscribe at a node that runs, and listen in the nursery while it lives."""
        terms = None if self._scenario.terms is None else msgspec.structs.asdict(self._scenario.terms)
        service = listening.node.daemon.service
        feed = await service.subscribe(listening.interest, listening.cursor, terms=terms)
        nursery.start_soon(self._take, feed, listening)

    async def _take(self, feed: InboxFeed, listening: SimulatedListener) -> None:
        while (arrival := await feed.next()) is not None:
            if isinstance(arrival, ReportedGap):
                self._gaps += 1
                continue
            number, received = arrival
            feed.shown(number)
            listening.cursor = number
            self._shown[received.id, listening.number] += 1
            self._arrived.unpark_all()

    async def _publish(self, interests: list[Interest], nursery: trio.Nursery) -> None:
        """Publish on schedule; faults begin after the first tenth."""
        scenario, tell = self._scenario, now_and_then(self._progress)
        self._progress(f"publishing {counted(scenario.publications, 'message')}")
        began = trio.current_time()
        async with trio.open_nursery() as publishing:
            for number in range(scenario.publications):
                await trio.sleep_until(began + self._due(number))
                tell(f"{number} of {scenario.publications} messages are published")
                if number == scenario.publications // 10 and scenario.faults:
                    self._fault_at = trio.current_time()
                    self._break(nursery)
                sent = self._draw(self._next(interests, number))
                self._sent.append(sent)
                if up := [node for node in self._nodes() if node.is_up]:  # else nobody can
                    node = up[self._env.below(len(up))]
                    publishing.start_soon(self._publish_one, node, sent, Content(b"simulated", sent.values))
            if scenario.delay_rosters or scenario.read_probes:  # they look on for as long as was said
                await trio.sleep_until(began + self._due(scenario.publications))

    def _next(self, interests: list[Interest], number: int) -> Interest:
        """Return whose turn it is; by Zipf's law the n-th has 1/n of the first one's messages."""
        if not self._scenario.zipf:
            return interests[number % len(interests)]
        weights = list(accumulate(1 / (place + 1) for place in range(len(interests))))
        return interests[bisect(weights, self._env.uniform(0.0, weights[-1]))]

    def _draw(self, interest: Interest) -> SimulatedPublication:
        """Draw a message, and tell how many want it."""
        topic = interest.topic
        if self._scenario.terms is not None:
            values = draw_place(topic, self._env)
        else:
            values = draw_values(interest, self._env)
        wanted = sum(one.predicate.matches(values) for one in self._wanted[topic])
        return SimulatedPublication(topic, trio.current_time(), values, wanted)

    def _due(self, number: int) -> float:
        """Return when a publication is due, in virtual seconds after the first."""
        scenario = self._scenario
        if scenario.minutes is not None:
            return 60.0 * scenario.minutes * number / scenario.publications
        due = number * BETWEEN_PUBLICATIONS
        if scenario.faults and number >= scenario.publications // 2:
            due += REPAIRED_AFTER * EPOCH_SECONDS
        return due

    async def _publish_one(self, node: NodeLife, sent: SimulatedPublication, content: Content) -> None:
        with suppress(Refusal):
            publication = await node.daemon.service.enqueue(sent.topic, content)
            assert isinstance(publication, OutboxPublication)  # only what has a token may be known already
            sent.publication = publication

    async def _afterwards(self) -> None:
        """Do what is to be seen in traces alone, once all is counted."""
        await trio.lowlevel.checkpoint()

    def _settles_within(self) -> float:
        """Return the virtual seconds after the last publication in which all must have arrived."""
        return SETTLE_WITHIN

    async def _settle(self) -> None:
        pairs = sum(sent.wanted for sent in self._sent if sent.publication is not None)
        self._progress("waiting for the last deliveries")
        tell = now_and_then(self._progress)
        with trio.move_on_after(self._settles_within()):
            while len(self._shown) < pairs:
                tell(f"{len(self._shown)} of {pairs} deliveries were made")
                await self._arrived.park()
        await trio.sleep(LONGEST_WAY * 20)  # late duplicates would come now

    def _accepted(self) -> list[tuple[SimulatedPublication, OutboxPublication]]:
        return [(sent, sent.accepted) for sent in self._sent if sent.accepted is not None]

    def _count(self) -> SimulationResult:
        accepted = self._accepted()
        shown = Counter(message for message, _ in self._shown)
        later = self._fault_at + REPAIRED_AFTER * EPOCH_SECONDS
        repaired = [(sent, publication) for sent, publication in accepted if sent.time >= later]
        return SimulationResult(
            nodes=self._scenario.nodes,
            pairs=sum(sent.wanted for sent in self._sent),
            delivered=len(self._shown),
            duplicates=self._shown.total() - len(self._shown),
            virtual_seconds=round(trio.current_time(), 3),
            seconds=0.0,
            receipts=len(accepted),
            lost_with_receipt=sum(sent.wanted - shown[one.message.id] for sent, one in accepted),
            gaps_reported=self._gaps,
            repaired={
                "pairs": sum(sent.wanted for sent, _ in repaired),
                "delivered": sum(shown[publication.message.id] for _, publication in repaired),
            },
            **self._figures(),
        )
