"""Boxes over restarts at any moment: what had a receipt comes, once the owner is back."""

from __future__ import annotations

from contextlib import suppress

import pytest
import trio
from owner_end import OwnerEnd, drop, leads_to, message
from small_network import EPOCH_SECONDS, SmallNetwork, small_network, until

from hushcast_protocol.base.record_kinds import RecordKind
from hushcast_protocol.content.messages import Message
from hushcast_runtime.storage.store import MemoryStore, Store
from hushcast_runtime.transports.base import TransportError

LONG = 4 * 3600


async def come_and_go(owner: OwnerEnd) -> None:
    """Attach and leave again, at any moment."""
    env = owner.net.env
    while True:
        await trio.sleep(env.uniform(0.0, 2.0))
        is_there = owner.links_ended < len(owner.standings)
        if is_there and env.below(3) == 0:
            await owner.detach()
        elif not is_there and owner.host.is_up:
            with suppress(TransportError, AssertionError):  # the host dies meanwhile
                await owner.attach()


async def publish(net: SmallNetwork, sent: list[Message]) -> None:
    """Drop messages at the first relay, each until there is a receipt."""
    top = net.relays[0]
    for one in sent:
        await trio.sleep(net.env.uniform(0.0, 1.0))
        while True:
            with suppress(TransportError, AssertionError):
                await until(lambda: top.is_up, 20)
                await drop(net, top, one)
                break
            await trio.sleep(1)


@pytest.mark.slow
@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.soak) for seed in range(1, 3))])
async def test_what_has_a_receipt_comes_whoever_is_restarted_when(seed: int) -> None:
    async with small_network(relays=3, clients=0, epoch=LONG, seed=seed) as net:
        top, host, _ = net.relays
        owner = OwnerEnd(net, host)
        await owner.attach()
        lease = await owner.hold(top)
        await leads_to(net, top, host)
        sent = [message(net.calendar.day(net.now)) for _ in range(40)]

        async def restarts() -> None:
            while True:
                await trio.sleep(net.env.uniform(0.0, 6.0))
                await (host, top, host)[net.env.below(3)].restart()

        async with trio.open_nursery() as nursery:
            nursery.start_soon(restarts)
            nursery.start_soon(come_and_go, owner)
            await publish(net, sent)
            await trio.sleep(5)
            nursery.cancel_scope.cancel()
        for node in (top, host):
            if not node.is_up:
                await node.start()
        assert [one.leases for one in owner.standings] == [()] + [(lease,)] * (len(owner.standings) - 1)
        assert len(owner.standings) > 10
        standing = await owner.attach()
        assert (standing.leases, standing.gave_way) == ((lease,), 0)
        await owner.hears(*sent, within=300)
        await until(lambda: owner.waiting() == 0, 60)


async def test_the_last_second_of_a_day_and_the_first_of_the_next() -> None:
    async with small_network(relays=2, clients=0, later=16) as net:
        host = net.relays[0]
        day = net.calendar.day(net.now)
        owner, last, first = OwnerEnd(net, host), message(day), message(day + 1)
        await owner.attach()
        await owner.hold()
        midnight = net.calendar.day_start(day + 1)
        await net.sleep_until(midnight - 3 * EPOCH_SECONDS)
        await owner.hold(day=day + 1)
        await net.sleep_until(midnight - 0.5)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(drop, net, host, last)
            await trio.sleep(0.6)
            nursery.start_soon(drop, net, host, first)
        await owner.hears(last, first)
        assert len((await owner.attach()).leases) == 2
        await net.sleep_until(midnight + 2 * EPOCH_SECONDS)
        assert len((await owner.attach()).leases) == 1


class SlowBoxes(MemoryStore):
    """A store that takes a while to find which boxes there are."""

    def __init__(self, before: Store) -> None:
        super().__init__()
        assert isinstance(before, MemoryStore)
        self._records = before._records

    async def scan(
        self, kind: RecordKind, prefix: bytes = b"", after: bytes | None = None, limit: int = -1
    ) -> list[tuple[bytes, bytes]]:
        if kind == "box":
            await trio.sleep(60)
        return await super().scan(kind, prefix, after, limit)


async def test_nothing_is_sent_before_boxes_are_counted() -> None:
    """They are counted in steps, between which nothing may be acknowledged: that ended the start."""
    async with small_network(relays=2, clients=0, epoch=LONG) as net:
        relay, other = net.relays
        owner, day = OwnerEnd(net, relay), net.calendar.day(net.now)
        await owner.attach()
        await owner.hold()
        await owner.detach()
        await leads_to(net, relay, other, trunk=b"o" * 16)
        await other.stop()
        await drop(net, relay, one := message(day), two := message(day, trunk=b"o" * 16))
        await relay.stop()
        await other.start()
        relay.store = SlowBoxes(relay.store)
        received = other.count("messages_received")
        async with trio.open_nursery() as nursery:
            nursery.start_soon(relay.start)
            await trio.sleep(59)
            assert other.count("messages_received") == received
        await until(lambda: other.count("messages_received") > received, 60)
        await owner.attach()
        await owner.hears(one)
        assert two.id not in owner.ids
