"""The course of a demonstration: daemons subscribe and publish on a private Tor network, and are timed."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import trio

import hushcast
from hushcast_protocol.content.predicates import parse_where
from hushcast_protocol.content.topics import parse_topic, parse_values
from hushcast_runtime.change_signal import ChangeSignal
from hushcast_runtime.wording import listed
from hushcast_testnet import testnet
from hushcast_testnet.demonstrations.story import story
from hushcast_testnet.inventory import FILE, CarrierName, Transport, deadline
from hushcast_testnet.layouts import BrokersModel
from hushcast_testnet.signals import until_signalled
from hushcast_testnet.tor.distance import NEAR, Distance

ARRIVE_WITHIN = 60.0  # seconds after the last publication
SUBSCRIBE_WITHIN = 120.0  # seconds
AGAIN_WITHIN = 1.0  # seconds after the last arrival in which what comes a second time would come

_SERVING: Mapping[CarrierName, str] = {
    "overlay": "a directory",
    "central": "a server, two proxies",
    "brokers": "six brokers",
}

Progress = Callable[[str], None]
Tell = Callable[[str], None]


@dataclass(frozen=True)
class CourseListener:
    """A daemon that subscribes to a topic, by the course's word for it, under a condition."""

    name: str
    topic: str
    where: str = ""


@dataclass(frozen=True)
class Letter:
    """What a message is published on: a topic, and attributes, as in `celsius=21.5`."""

    topic: str
    attributes: str = ""


@dataclass(frozen=True)
class Course:
    """Parameters of a demonstration: its daemons, who subscribes, what is published and how fast."""

    nodes: int
    clients: int | None
    publishers: tuple[str, ...]
    publications: int
    between: float
    """Seconds from one publication to the next."""
    topics: Mapping[str, str]
    """Topics or their links by the words for them."""
    listeners: tuple[CourseListener, ...]
    letters: tuple[Letter, ...]
    """Published in turn."""
    carrier: CarrierName = "overlay"
    transport: Transport = "tor"
    scene: Callable[[Mapping[str, Path], Path, Tell], Awaitable[dict[str, Any]]] | None = None
    """What is shown behind it, with the daemons' sockets by name, and the traces; returns its figures."""

    privacy: BrokersModel | None = None
    """What brokers learn, where there are any."""
    distance: Distance = NEAR
    """Between its tors."""

    def wants(self, listener: CourseListener, letter: Letter) -> bool:
        """Tell whether a message like this is for a listener."""
        if listener.topic != letter.topic:
            return False
        topic = parse_topic(self.topics[letter.topic])
        values = parse_values(topic, letter.attributes.split())
        return parse_where(listener.where, topic.attributes).matches(values)


@dataclass(frozen=True)
class CourseOutcome:
    """The result."""

    published: int
    delays: list[float | None]
    """Seconds from each publication to each subscription that wants it, `None` where it did not arrive."""
    extra: int
    """Arrivals beyond these: a second time, or where the condition does not fit."""
    ready: float
    """Seconds until the testnet was ready."""
    subscribed: float
    """Seconds that subscribing took."""
    scene: dict[str, Any] = field(default_factory=dict)
    """The figures of what was shown behind it."""


@dataclass
class _Tally:
    """What was published and what arrived, by listener and message id."""

    course: Course
    tell: Tell
    published: dict[str, tuple[Letter, float]] = field(default_factory=dict)
    arrived: dict[CourseListener, dict[str, float]] = field(default_factory=dict)
    texts: dict[str, str] = field(default_factory=dict)
    arrivals: int = 0
    news: ChangeSignal = field(default_factory=ChangeSignal)

    def arrive(self, listener: CourseListener, message: str) -> None:
        """Note that a message came, and tell it when all have it."""
        self.arrivals += 1
        self.arrived[listener].setdefault(message, time.monotonic())
        self._tell_if_whole(message)
        self.news.tell()

    def publish(self, publisher: str, message: str, letter: Letter, text: str, began: float) -> None:
        """Note that a relay, the server or the root took a message over."""
        self.published[message] = (letter, began)
        about = f" ({letter.attributes})" if letter.attributes else ""
        self.texts[message] = f"{publisher:<8} on “{letter.topic}”{about}: {text}"
        self._tell_if_whole(message)

    def _wanting(self, letter: Letter) -> list[CourseListener]:
        return [one for one in self.course.listeners if self.course.wants(one, letter)]

    def _tell_if_whole(self, message: str) -> None:
        if message not in self.published:
            return
        letter, began = self.published[message]
        came = {one.name: self.arrived[one].get(message) for one in self._wanting(letter)}
        if all(came.values()) and message in self.texts:
            got = listed(f"{name} after {moment - began:.2f} s" for name, moment in came.items() if moment)
            self.tell(f"  {self.texts.pop(message):<40} → {got or 'nobody wants it'}")

    def pairs(self) -> list[tuple[float, float | None]]:
        """Return when each (publication, subscription) was published and when it arrived, if it did."""
        return [
            (began, self.arrived[listener].get(message))
            for message, (letter, began) in self.published.items()
            for listener in self._wanting(letter)
        ]


