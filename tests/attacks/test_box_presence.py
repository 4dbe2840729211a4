"""A relay that sends to a box compares what its host answers, and when, to see whether the owner is there.

What a host answers is a matter of its disk alone: the same frames at the same moments whether the owner is
there, takes what comes or does not, is away, is done with the box, or has one that is full. That is under a
clock on which work takes no time. What a processor works is compared as well, as it is seen over Tor.
"""

from __future__ import annotations

import random
import time
from typing import Any

import pytest
import trio
from owner_end import BODY, TRUNK, OwnerEnd, message
from small_network import Node, SmallNetwork, small_network

from hushcast_protocol.base.crypto.secrets import Seed
from hushcast_protocol.base.wire import encode
from hushcast_protocol.content.messages import Message
from hushcast_protocol.overlay import box_shares
from hushcast_protocol.overlay.frames import Forward, OverlayFrame
from hushcast_runtime.transports.channel import Channel

LONG = 4 * 3600
TRIALS = 1000
WAY = 0.1  # seconds of each stream, one way


Answered = tuple[float, bytes]
"""After how many seconds, and what."""


async def attached(owner: OwnerEnd) -> None:
    pass


async def silent(owner: OwnerEnd) -> None:
    owner.acknowledges = False


async def away(owner: OwnerEnd) -> None:
    await owner.detach()


async def done(owner: OwnerEnd) -> None:
    await owner.forget()


async def done_and_away(owner: OwnerEnd) -> None:
    await owner.forget()
    await owner.detach()


async def full(owner: OwnerEnd) -> None:
    box_shares.MAX_BOX = 3 * BODY  # type: ignore[misc]
    await owner.detach()


STATES = [attached, silent, away, done, done_and_away, full]


class Stranger:
    """One that no roster lists, and that the owner has named."""

    def __init__(self) -> None:
        self.seed = Seed(bytes([7]) * 32)
        self.id = self.seed.public()


async def answers(net: SmallNetwork, child: Seed, host: Node, sent: list[Message]) -> list[Answered]:
    """Send messages as a child does, some of them twice; return what is answered, and after how long."""
    channel: Channel[OverlayFrame] = await net.knock(host, child)
    began = trio.current_time()
    said: list[Answered] = []

    async def read() -> None:
        while batch := await channel.receive():
            said.extend((round(trio.current_time() - began, 6), encode(frame)) for frame in batch)

    async with trio.open_nursery() as nursery:
        nursery.start_soon(read)
        for number, one in enumerate(sent):
            again = [Forward(sent[number - 1])] * (number % 3 == 2)
            await channel.send(Forward(one), *again)
            await trio.sleep(0.4 if number % 5 else 3.1)
        await trio.sleep(60)
        nursery.cancel_scope.cancel()
    await channel.aclose()
    return said


@pytest.mark.slow
@pytest.mark.parametrize("is_listed", [True, False])
async def test_what_a_host_answers_tells_nothing_of_the_owner(
    monkeypatch: pytest.MonkeyPatch, is_listed: bool
) -> None:
    monkeypatch.setattr(box_shares, "MAX_BOX", box_shares.MAX_BOX)
    sent: list[Message] = []
    told: dict[str, Any] = {}
    for state in STATES:
        monkeypatch.setattr(box_shares, "MAX_BOX", 4 * 1024 * 1024)
        async with small_network(relays=3, clients=0, epoch=LONG) as net:
            relay, host, _ = net.relays
            assert relay.identity is not None
            child: Any = relay if is_listed else Stranger()
            seed = relay.identity.seed if is_listed else child.seed
            net.wires.delay = lambda: WAY
            sent = sent or [message(net.calendar.day(net.now)) for _ in range(TRIALS)]
            owner = OwnerEnd(net, host)
            await owner.attach()
            await owner.hold(child, trunk=TRUNK)
            await state(owner)
            told[state.__name__] = await answers(net, seed, host, sent)
            if state is attached:
                assert len(owner.heard) == TRIALS
            if state is full:
                assert host.count("messages_gave_way") == TRIALS - 3
    assert len(told["attached"]) > TRIALS / 2
    assert all(one == told["attached"] for one in told.values()), {
        name: one != told["attached"] for name, one in told.items()
    }


SIDES = {"attached": b"a" * 16, "away": b"b" * 16, "done": b"c" * 16, "full": b"d" * 16}
MEDIAN, SIGMA = 0.04, 0.3  # seconds and spread of a way over Tor, as of the testnet's distances
CRITICAL = 1.36  # of Kolmogorov and Smirnov's statistic, exceeded by chance once in twenty times
LOOKS = 20  # sets of ways with which the same work is looked at


def apart(one: list[float], other: list[float]) -> float:
    """The largest distance of the distributions of two samples of n, times (n/2)^0.5."""
    ranked = sorted([(value, 1) for value in one] + [(value, -1) for value in other])
    reached, most = 0, 0
    for _, side in ranked:
        reached += side
        most = max(most, abs(reached))
    return most / len(one) * (len(one) / 2) ** 0.5


def over_tor(times: list[float], rng: random.Random) -> list[float]:
    """What work took, as it is seen after ways of its own."""
    return [one + rng.lognormvariate(0.0, SIGMA) * MEDIAN for one in times]


@pytest.mark.slow
async def test_what_work_takes_tells_nothing_of_the_owner_over_tor(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(box_shares, "MAX_BOX", 2 * TRIALS * BODY)
    async with small_network(relays=3, clients=0, epoch=LONG) as net:
        relay, host, _ = net.relays
        assert relay.identity is not None
        day = net.calendar.day(net.now)
        owners = {side: OwnerEnd(net, host) for side in SIDES}
        for side, owner in owners.items():
            await owner.attach()
            await owner.hold(relay, trunk=SIDES[side])
        await owners["done"].forget()
        for side in ("away", "full"):
            await owners[side].detach()
        channel: Channel[OverlayFrame] = await net.knock(host, relay.identity.seed)
        while not host.count("messages_gave_way"):
            await channel.send(*(Forward(message(day, SIDES["full"])) for _ in range(50)))
            await channel.receive()
            await trio.sleep(0.2)
        await trio.sleep(10)
        took: dict[str, list[float]] = {side: [] for side in SIDES}
        order, rng = list(SIDES), random.Random(1)
        for _ in range(TRIALS):
            rng.shuffle(order)
            for side in order:
                sent = Forward(message(day, SIDES[side]))
                await trio.sleep(0.2)  # what was there for owners has gone
                began = time.process_time()
                await channel.send(sent)
                await channel.one(60)
                took[side].append(time.process_time() - began)
        await trio.sleep(1)
        assert host.count("messages_gave_way") >= TRIALS
        assert len(owners["attached"].heard) == TRIALS
        for side in ("away", "done", "full"):
            looks = [apart(over_tor(took["attached"], rng), over_tor(took[side], rng)) for _ in range(LOOKS)]
            seen = sum(look > CRITICAL for look in looks)
            assert seen <= 4, (side, looks)  # more by chance once in four hundred times
