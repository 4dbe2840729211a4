"""Demonstrations: daemons subscribe and publish on a private Tor network, and deliveries are timed."""

from __future__ import annotations

import statistics
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import trio

import hushcast
from hushcast_runtime.wording import counted, listed
from hushcast_testnet import testnet
from hushcast_testnet.inventory import FILE, deadline
from hushcast_testnet.story import story

ARRIVE_WITHIN = 60.0  # seconds after the last publication
SUBSCRIBE_WITHIN = 120.0  # seconds

TOPICS = ("weather", "chess")
SUBSCRIBERS = (("client-1", "weather"), ("client-2", "chess"), ("relay-3", "weather"))

Progress = Callable[[str], None]
Tell = Callable[[str], None]


_ENDING = (
    "Relays passed on sealed bodies by tokens that they cannot read: what is told of them is from their",
    "traces. What colluding relays can infer all the same, and how often: docs/attack-lab.md.",
    "",
    "Next: hushcast testnet up --dir /tmp/hush && hushcast testnet watch",
)


@dataclass(frozen=True)
class Course:
    """Parameters of a demonstration: number of daemons, number and rate of publications."""

    nodes: int
    clients: int
    publishers: tuple[str, ...]
    publications: int
    between: float
    """Seconds from one publication to the next."""


DEMO = Course(10, 2, ("relay-1", "relay-2", "client-1"), publications=20, between=0.5)


@dataclass(frozen=True)
class Outcome:
    """The result."""

    published: int
    delays: list[float | None]
    """Seconds from each publication to each subscription of its topic, `None` where it did not arrive."""
    ready: float
    """Seconds until the testnet was ready."""
    subscribed: float
    """Seconds that subscribing took."""


@dataclass
class _Tally:
    """What was published and what arrived, by (subscriber, topic) and message id."""

    tell: Tell
    published: dict[str, tuple[str, float]] = field(default_factory=dict)
    arrived: dict[tuple[str, str], dict[str, float]] = field(default_factory=dict)
    texts: dict[str, str] = field(default_factory=dict)
    news: trio.Event = field(default_factory=trio.Event)

    def arrive(self, subscriber: tuple[str, str], message: str) -> None:
        """Note that a message came, and tell it when all have it."""
        self.arrived[subscriber].setdefault(message, time.monotonic())
        self._tell_if_whole(message)
        self.news.set()
        self.news = trio.Event()

    def publish(self, publisher: str, message: str, topic: str, text: str, began: float) -> None:
        """Note that a relay took a message over."""
        self.published[message] = (topic, began)
        self.texts[message] = f"{publisher:<8} on “{topic}”: {text}"
        self._tell_if_whole(message)

    def _tell_if_whole(self, message: str) -> None:
        if message not in self.published:
            return
        topic, began = self.published[message]
        came = {
            name: self.arrived.get((name, wanted), {}).get(message)
            for name, wanted in SUBSCRIBERS
            if wanted == topic
        }
        if all(came.values()):
            got = listed(f"{name} after {moment - began:.2f} s" for name, moment in came.items() if moment)
            self.tell(f"  {self.texts.pop(message):<40} → {got}")

    def pairs(self) -> list[tuple[float, float | None]]:
        """Return when each (publication, subscription) was published and when it arrived, if it did."""
        return [
            (began, self.arrived.get(subscriber, {}).get(message))
            for message, (topic, began) in self.published.items()
            for subscriber in SUBSCRIBERS
            if subscriber[1] == topic
        ]


