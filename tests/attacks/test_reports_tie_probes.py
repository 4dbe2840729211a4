"""A reader of a topic compares the reports of probes, to tell which are one subscriber's, from day to day.

When messages come is a subscriber's own, by its way through the network: where reports tell it, two of one
subscriber agree, and others do not.
"""

from __future__ import annotations

import math
import random
from collections.abc import Iterator
from statistics import pvariance
from typing import Any, NamedTuple

import msgspec
import pytest
import small_network as networks
import trio
from small_network import ONE, Node, SmallNetwork, derive, small_network

from hushcast_protocol.content.bodies import Content, open_body
from hushcast_protocol.content.messages import Message

pytestmark = pytest.mark.slow

EPOCH = 600
READERS = 3
EPOCHS = 8  # half of them before midnight


class Read(NamedTuple):
    """A report as the attacker has it."""

    by: int
    """Whose it is: the truth, which the attacker is to find."""
    at: float
    moments: dict[bytes, float]
    """When each message came, as far as the report tells; 0 where it does not."""


def numbers(found: Any) -> Iterator[float]:
    """All numbers in what stands beside a message's id."""
    if isinstance(found, list | tuple):
        for one in found:
            yield from numbers(one)
    elif isinstance(found, int | float):
        yield found


def read(payload: bytes, at: float, by: int) -> Read:
    """Take from a report all that may tell when messages came, whatever its layout."""
    _, heard = msgspec.msgpack.decode(payload)
    moments = {}
    for one in heard:
        told = next(numbers(one), None)
        moments[next(part for part in one if isinstance(part, bytes))] = 0.0 if told is None else at - told
    return Read(by, at, moments)


def listen_in(net: SmallNetwork, readers: list[Node], found: list[Read]) -> None:
    """Open each probe as its sender drops it."""
    for number, node in enumerate(readers):
        (subscription,) = node.daemon.service.subscriber.subscriptions

        async def tap(message: Message, by: int = number, send: Any = subscription.route.probe) -> bool:
            content = open_body(derive(ONE, net.net.id, message.day), message)
            found.append(read(content.payload, trio.current_time(), by))
            return bool(await send(message))

        subscription.route.probe = tap  # type: ignore[method-assign]


async def collected(start_before_midnight: float) -> list[list[Read]]:
    """Let subscribers probe while somebody publishes; return the reports of each day."""
    found: list[Read] = []
    async with small_network(
        relays=6, clients=READERS + 1, epoch=EPOCH, probes_an_epoch=24.0, late_routes=False, later=14
    ) as net:
        *readers, writer = net.clients
        midnight = net.calendar.day_start(net.calendar.day(net.now) + 1)
        await net.sleep_until(midnight - start_before_midnight)
        for node in readers:
            await node.listen()
        listen_in(net, readers, found)
        rng, end = random.Random(1), trio.current_time() + EPOCHS * EPOCH
        split = trio.current_time() + midnight - net.now
        while trio.current_time() < end:
            await writer.daemon.service.publish(ONE, Content(b"x"))
            await trio.sleep(rng.uniform(30, 120))
    return [[one for one in found if one.at < split], [one for one in found if one.at >= split]]


def tied(reports: list[Read], earlier: list[Read]) -> tuple[int, list[float]]:
    """Name for each report an earlier one that agrees with it best.

    Return how many are right, and how likely each was by drawing: who reports more often is drawn more often.
    """
    dice = random.Random(2)
    right, chances = 0, []
    for place, one in enumerate(reports):
        ranked = []
        for other in [*earlier, *reports[:place]]:
            both = one.moments.keys() & other.moments.keys()
            if len(both) >= 3:
                apart = pvariance([one.moments[name] - other.moments[name] for name in both])
                ranked.append((apart, dice.random(), other))
        if ranked:
            right += min(ranked)[2].by == one.by
            chances.append(sum(other.by == one.by for *_, other in ranked) / len(ranked))
    return right, chances


async def test_reports_of_one_subscriber_agree_no_better_than_others(monkeypatch: Any) -> None:
    monkeypatch.setattr(networks, "SHORTEST_WAY", 0.2)
    monkeypatch.setattr(networks, "LONGEST_WAY", 1.2)
    before, after = await collected(EPOCHS * EPOCH / 2)
    right, chances = tied(before, [])
    assert len(chances) > 40
    deviation = math.sqrt(sum(chance * (1 - chance) for chance in chances))
    assert right < sum(chances) + 4 * deviation, "no better than drawing: chance gives more in one of 30,000"
    named = set().union(*(one.moments for one in before))
    assert sum(bool(one.moments) for one in after) > 40
    assert all(named.isdisjoint(one.moments) for one in after)
