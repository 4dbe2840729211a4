"""A large tree of brokers, recounted: `python tests/brokers/large_tree.py 50 1000` in some minutes.

Who gets what is counted again from the subscriptions alone, before and after 30 % of the brokers are killed
and replaced by others. How much is advertised, and how many rows tables have, is told with covering and
without.
"""

from __future__ import annotations

import argparse
import random
import sys
import time
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest import mock

import trio

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parents[1]))
    import helper_folders  # noqa: F401

from small_network import until
from small_tree import TOPIC, Client, Member, SmallTree, small_tree

import hushcast_protocol.brokers.filter_routes
import hushcast_protocol.brokers.shown_filters
from hushcast_protocol.base.link.hop_link import IDLE
from hushcast_protocol.base.observations import Advertised
from hushcast_protocol.brokers.filter_index import Meter
from hushcast_protocol.brokers.filters import Filter
from hushcast_protocol.brokers.frames import Ping
from hushcast_protocol.brokers.poset import Poset
from hushcast_protocol.brokers.roots import RootChanges
from hushcast_protocol.content.messages import Message
from hushcast_protocol.content.predicates import parse_where
from hushcast_runtime.transports.base import TransportError

KINDS = ("fire", "flood", "storm", "quake")
TOWNS = (20, 50, 80)  # where clustered subscribers live
REPLACED = 0.3


class Uncovered(Poset):
    """A table that shows each of its filters: what brokers would do without covering."""

    def __init__(self, meter: Meter | None = None) -> None:
        super().__init__(meter)
        self._all, self._told = set[Filter](), set[Filter]()

    def insert(self, given: Filter, source: Any) -> bool:
        is_new = super().insert(given, source)
        if is_new:
            self._all.add(given)
        return is_new

    def remove(self, given: Filter, source: Any) -> bool:
        went = super().remove(given, source)
        if went:
            self._all.remove(given)
        return went

    def roots(self) -> set[Filter]:
        return self._all

    def take_changes(self, most: int = 0) -> RootChanges:
        changes = RootChanges(frozenset(self._all - self._told), frozenset(self._told - self._all))
        self._told = set(self._all)
        return changes


class CountingTracer:
    """Counts the filters that go up, and those that are withdrawn."""

    is_on = True

    def __init__(self) -> None:
        self.filters = 0
        self.frames = 0

    def observe(self, observed: Any) -> None:
        if isinstance(observed, Advertised) and observed.child is None:
            self.frames += 1
            self.filters += len(observed.show) + len(observed.withdraw)

    def tell(self, told: Any) -> None:
        pass

    def close(self) -> None:
        pass


@dataclass
class Subscriber:
    """A client and what it asked for."""

    client: Client
    wheres: list[str]

    def expected(self, sent: list[tuple[Message, dict[str, Any]]]) -> set[bytes]:
        """Recount: what its conditions match, by the definition of conditions."""
        predicates = [parse_where(where, TOPIC.attributes) for where in self.wheres]
        return {message.id for message, values in sent if any(p.matches(values) for p in predicates)}


def where_of(draw: random.Random, workload: str) -> str:
    """Draw a condition: anywhere, or as people around three towns have it."""
    if workload == "uniform":
        low = draw.randrange(0, 90)
        wide = draw.choice((2, 5, 10))
    else:
        low = draw.choice(TOWNS) - draw.choice((2, 5, 10))
        wide = draw.choice((4, 10, 20))
    kind = draw.choice((*KINDS, None, None))
    return f"lat in [{low}, {low + wide}]" + (f", kind = {kind}" if kind else "")