def demo(progress: Progress, tell: Tell) -> dict[str, Any]:
    """Run the demonstration and leave nothing running; return its figures.

    `tell` hears what people are to read, a line at a time.

    Raises a `HushcastError` if the network does not come up; whether anything was lost is in the figures.
    """
    outcome = run(DEMO, progress, tell)
    delivered = [delay for delay in outcome.delays if delay is not None]
    tell(f"{len(delivered)} of {counted(len(outcome.delays), 'delivery', 'deliveries')} were made.")
    for line in _ENDING:
        tell(line)
    return {
        "transport": "tor",
        "nodes": DEMO.nodes,
        "published": outcome.published,
        "delivered": len(delivered),
        "lost": len(outcome.delays) - len(delivered),
        "seconds": {
            "tor_ready": round(outcome.ready, 1),
            "subscribe": round(outcome.subscribed, 1),
            "deliver_p50": round(statistics.median(delivered), 3) if delivered else None,
        },
    }


def run(course: Course, progress: Progress, tell: Tell = lambda line: None) -> Outcome:
    """Run a demonstration and leave nothing running.

    Raises a `HushcastError` if its network does not come up.
    """
    with tempfile.TemporaryDirectory(prefix="hushcast-demo-") as folder:
        directory = Path(folder) / "testnet"
        began = time.monotonic()
        try:
            testnet.up(directory, course.nodes, course.clients, "tor", progress=progress)
            ready = time.monotonic() - began
            sockets = {node["name"]: Path(node["socket"]) for node in testnet.status(directory)["nodes"]}
            tell(
                f"A private Tor network, a directory and {len(sockets)} daemons are up, after {ready:.0f} s."
            )
            outcome = trio.run(_converse, course, sockets, ready, progress, tell)
            for line in ("", "The way of one of them:", "", *story(directory / "traces"), ""):
                tell(line)
            return outcome
        finally:
            if (directory / FILE).exists():
                testnet.down(directory, progress)


async def _converse(
    course: Course, sockets: dict[str, Path], ready: float, progress: Progress, tell: Tell
) -> Outcome:
    tally = _Tally(tell)
    async with trio.open_nursery() as nursery:
        progress(f"{len(SUBSCRIBERS)} daemons subscribe to {len(TOPICS)} topics")
        began = time.monotonic()
        with deadline(SUBSCRIBE_WITHIN, "not all subscriptions were installed in time"):
            async with trio.open_nursery() as subscribing:
                for name, topic in SUBSCRIBERS:
                    subscribing.start_soon(nursery.start, _listen, sockets[name], name, topic, tally)
        subscribed = time.monotonic() - began
        for topic in TOPICS:
            names = [name for name, subscribed_to in SUBSCRIBERS if subscribed_to == topic]
            tell(f"{listed(names)} {'subscribes' if len(names) == 1 else 'subscribe'} to “{topic}”.")
        tell(f"{listed(course.publishers)} publish {course.publications} messages:")
        tell("")
        progress(f"{len(course.publishers)} daemons publish {course.publications} messages")
        first = trio.current_time()
        async with trio.open_nursery() as publishing:
            for number in range(course.publications):
                await trio.sleep_until(first + number * course.between)
                name = course.publishers[number % len(course.publishers)]
                publishing.start_soon(_publish, sockets, name, TOPICS[number % len(TOPICS)], number, tally)
        with trio.move_on_after(ARRIVE_WITHIN):
            while any(arrival is None for _, arrival in tally.pairs()):
                await tally.news.wait()
        nursery.cancel_scope.cancel()
    delays = [arrival - began if arrival is not None else None for began, arrival in tally.pairs()]
    return Outcome(len(tally.published), delays, ready, subscribed)


async def _listen(
    socket: Path,
    name: str,
    topic: str,
    tally: _Tally,
    *,
    task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED,
) -> None:
    tally.arrived.setdefault((name, topic), {})
    async with hushcast.connect(socket) as daemon, daemon.subscribe(topic) as messages:
        task_status.started()
        async for message in messages:
            tally.arrive((name, topic), message.id)


async def _publish(sockets: dict[str, Path], name: str, topic: str, number: int, tally: _Tally) -> None:
    began = time.monotonic()
    text = f"message {number}"
    async with hushcast.connect(sockets[name]) as daemon:
        published = await daemon.publish(topic, text)
    tally.publish(name, published.id, topic, text, began)
