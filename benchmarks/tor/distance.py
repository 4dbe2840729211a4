"""Figure: subscribing and delivering where tors are apart, beside one first contact with an onion service.

Cold is a daemon's first subscription or publication; warm are the following ones. Everything on the network
waits for Tor, so what a first contact takes, measured on the same network, is the unit.
"""

from __future__ import annotations

import os
import statistics
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass
from itertools import cycle, islice
from pathlib import Path

import trio

import hushcast
from benchmarks.figures import Effort, Figure, at_most, missing
from benchmarks.tor import ready_publishing
from benchmarks.tor.private_tor import DISTANCES, over_tor
from benchmarks.tor.ready_publishing import ReadyTimes
from hushcast_protocol.base.crypto.secrets import Seed
from hushcast_protocol.base.errors import HushcastError
from hushcast_testnet import testnet
from hushcast_testnet.inventory import FILE, load
from hushcast_testnet.tor.distance import Distance
from hushcast_testnet.tor.tor_network import TorClient

RELAYS, CLIENTS = 8, 2
DIRECTORIES = 3  # of one alone no relay keeps what is published, and no connections are ready
EPOCH = 90  # seconds: the first roster comes with the second epoch, and a day ends after 36 minutes
CONTACTS = 20
SUBSCRIPTIONS = 5  # warm ones of each client
PUBLICATIONS = 200  # warm ones, one each second
BETWEEN = 1.0  # seconds
WITHIN = 180.0  # seconds for one of anything
TOPIC = "distance"


@dataclass(frozen=True)
class Times:
    """Seconds that each took."""

    contacts: Sequence[float]
    """From asking tor for an onion service that it does not know yet to the connection."""
    cold_subscriptions: Sequence[float]
    """Until an application is told that it is subscribed."""
    warm_subscriptions: Sequence[float]
    cold_deliveries: Sequence[float]
    """From a publication to its arrival."""
    warm_deliveries: Sequence[float]


def figures(effort: Effort) -> Iterator[Figure]:
    """Measure once at each distance."""
    for distance in DISTANCES:
        apart = f"tors {distance.ms} ms apart"
        times: list[tuple[Times, ReadyTimes]] = []
        why: BaseException | None = None
        try:
            times = [_measured(distance, effort)]
        except* (HushcastError, trio.TooSlowError) as failures:
            why = failures.exceptions[0]
        for each, ready in times:
            yield from table(each, apart)
            yield from ready_publishing.table(ready, apart)
        if why is not None:
            yield missing(f"subscribing and delivering, {apart}", None, "a first contact", why, None)


def _measured(distance: Distance, effort: Effort) -> tuple[Times, ReadyTimes]:
    with tempfile.TemporaryDirectory(prefix="hushcast-bench-") as place:
        directory = Path(place) / "net"
        try:
            clients = CLIENTS + ready_publishing.CLIENTS
            testnet.up(
                directory, RELAYS, clients, "tor", EPOCH, _tell, distance=distance, authorities=DIRECTORIES
            )
            return trio.run(measure, directory, effort), trio.run(ready_publishing.measure, directory, effort)
        finally:
            if (directory / FILE).exists():
                testnet.down(directory)


def table(times: Times, apart: str) -> Iterator[Figure]:
    """Return the lines of one distance: each beside a first contact, in the median."""
    contact = statistics.median(times.contacts)
    last = statistics.quantiles(times.warm_deliveries, n=100, method="inclusive")[-1]
    for what, took in (
        ("subscribe until told, cold, median", statistics.median(times.cold_subscriptions)),
        ("subscribe until told, warm, median", statistics.median(times.warm_subscriptions)),
        ("publication to delivery, cold, median", statistics.median(times.cold_deliveries)),
        ("publication to delivery, warm, median", statistics.median(times.warm_deliveries)),
        ("publication to delivery, warm, 99th percentile", last),
    ):
        yield at_most(f"{what}, seconds, {apart}: at most times", took, "a first contact", contact, None)


async def measure(directory: Path, effort: Effort) -> Times:
    """Measure on a testnet that has just come up, over Tor, with clients that nobody has used yet.

    Raises a `HushcastError` or `trio.TooSlowError` if something takes minutes.
    """
    net = load(directory)
    assert net.tor is not None
    sockets = {member.name: Path(member.socket or "") for member in net.nodes[: RELAYS + CLIENTS]}
    clients = [socket for name, socket in sockets.items() if name.startswith("client")]
    contacts = await _contacts(net.tor.clients[0], effort.amount(CONTACTS))
    async with AsyncExitStack() as held:

        async def subscribed(client: Path, topic: str) -> tuple[float, hushcast.Messages]:
            began = trio.current_time()
            daemon = await held.enter_async_context(hushcast.connect(client, timeout=WITHIN))
            messages = await held.enter_async_context(daemon.subscribe(topic))
            return trio.current_time() - began, messages

        cold = [await subscribed(client, TOPIC) for client in clients]
        again = [f"{TOPIC} {number}" for number in range(effort.amount(SUBSCRIPTIONS))]
        warm = [await subscribed(client, topic) for topic in again for client in clients]
        first = await _deliveries(cold[0][1], list(sockets.values()))
        steady = islice(cycle(sockets.values()), effort.amount(PUBLICATIONS))
        then = await _deliveries(cold[0][1], list(steady))
    return Times(contacts, [took for took, _ in cold], [took for took, _ in warm], first, then)


async def _contacts(client: TorClient, count: int) -> list[float]:
    taken = []
    async with over_tor(client) as transport, trio.open_nursery() as nursery:
        for _ in range(count):
            listener = await transport.listen(Seed.draw(os.urandom))
            nursery.start_soon(listener.serve, trio.aclose_forcefully)
            with trio.fail_after(WITHIN):
                await listener.published()
                began = trio.current_time()
                stream = await transport.connect(listener.address, os.urandom(8).hex())
                taken.append(trio.current_time() - began)
            await trio.aclose_forcefully(stream)
        nursery.cancel_scope.cancel()
    return taken


async def _deliveries(messages: hushcast.Messages, publishers: Sequence[Path]) -> list[float]:
    """Have daemons publish one after the other, and return how long each message took to a subscriber."""
    sent: dict[str, float] = {}
    came: dict[str, float] = {}

    async def publish(socket: Path) -> None:
        began = trio.current_time()
        async with hushcast.connect(socket) as daemon:
            sent[(await daemon.publish(TOPIC, "x")).id] = began

    async def listen() -> None:
        while len(came) < len(publishers):
            came.setdefault((await anext(messages)).id, trio.current_time())

    with trio.fail_after(len(publishers) * BETWEEN + WITHIN):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(listen)
            for socket in publishers:
                nursery.start_soon(publish, socket)
                await trio.sleep(BETWEEN)
    return [came[message] - began for message, began in sent.items()]


def _tell(text: str) -> None:
    print(f"  {text}", file=sys.stderr)