def run(course: Course, progress: Progress, tell: Tell = lambda line: None) -> CourseOutcome:
    """Run a demonstration and leave nothing running.

    Raises a `HushcastError` if its network does not come up.
    """
    with tempfile.TemporaryDirectory(prefix="hushcast-demo-") as folder:
        directory = Path(folder) / "testnet"
        began = time.monotonic()
        try:
            testnet.up(
                directory,
                course.nodes,
                course.clients,
                course.transport,
                progress=progress,
                carrier=course.carrier,
                privacy=course.privacy,
                distance=course.distance,
            )
            ready = time.monotonic() - began
            sockets = {node["name"]: Path(node["socket"]) for node in testnet.status(directory)["nodes"]}
            whole = f"A private Tor network, {_SERVING[course.carrier]} and {len(sockets)} daemons"
            tell(f"{whole} are up, after {ready:.0f} s{far(course.distance)}.")
            outcome = trio.run(until_signalled, converse, course, sockets, ready, progress, tell)
            for line in ("", "The way of one of them:", "", *story(directory / "traces", course.carrier), ""):
                tell(line)
            if course.scene is None:
                return outcome
            scene = trio.run(until_signalled, course.scene, sockets, directory / "traces", tell)
            return replace(outcome, scene=scene)
        finally:
            if (directory / FILE).exists():
                testnet.down(directory, progress)


def far(distance: Distance) -> str:
    """Return what is told of the distance between a network's tors, nothing if there is none."""
    return f", its tors {distance.ms} ms from each other" if distance.ms else ""


async def converse(
    course: Course, sockets: dict[str, Path], ready: float, progress: Progress, tell: Tell
) -> CourseOutcome:
    """Let the daemons at these control sockets, by name, subscribe and publish; return what arrived.

    `ready` is passed on into the outcome.
    """
    tally = _Tally(course, tell)
    async with trio.open_nursery() as nursery:
        progress(f"{len(course.listeners)} daemons subscribe to {len(course.topics)} topics")
        began = time.monotonic()
        with deadline(SUBSCRIBE_WITHIN, "not all subscriptions were installed in time"):
            async with trio.open_nursery() as subscribing:
                for listener in course.listeners:
                    subscribing.start_soon(nursery.start, _listen, sockets, listener, tally)
        subscribed = time.monotonic() - began
        _tell_subscriptions(course, tell)
        progress(f"{len(course.publishers)} daemons publish {course.publications} messages")
        await _publish_all(course, sockets, tally)
        with trio.move_on_after(ARRIVE_WITHIN):
            while any(arrival is None for _, arrival in tally.pairs()):
                await tally.news.wait()
        await trio.sleep(AGAIN_WITHIN)
        nursery.cancel_scope.cancel()
    delays = [arrival - began if arrival is not None else None for began, arrival in tally.pairs()]
    extra = tally.arrivals - sum(delay is not None for delay in delays)
    return CourseOutcome(len(tally.published), delays, extra, ready, subscribed)


def _tell_subscriptions(course: Course, tell: Tell) -> None:
    for topic in course.topics:
        names = [
            f"{one.name} ({one.where})" if one.where else one.name
            for one in course.listeners
            if one.topic == topic
        ]
        tell(f"{listed(names)} {'subscribes' if len(names) == 1 else 'subscribe'} to “{topic}”.")
    tell(f"{listed(course.publishers)} publish {course.publications} messages:")
    tell("")


async def _publish_all(course: Course, sockets: dict[str, Path], tally: _Tally) -> None:
    first = trio.current_time()
    async with trio.open_nursery() as publishing:
        for number in range(course.publications):
            await trio.sleep_until(first + number * course.between)
            name = course.publishers[number % len(course.publishers)]
            letter = course.letters[number % len(course.letters)]
            publishing.start_soon(_publish, sockets, name, letter, number, tally)


async def _listen(
    sockets: dict[str, Path],
    listener: CourseListener,
    tally: _Tally,
    *,
    task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED,
) -> None:
    tally.arrived.setdefault(listener, {})
    topic = tally.course.topics[listener.topic]
    async with (
        hushcast.connect(sockets[listener.name]) as daemon,
        daemon.subscribe(topic, where=listener.where) as messages,
    ):
        task_status.started()
        async for message in messages:
            tally.arrive(listener, message.id)


async def _publish(sockets: dict[str, Path], name: str, letter: Letter, number: int, tally: _Tally) -> None:
    began = time.monotonic()
    text = f"message {number}"
    attributes = dict(one.split("=") for one in letter.attributes.split())
    async with hushcast.connect(sockets[name]) as daemon:
        published = await daemon.publish(tally.course.topics[letter.topic], text, attributes=attributes)
    tally.publish(name, published.id, letter, text, began)
