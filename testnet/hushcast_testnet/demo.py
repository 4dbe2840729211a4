"""The demonstration: a private Tor network, daemons that subscribe and publish on it, and what arrived."""

from __future__ import annotations

import statistics
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

import trio

from hushcast_node.control.client import Conversation, ask
from hushcast_node.control.words import Delivered, Failed, Publish, Published, Subscribe, Subscribed
from hushcast_runtime.transports.base import TransportError
from hushcast_testnet import testnet
from hushcast_testnet.inventory import deadline

NODES, CLIENTS = 10, 2
PUBLICATIONS = 20
BETWEEN = 0.5  # seconds between publications
ARRIVE_WITHIN = 60.0  # seconds after the last publication
SUBSCRIBE_WITHIN = 120.0  # seconds

TOPICS = ("weather", "chess")
SUBSCRIBERS = (("client-1", "weather"), ("client-2", "chess"), ("relay-3", "weather"))
PUBLISHERS = ("relay-1", "relay-2", "client-1")

Progress = Callable[[str], None]
AnswerT = TypeVar("AnswerT")


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
    with tempfile.TemporaryDirectory(prefix="hushcast-demo-") as folder:
        directory = Path(folder) / "testnet"
        began = time.monotonic()
        testnet.up(directory, NODES, CLIENTS, "tor", progress=progress)
        ready = time.monotonic() - began
        try:
            sockets = {node["name"]: Path(node["socket"]) for node in testnet.status(directory)["nodes"]}
            figures = trio.run(_converse, sockets, progress)
        finally:
            testnet.down(directory, progress)
    figures["seconds"]["tor_ready"] = round(ready, 1)
    return figures


async def _converse(sockets: dict[str, Path], progress: Progress) -> dict[str, Any]:
    tally = _Tally()
    async with trio.open_nursery() as nursery:
        progress(f"{len(SUBSCRIBERS)} daemons subscribe to {len(TOPICS)} topics")
        began = time.monotonic()
        with deadline(SUBSCRIBE_WITHIN, "not all subscriptions were installed in time"):
            async with trio.open_nursery() as subscribing:
                for name, topic in SUBSCRIBERS:
                    subscribing.start_soon(nursery.start, _listen, sockets[name], name, topic, tally)
        subscribed = time.monotonic() - began
        progress(f"{len(PUBLISHERS)} daemons publish {PUBLICATIONS} messages")
        async with trio.open_nursery() as publishing:
            for number in range(PUBLICATIONS):
                name = PUBLISHERS[number % len(PUBLISHERS)]
                publishing.start_soon(_publish, sockets[name], TOPICS[number % len(TOPICS)], number, tally)
                await trio.sleep(BETWEEN)
        with trio.move_on_after(ARRIVE_WITHIN):
            while any(arrival is None for _, arrival in tally.pairs()):
                await tally.news.wait()
        nursery.cancel_scope.cancel()
    return _figures(tally, subscribed)


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


def _figures(tally: _Tally, subscribed: float) -> dict[str, Any]:
    delays = [arrival - began for began, arrival in tally.pairs() if arrival is not None]
    return {
        "transport": "tor",
        "nodes": NODES,
        "published": len(tally.published),
        "delivered": len(delays),
        "lost": len(tally.pairs()) - len(delays),
        "seconds": {
            "tor_ready": 0.0,
            "subscribe": round(subscribed, 1),
            "deliver_p50": round(statistics.median(delays), 3) if delays else None,
        },
    }