def rows_of(brokers: int) -> list[tuple[str, Any, str]]:
    """Return a tree: a fifth of the brokers are inner ones, on two levels."""
    inner = max(2, brokers // 5)
    upper = max(1, inner // 3)
    rows: list[tuple[str, Any, str]] = [(f"inner {n}", "inner", "root") for n in range(upper)]
    rows += [(f"inner {n}", "inner", f"inner {n % upper}") for n in range(upper, inner)]
    parents = list(range(upper, inner)) or list(range(upper))
    edges = brokers - 1 - inner
    return rows + [(f"edge {n}", "edge", f"inner {parents[n % len(parents)]}") for n in range(edges)]


async def subscribe_all(network: SmallTree, subscribers: list[Subscriber]) -> None:
    """Attach all at once, and subscribe."""
    limit = trio.CapacityLimiter(200)

    async def one(subscriber: Subscriber) -> None:
        async with limit:
            await subscriber.client.attach()
            assert await subscriber.client.join() == "accepted"
            for number, where in enumerate(subscriber.wheres):
                verdict = await subscriber.client.subscribe(where, number.to_bytes(16, "big"))
                assert verdict == "accepted", verdict

    async with trio.open_nursery() as nursery:
        for subscriber in subscribers:
            nursery.start_soon(one, subscriber)


async def publish_some(
    network: SmallTree, draw: random.Random, count: int
) -> list[tuple[Message, dict[str, Any]]]:
    sent = []
    for _ in range(count):
        values = {"lat": draw.randrange(0, 101), "kind": draw.choice(KINDS)}
        sent.append((await network.published(**values), values))
    return sent


async def recount(subscribers: list[Subscriber], sent: list[tuple[Message, dict[str, Any]]]) -> int:
    """Wait until everybody has what it should have; raise unless nobody has more. Returns deliveries."""
    expected = [subscriber.expected(sent) for subscriber in subscribers]
    ids = {message.id for message, _ in sent}

    def have_all() -> bool:
        return all(
            wanted <= set(subscriber.client.ids())
            for wanted, subscriber in zip(expected, subscribers, strict=True)
        )

    await until(have_all, 1800.0, "everybody has all")
    await trio.sleep(60)
    total = 0
    for wanted, subscriber in zip(expected, subscribers, strict=True):
        heard = Counter(one for one in subscriber.client.ids() if one in ids)
        assert set(heard) == wanted, "exact"
        total += sum(heard.values())
    assert total == sum(map(len, expected)), "none twice"
    return total


async def replace(network: SmallTree, draw: random.Random, share: float) -> list[Member]:
    """Kill a share of the brokers, the root excepted, and have new ones take their places."""
    gone = draw.sample(network.members[1:], int(share * (len(network.members) - 1)))
    for member in gone:
        await member.stop()
    fresh = {}
    for member in gone:
        fresh[member] = Member(network, f"{member.name}'", member.role, member.parent)
    network.members = [fresh.get(member, member) for member in network.members]
    for member in network.members:
        if member.parent in fresh:
            member.parent = fresh[member.parent]
    await network.list_all()
    for member in fresh.values():
        await member.start()
    return gone


async def tables_of(network: SmallTree) -> tuple[int, int]:
    """Return the rows of all tables of brokers below, and of the root's alone."""
    rows = [len(member.daemon._tables.routes) for member in network.members]
    return sum(rows), rows[0]


async def play(
    brokers: int, clients: int, messages: int, workload: str, covers: bool = True
) -> dict[str, Any]:
    """Let the tree live; return what there is to tell."""
    draw = random.Random(f"{brokers} {clients} {workload}")
    tracer = CountingTracer()
    async with small_tree(rows_of(brokers), tracer=tracer) as network:
        subscribers = [
            Subscriber(
                Client(network, draw.choice(network.edges)),
                [where_of(draw, workload) for _ in range(draw.choice((1, 1, 2, 3)))],
            )
            for _ in range(clients)
        ]
        began = trio.current_time()
        network.nursery.start_soon(show_life, subscribers)
        await subscribe_all(network, subscribers)
        told: dict[str, Any] = {
            "subscribed in (virtual s)": round(trio.current_time() - began, 1),
            "filters of clients": sum(len(set(one.wheres)) for one in subscribers),
            "filters advertised": tracer.filters,
            "advertisements": tracer.frames,
        }
        told["rows"], told["rows at the root"] = await tables_of(network)
        if not covers:
            return told
        told["deliveries before"] = await recount(subscribers, await publish_some(network, draw, messages))
        gone = await replace(network, draw, REPLACED)
        told["brokers replaced"] = len(gone)
        left = [subscriber for subscriber in subscribers if subscriber.client.edge in gone]
        stayed = [subscriber for subscriber in subscribers if subscriber.client.edge not in gone]
        between = await publish_some(network, draw, messages // 3)
        await network.linked(1800.0)
        for subscriber in left:
            subscriber.client = Client(network, draw.choice(network.edges))
        await subscribe_all(network, left)
        for subscriber in stayed:
            if not subscriber.client.is_attached:
                await subscriber.client.attach()
        told["clients that took another edge"] = len(left)
        told["deliveries meanwhile"] = await recount(stayed, between)
        told["deliveries after"] = await recount(subscribers, await publish_some(network, draw, messages))
        await until(lambda: not network.count("internal_errors"), 1.0)
        return told


async def show_life(subscribers: list[Subscriber]) -> None:
    """Keep links from ending as idle, as daemons do."""
    while True:
        await trio.sleep(IDLE / 3)
        for subscriber in subscribers:
            if subscriber.client.is_attached:
                with suppress(TransportError):
                    await subscriber.client.talk.say(Ping())


async def both(
    brokers: int, clients: int, messages: int, workload: str
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Play with covering, and subscribe without."""
    told = await play(brokers, clients, messages, workload)
    with (
        mock.patch.object(hushcast_protocol.brokers.filter_routes, "Poset", Uncovered),
        mock.patch.object(hushcast_protocol.brokers.shown_filters, "Poset", Uncovered),
    ):
        return told, await play(brokers, clients, messages, workload, covers=False)


def main() -> None:
    """Play both workloads and print what there is to tell."""
    from virtual_time import run_in_virtual_time

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("brokers", type=int, nargs="?", default=50)
    parser.add_argument("clients", type=int, nargs="?", default=1000)
    parser.add_argument("messages", type=int, nargs="?", default=100)
    parser.add_argument("--workload", action="append", choices=("uniform", "clustered"))
    options = parser.parse_args()
    for workload in options.workload or ("uniform", "clustered"):
        began = time.process_time()
        told, without = run_in_virtual_time(
            both, options.brokers, options.clients, options.messages, workload
        )
        print(f"{workload}: {options.brokers} brokers, {options.clients} clients")
        for name, value in told.items():
            ratio = (
                f" (without covering {without[name]}: {without[name] / value:.1f} times)"
                if name in without and value
                else ""
            )
            print(f"  {name}: {value}{ratio}")
        print(f"  CPU seconds: {time.process_time() - began:.0f}")


if __name__ == "__main__":
    main()
