"""Demonstrations: daemons subscribe and publish on a private Tor network, and deliveries are timed."""

from __future__ import annotations

import statistics
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

import trio

from hushcast.conversation import Conversation, ask
from hushcast.words import Delivered, Failed, Publish, Published, Subscribe, Subscribed
from hushcast_runtime.transports.base import TransportError
from hushcast_testnet import testnet
from hushcast_testnet.inventory import FILE, deadline

ARRIVE_WITHIN = 60.0  # seconds after the last publication
SUBSCRIBE_WITHIN = 120.0  # seconds

TOPICS = ("weather", "chess")
SUBSCRIBERS = (("client-1", "weather"), ("client-2", "chess"), ("relay-3", "weather"))

Progress = Callable[[str], None]
AnswerT = TypeVar("AnswerT")


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

    published: dict[str, tuple[str, float]] = field(default_factory=dict)
    arrived: dict[tuple[str, str], dict[str, float]] = field(default_factory=dict)
    news: trio.Event = field(default_factory=trio.Event)

    def pairs(self) -> list[tuple[float, float | None]]:
        """Return when each (publication, subscription) was published and when it arrived, if it did."""
        return [
            (began, self.arrived.get(subscriber, {}).get(message))
            for message, (topic, began) in self.published.items()
            for subscriber in SUBSCRIBERS
            if subscriber[1] == topic
        ]


def demo(progress: Progress) -> dict[str, Any]:
    """Run the demonstration and leave nothing running; return its figures.

    Raises a `HushcastError` if the network does not come up; whether anything was lost is in the figures.
    """
    outcome = run(DEMO, progress)
    delivered = [delay for delay in outcome.delays if delay is not None]
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


def run(course: Course, progress: Progress) -> Outcome:
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
            return trio.run(_converse, course, sockets, ready, progress)
        finally:
            if (directory / FILE).exists():
                testnet.down(directory, progress)


async def _converse(course: Course, sockets: dict[str, Path], ready: float, progress: Progress) -> Outcome:
    tally = _Tally()
    async with trio.open_nursery() as nursery:
        progress(f"{len(SUBSCRIBERS)} daemons subscribe to {len(TOPICS)} topics")
        began = time.monotonic()
        with deadline(SUBSCRIBE_WITHIN, "not all subscriptions were installed in time"):
            async with trio.open_nursery() as subscribing:
                for name, topic in SUBSCRIBERS:
                    subscribing.start_soon(nursery.start, _listen, sockets[name], name, topic, tally)
        subscribed = time.monotonic() - began
        progress(f"{len(course.publishers)} daemons publish {course.publications} messages")
        first = trio.current_time()
        async with trio.open_nursery() as publishing:
            for number in range(course.publications):
                await trio.sleep_until(first + number * course.between)
                name = course.publishers[number % len(course.publishers)]
                publishing.start_soon(_publish, sockets[name], TOPICS[number % len(TOPICS)], number, tally)
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
    arrived = tally.arrived.setdefault((name, topic), {})
    async with ask(socket, Subscribe(topic)) as conversation:
        await _expect(conversation, Subscribed)
        task_status.started()
        while True:
            event = await _expect(conversation, Delivered)
            arrived.setdefault(event.id, time.monotonic())
            await conversation.shown(event.cursor)
            tally.news.set()
            tally.news = trio.Event()


async def _publish(socket: Path, topic: str, number: int, tally: _Tally) -> None:
    began = time.monotonic()
    async with ask(socket, Publish(topic, f"message {number}".encode())) as conversation:
        published = await _expect(conversation, Published)
    tally.published[published.id] = (topic, began)


async def _expect(conversation: Conversation, kind: type[AnswerT]) -> AnswerT:
    answer = await conversation.next()
    if isinstance(answer, Failed):
        raise TransportError(answer.reason)
    assert isinstance(answer, kind)
    return answer
