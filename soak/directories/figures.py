"""What a scene shows: heads, evidence, the beacon, when daemons took rosters, what became of messages."""

from __future__ import annotations

import itertools
import statistics
from collections import Counter
from dataclasses import dataclass
from typing import Any

import trio

from hushcast_directory.server.kept_evidence import EVIDENCE, read_evidence
from hushcast_local.inbox_records import ReportedGap
from hushcast_local.outbox import NoReceiptYet
from hushcast_protocol.authorities.directory_requests import Fetch, HeadAnswer
from hushcast_protocol.authorities.evidence import check_evidence
from hushcast_protocol.authorities.head_inside import inside_of
from hushcast_protocol.authorities.heads import Head, decode_head
from hushcast_protocol.authorities.schedule import schedule
from hushcast_protocol.base.epochs import EPOCHS_A_DAY
from hushcast_protocol.base.errors import Refusal
from hushcast_protocol.base.sharding import sharding_for
from hushcast_protocol.content.bodies import Content
from hushcast_protocol.content.predicates import parse_where
from hushcast_protocol.content.topics import Interest, parse_topic
from soak.directories.place import Place
from soak.directories.scene import LOOK_EVERY, Plan, Scene, playing

TOPICS = tuple(parse_topic(name) for name in ("one", "two", "three", "four", "five", "six"))
ARRIVES_WITHIN = 180.0  # seconds after the last publication


@dataclass(frozen=True)
class Figures:
    """What came of a scene."""

    epochs: int
    heads: int
    """Epochs for which all three honest directories served the same head."""
    forks: int
    rosters: int
    """Epochs whose roster every daemon took."""
    late: int
    """Of these, those that the last daemon took after the epoch had begun."""
    taken: tuple[float, float]
    """Seconds from the moment of publication until the last daemon took it: the median, the most."""
    evidence: int
    """Epochs for which there is evidence, or whose head names somebody."""
    accused: int
    wrong: int
    """Honest ones that are accused, and relays listed that nobody reached."""
    beacon: int | None
    """The epoch of the day from which on heads have tomorrow's beacon, if it was drawn."""
    named: int
    """Who withheld their secret, by the head that draws it."""
    published: int
    refused: int
    deliveries: int
    lost: int
    twice: int
    gaps: int
    """Messages, published ones or probes, that others told of and that did not come."""
    shards: int
    """Shards that the running day has at the end, as all daemons see it; 0 if they do not agree."""
    cuts: int
    """Days for which heads at any directory had a cut."""
    heads_refused: int
    """Answers of directories that daemons refused."""
    answers: dict[str, int]
    """What liars answered daemons."""
    internal_errors: int

    @property
    def held(self) -> bool:
        """Tell whether every epoch had its head, whoever lied was found out, and nothing was lost."""
        whole = self.heads == self.rosters == self.epochs
        wrong = self.forks, self.wrong, self.lost, self.twice, self.gaps, self.refused, self.internal_errors
        return whole and not any(wrong) and self.published > 0


class Traffic:
    """Every daemon subscribes to one of the topics, and publishes to all in turn."""

    def __init__(self, scene: Scene) -> None:
        self._scene = scene
        self._topics = TOPICS[: scene.plan.topics]
        self._published: dict[bytes, int] = {}
        self._heard: dict[str, Counter[bytes]] = {name: Counter() for name in scene.nodes}
        self._gaps: dict[str, set[bytes]] = {name: set() for name in scene.nodes}
        self.refused = 0
        self.over = trio.Event()

    async def listen(self) -> None:
        """Have all subscribe; return when messages reach all."""
        async with trio.open_nursery() as opening:
            for number, name in enumerate(self._scene.nodes):
                opening.start_soon(self._subscribe, name, number % len(self._topics))

    async def publish(self) -> None:
        """Publish until it is over, and wait for what is under way."""
        async with trio.open_nursery() as nursery:
            for name in self._scene.nodes:
                nursery.start_soon(self._keep_publishing, name, nursery)

    async def arrived(self) -> None:
        """Wait until all that was published has come, or could have."""
        with trio.move_on_after(ARRIVES_WITHIN):
            while self._missing():  # noqa: ASYNC110 - no event tells
                await trio.sleep(LOOK_EVERY)

    def counts(self) -> dict[str, Any]:
        """Return what became of the messages."""
        twice = sum(count - 1 for heard in self._heard.values() for count in heard.values())
        deliveries = sum(len(heard) for heard in self._heard.values())
        return {
            "published": len(self._published),
            "refused": self.refused,
            "deliveries": deliveries,
            "lost": self._missing(),
            "twice": twice,
            "gaps": sum(len(found) for found in self._gaps.values()),
        }

    def _missing(self) -> int:
        return sum(
            payload not in heard
            for number, heard in enumerate(self._heard.values())
            for payload, topic in self._published.items()
            if topic == number % len(self._topics)
        )

    async def _subscribe(self, name: str, topic: int) -> None:
        interest = Interest(TOPICS[topic], parse_where("", TOPICS[topic].attributes))
        feed = await self._scene.nodes[name].service.subscribe(interest)

        async def collect() -> None:
            while (arrival := await feed.next()) is not None:
                if isinstance(arrival, ReportedGap):
                    self._gaps[name].add(arrival.id)
                    continue
                number, received = arrival
                self._heard[name][received.payload] += 1
                feed.shown(number)

        self._scene.nursery.start_soon(collect)

    async def _keep_publishing(self, name: str, nursery: trio.Nursery) -> None:
        pause = self._scene.plan.pause
        with trio.move_on_after(self._scene.env.uniform(0.0, pause)):
            await self.over.wait()
        for number in itertools.count():
            if self.over.is_set():
                return
            nursery.start_soon(self._publish, name, number)
            with trio.move_on_after(pause):
                await self.over.wait()

    async def _publish(self, name: str, number: int) -> None:
        payload, topic = f"{name} {number}".encode(), number % len(self._topics)
        try:
            await self._scene.nodes[name].service.publish(TOPICS[topic], Content(payload))
        except NoReceiptYet:  # the outbox tries on, so it must come
            pass
        except Refusal:
            self.refused += 1
            return
        self._published[payload] = topic


