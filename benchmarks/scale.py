"""How far one process goes: real daemons by the ten thousand, with subscriptions that reach all of them.

As a program: `python -m benchmarks.scale [--daemons N] [--shard-size R] [--subscriptions K] [--messages M]`.
With a size of shards a subscription reaches the relays of its topic's shard alone. It is no figure of the
table, for it takes minutes to an hour; what came out is in `docs/performance.md`.
"""

from __future__ import annotations

import argparse
import gc
import json
import resource
import sys
import time
from dataclasses import dataclass, field
from statistics import fmean

import trio
import trio.testing

from benchmarks.cut_daemons import CutDaemons
from benchmarks.processes import resident
from benchmarks.relay.memory import Daemons
from hushcast_local.service import InboxFeed
from hushcast_protocol.base.roster import MAX_RELAYS
from hushcast_protocol.base.shard_count import MIN_SHARD_SIZE, SHARD_SIZE, bits_for
from hushcast_protocol.content.bodies import Content
from hushcast_protocol.content.topics import Interest, Topic, parse_topic
from hushcast_runtime.logs import configure_logs
from hushcast_runtime.transports.memory import CallAt
from hushcast_testnet.simulations.clock_calls import ClockCalls
from hushcast_testnet.simulations.told_relays import told_relays

ARRIVE_WITHIN = 600.0  # virtual seconds
SETTLED_AFTER = 450.0  # virtual seconds; links that nobody keeps are closed by then


@dataclass
class _Clock:
    """What one kind of event cost: CPU seconds, and how many there were."""

    began: float = field(default_factory=time.process_time)

    def microseconds(self, events: int) -> float:
        return round((time.process_time() - self.began) / max(events, 1) * 1e6, 1)


def _progress(what: str) -> None:
    """Tell on stderr how far it is: the largest run takes most of an hour."""
    print(f"{time.process_time():6.0f} s of CPU, {_most()} MB at most: {what}", file=sys.stderr, flush=True)


def _most() -> int:
    """Return the most memory that this process ever took, in MB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 // 10**6


async def _measure(
    count: int, shard_size: int, subscriptions: int, messages: int, call_at: CallAt
) -> dict[str, object]:
    before, is_cut = resident(), bits_for(count, shard_size) > 0
    daemons = CutDaemons(count, shard_size, call_at) if is_cut else Daemons(count, call_at)
    can_join = is_cut or count <= MAX_RELAYS
    if can_join:
        daemons.sign()
    async with trio.open_nursery() as nursery:
        clock = _Clock()
        await daemons.start(nursery)
        starting, idle = clock.microseconds(count), (resident() - before) / count
        _progress(f"{count} daemons run")
        joined = await _join(daemons, nursery) if can_join else None
        topics = [parse_topic(f"topic {number}") for number in range(subscriptions)]
        clock = _Clock()
        feeds = []
        for number, topic in enumerate(topics):
            subscriber = daemons.held[number * count // subscriptions]
            feeds.append(await subscriber.service.subscribe(Interest(topic)))
            feeds[-1].nodes = await told_relays(subscriber, Interest(topic))
            _progress(f"subscription {number + 1} of {subscriptions} reaches {feeds[-1].nodes}")
        installing = clock.microseconds(sum(feed.nodes for feed in feeds))
        await trio.sleep(SETTLED_AFTER)
        settled = (resident() - before) / count
        _progress("links have settled")
        held = [daemon.status()["leases"] for daemon in daemons.held]
        delivery = await _deliver(daemons, topics, feeds, messages)
        figures = {
            "daemons": count,
            "subscriptions": subscriptions,
            "shards": 2 ** bits_for(count, shard_size),
            "nodes": fmean(feed.nodes for feed in feeds) if feeds else 0,
            "leases": sum(held),
            "leases a relay": {"least": min(held), "mean": fmean(held), "most": max(held)},
            "ends of links": sum(daemon.status()["links"] for daemon in daemons.held),
            "kB a daemon": round(settled / 1000, 1),
            "kB an idle daemon": round(idle / 1000, 1),
            "MB at most": _most(),
            "µs to start one": starting,
            "µs to install one lease": installing,
            **delivery,
            "a client joins": joined,
            "CPU s": round(time.process_time()),
        }
        nursery.cancel_scope.cancel()
    return figures


async def _deliver(
    daemons: Daemons, topics: list[Topic], feeds: list[InboxFeed], messages: int
) -> dict[str, float]:
    """Return how many messages arrive, each topic's in turn, and what sending them takes."""
    publisher = daemons.held[1]
    for topic, feed in zip(topics, feeds, strict=True):  # a publisher's first message derives a key
        await publisher.service.publish(topic, Content(b"first"))
        await feed.next()
    clock, sent = _Clock(), daemons.counted("messages_sent")
    for number in range(messages):
        await publisher.service.publish(topics[number % len(topics)], Content(bytes(1024)))
    delivered = 0
    with trio.move_on_after(ARRIVE_WITHIN):
        for number in range(messages):
            await feeds[number % len(feeds)].next()
            delivered += 1
    transmissions = daemons.counted("messages_sent") - sent
    return {
        "published": messages,
        "delivered": delivered,
        "transmissions": transmissions,
        "µs a transmission": clock.microseconds(transmissions),
    }


async def _join(daemons: Daemons, nursery: trio.Nursery) -> dict[str, float]:
    """Return what the first subscription of a client that has just come takes.

    The client checks all itself. The CPU is of the whole process: its own, and that of all whom it asks.
    """
    clock, began = time.process_time(), trio.current_time()
    client = await daemons.join(nursery)
    interest = Interest(parse_topic("joined"))
    feed = await client.service.subscribe(interest)
    feed.nodes = await told_relays(client, interest)
    found = {
        "bytes fetched": client.counters["bytes_fetched"],
        "seals": feed.nodes,
        "virtual s": round(trio.current_time() - began, 1),
        "CPU s": round(time.process_time() - clock, 2),
    }
    feed.close()
    return found


def main() -> None:
    """Measure and print one object."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.scale", description=__doc__)
    parser.add_argument("--daemons", type=int, default=10_000)
    parser.add_argument("--shard-size", type=int, metavar="RELAYS", help=f"{MIN_SHARD_SIZE} to {SHARD_SIZE}")
    parser.add_argument("--subscriptions", type=int, default=100)
    parser.add_argument("--messages", type=int, default=100)
    asked = parser.parse_args()
    if asked.shard_size is not None and not MIN_SHARD_SIZE <= asked.shard_size <= SHARD_SIZE:
        parser.error(f"daemons refuse shards of {asked.shard_size} relays: {MIN_SHARD_SIZE} to {SHARD_SIZE}")
    configure_logs("error", False)
    gc.set_threshold(100_000, 50, 1000)
    clock = trio.testing.MockClock(autojump_threshold=0)
    size = asked.shard_size or sys.maxsize
    call_at = ClockCalls(clock).call_at
    found = trio.run(_measure, asked.daemons, size, asked.subscriptions, asked.messages, call_at, clock=clock)
    print(json.dumps(found))


if __name__ == "__main__":
    main()
