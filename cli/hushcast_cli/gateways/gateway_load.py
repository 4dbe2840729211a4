"""Puts a load on a gateway of this machine: publishers and subscribers, with reservations or without."""

from __future__ import annotations

import time
from contextlib import AsyncExitStack
from dataclasses import dataclass, field

import trio

from hushcast_protocol.base.errors import UsageError
from hushcast_protocol.mqtt.wire.packets import Properties, PubAck, Publish
from hushcast_runtime.exception_groups import ungrouped
from hushcast_runtime.transports.base import TransportError
from hushcast_runtime.transports.endpoints import Endpoint, parse_endpoint
from hushcast_testnet.mqtt_client import MqttClient, check, connected_to

MAX_LOAD_CLIENTS = 1_000  # publishers and subscribers at once: a gateway has as many places
MAX_LOAD_MESSAGES = 1_000_000  # of one measurement
IN_FLIGHT = 16  # messages of a publisher that wait for an acknowledgement: gateways take some dozen
ANSWER_WITHIN = 30.0  # seconds: a gateway that takes longer to answer, or to deliver one more, has failed
_HEAD = 8  # bytes of a payload: when it was sent


@dataclass(frozen=True)
class LoadPlan:
    """How many clients of each kind, what each publishes, and what is reserved for which purpose."""

    endpoint: Endpoint
    publishers: int
    subscribers: int
    messages: int
    """Of each publisher."""
    size: int
    reservations: int
    """Of each publisher, one of them for its topic; 0 for none."""
    purpose: str

    def topic(self, run: str, publisher: int) -> str:
        """Return what a publisher publishes on."""
        return f"bench/{run}/{publisher}"

    def readers(self, publisher: int) -> int:
        """Return how many subscribers a publisher has: each has one publisher."""
        return len(range(publisher, self.subscribers, self.publishers))

    @property
    def deliveries(self) -> int:
        """Messages that are to come."""
        return sum(self.messages * self.readers(one) for one in range(self.publishers))


@dataclass
class LoadFigures:
    """What came of a plan: deliveries, how long they took, and each one's delay in milliseconds."""

    due: int
    came: int = 0
    seconds: float = 0.0
    delays: list[float] = field(default_factory=list)

    def delay(self, share: float) -> float:
        """Return the delay that this share of deliveries had at most."""
        ordered = sorted(self.delays)
        return ordered[min(int(share * len(ordered)), len(ordered) - 1)] if ordered else 0.0


def endpoint_of(text: str) -> Endpoint:
    """Return where a gateway of this machine listens; raise `UsageError` for any other."""
    try:
        return parse_endpoint(text)
    except UsageError:
        raise UsageError(
            f"{text!r} is no place on this machine: 127.0.0.1:PORT or unix:/PATH; loads are for one's own"
        ) from None


def check_plan(plan: LoadPlan) -> None:
    """Raise `UsageError` for more than a load may be."""
    if plan.publishers + plan.subscribers > MAX_LOAD_CLIENTS:
        raise UsageError(f"{plan.publishers + plan.subscribers:,} clients are above {MAX_LOAD_CLIENTS:,}")
    if max(plan.deliveries, plan.messages * plan.publishers) > MAX_LOAD_MESSAGES:
        raise UsageError(f"that are more than {MAX_LOAD_MESSAGES:,} messages: give fewer")


async def put_load(plan: LoadPlan, run: str) -> LoadFigures:
    """Measure a plan; `run` tells its topics from others'. Raises `TransportError`."""
    figures = LoadFigures(plan.deliveries)
    with ungrouped(TransportError):
        async with AsyncExitStack() as connected, trio.open_nursery() as nursery:
            sinks = [await _subscriber(connected, plan, run, number) for number in range(plan.subscribers)]
            sources = [await _publisher(connected, plan, run, number) for number in range(plan.publishers)]
            done = [trio.Event() for _ in sinks]
            began = time.perf_counter()
            for sink, event in zip(sinks, done, strict=True):
                nursery.start_soon(_count, sink, plan.messages, figures, event)
            for number, source in enumerate(sources):
                nursery.start_soon(_publish, source, plan, plan.topic(run, number))
            for event in done:
                await event.wait()
            figures.seconds = time.perf_counter() - began
            nursery.cancel_scope.cancel()
    return figures


async def _subscriber(connected: AsyncExitStack, plan: LoadPlan, run: str, number: int) -> MqttClient:
    client = await _client(connected, plan, f"{run}-s{number}")
    claimed: Properties = {"user_property": [("ap", plan.purpose)]} if plan.reservations else {}
    await client.subscribe(plan.topic(run, number % plan.publishers), 0, claimed)
    return client


async def _publisher(connected: AsyncExitStack, plan: LoadPlan, run: str, number: int) -> MqttClient:
    client = await _client(connected, plan, f"{run}-p{number}")
    topic = plan.topic(run, number)
    for at in range(plan.reservations):
        allowed: Properties = {"user_property": [("aip", plan.purpose)]}
        await client.publish(f"!RESERVE/{topic}/{at}" if at else f"!RESERVE/{topic}", b"", allowed)
    return client


async def _client(connected: AsyncExitStack, plan: LoadPlan, name: str) -> MqttClient:
    return await connected.enter_async_context(connected_to(plan.endpoint, name, ANSWER_WITHIN))


async def _publish(client: MqttClient, plan: LoadPlan, topic: str) -> None:
    """Publish all, so many at once that are not acknowledged."""
    waiting = 0
    for number in range(plan.messages):
        payload = time.perf_counter_ns().to_bytes(_HEAD, "big").ljust(plan.size, b"\0")
        await client.say(Publish(topic, payload, 1, packet_id=1 + number % 65_535))
        waiting += 1
        if waiting >= IN_FLIGHT:
            check(await client.next(PubAck), "a message")
            waiting -= 1
    for _ in range(waiting):
        check(await client.next(PubAck), "a message")


async def _count(client: MqttClient, messages: int, figures: LoadFigures, done: trio.Event) -> None:
    for _ in range(messages):
        sent = int.from_bytes((await client.next(Publish)).payload[:_HEAD], "big")
        figures.delays.append((time.perf_counter_ns() - sent) / 1e6)
        figures.came += 1
    done.set()