class Watch:
    """When each daemon took each epoch's roster."""

    def __init__(self, scene: Scene) -> None:
        self._scene = scene
        self._taken: dict[int, dict[str, float]] = {}

    async def run(self) -> None:
        """Look often until cancelled."""
        while True:
            for name, node in self._scene.nodes.items():
                if (newest := node.overlay.rosters.newest) is not None:
                    self._taken.setdefault(newest.epoch, {}).setdefault(name, self._scene.env.now())
            await trio.sleep(LOOK_EVERY)

    def by_all(self, epoch: int) -> float | None:
        """Return when the last daemon took an epoch's roster, Unix seconds; `None` if some did not."""
        taken = self._taken.get(epoch, {})
        return max(taken.values()) if len(taken) == len(self._scene.nodes) else None


async def play(plan: Plan, place: Place) -> Figures:
    """Play a scene to its end and return its figures.

    Where starting takes longer than planned, later epochs count.
    """
    async with playing(plan, place) as scene:
        traffic, watch = Traffic(scene), Watch(scene)
        scene.nursery.start_soon(watch.run)
        await traffic.listen()
        calendar, env = scene.network.calendar, scene.env
        first = max(plan.first, calendar.epoch(env.now() + calendar.lead) + 1)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(traffic.publish)
            await env.sleep_until(calendar.epoch_start(first + plan.epochs))
            traffic.over.set()
        await traffic.arrived()
        return await _figures(scene, traffic, watch, range(first, first + plan.epochs))


async def _figures(scene: Scene, traffic: Traffic, watch: Watch, epochs: range) -> Figures:
    heads = {epoch: heads_of(scene, epoch) for epoch in epochs}
    agreed = {epoch: found[0] for epoch, found in heads.items() if is_agreed(scene, found)}
    said = {epoch: inside_of(head) for epoch, head in agreed.items()}
    lies = await _lies(scene)
    spoken = {epoch for epoch, inside in said.items() if inside.faults} | {epoch for _, epoch in lies}
    accused = {key for key, _ in lies} | {key for inside in said.values() for key in inside.faults}
    guilty = {liar.public() for liar in scene.liars}
    phantoms = sum(inside.count > scene.plan.relays for inside in said.values())
    cuts = [
        sharding_for(inside_of(head).shards, head.epoch // EPOCHS_A_DAY)
        for found in heads.values()
        for head in found
    ]
    drawn = next((epoch for epoch, inside in said.items() if inside.draw.tomorrow is not None), None)
    return Figures(
        epochs=len(epochs),
        heads=len(agreed),
        forks=sum(len(set(found)) > 1 for found in heads.values()),
        evidence=len(spoken & set(epochs)),
        accused=len(accused & guilty),
        wrong=len(accused - guilty) + phantoms,
        beacon=None if drawn is None else drawn % EPOCHS_A_DAY,
        named=0 if drawn is None else len(set(said[drawn].draw.left_out) & guilty),
        **_times(scene, watch, epochs),
        **traffic.counts(),
        shards=_shards(scene),
        cuts=len({cut.day for cut in cuts if cut is not None}),
        heads_refused=scene.count("heads_refused"),
        answers={} if scene.desk is None else {way.name: count for way, count in scene.desk.given.items()},
        internal_errors=scene.count("internal_errors"),
    )


def _times(scene: Scene, watch: Watch, epochs: range) -> dict[str, Any]:
    """Return when daemons took the rosters of epochs."""
    calendar = scene.network.calendar
    last = {epoch: moment for epoch in epochs if (moment := watch.by_all(epoch)) is not None}
    due = {epoch: schedule(calendar, epoch, scene.authorities).published for epoch in last}
    times = [moment - due[epoch] for epoch, moment in last.items()]
    return {
        "rosters": len(last),
        "late": sum(moment > calendar.epoch_start(epoch) for epoch, moment in last.items()),
        "taken": (round(statistics.median(times), 1), round(max(times), 1)) if times else (0.0, 0.0),
    }


def _shards(scene: Scene) -> int:
    """Return into how many shards the running day is cut, as all daemons see it; 0 if they do not agree."""
    day = scene.network.calendar.day(scene.env.now())
    seen = {node.overlay.shards.sharding(day) for node in scene.nodes.values()}
    if len(seen) != 1:
        return 0
    (sharding,) = seen
    return 1 if sharding is None else 2**sharding.bits


def heads_of(scene: Scene, epoch: int) -> list[Head]:
    """Return the head of an epoch at each honest directory that serves one."""
    found = []
    for directory in scene.directories.values():
        answer = directory.agreeing.answer(Fetch(epoch - 1))
        if isinstance(answer, HeadAnswer) and answer.heads:
            head = decode_head(answer.heads[-1].head)
            found += [head] if head.epoch == epoch else []
    return found


def is_agreed(scene: Scene, found: list[Head]) -> bool:
    """Tell whether every honest directory serves the same."""
    return len(found) == len(scene.directories) and all(head == found[0] for head in found)


async def _lies(scene: Scene) -> set[tuple[bytes, int]]:
    """Return who is accused on honest disks, and for which epoch."""
    found = set()
    for directory in scene.directories.values():
        for _, value in await directory.store.scan(EVIDENCE):
            evidence = read_evidence(value)
            found.add((evidence.accused, check_evidence(evidence, scene.network.id)))
    return found
