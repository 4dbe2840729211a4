"""A stranger attaches as the owner of a box, to read another's, to speak as relays do, or to take all room.

Whoever has a key may open a link under it. What it may say there is what any stranger may hand in, at the
same price, and what its own box needs.
"""

from __future__ import annotations

import os
from typing import Any

import pytest
import trio
from core_examples import host_card
from owner_end import BODY, OwnerEnd, drop, message
from small_network import Node, SmallNetwork, small_network, until

from hushcast_overlay.relay.boxes import kept_boxes
from hushcast_overlay.relay.boxes.box_links import MAX_OWNERS_REQUESTS
from hushcast_protocol.base.crypto.proof_of_work import MAX_INSIDE, mint
from hushcast_protocol.base.crypto.secrets import Seed
from hushcast_protocol.base.errors import AuthenticationError
from hushcast_protocol.base.link.links import Link
from hushcast_protocol.base.wire import Wire
from hushcast_protocol.overlay import box_shares, leases
from hushcast_protocol.overlay.box_frames import BoxStanding, HoldAnswer, held_out, hold_price
from hushcast_protocol.overlay.frames import (
    MAX_OVERLAY_FRAME,
    Ack,
    Drop,
    Forward,
    ParcelAnswer,
    ParcelFrame,
    Ping,
    Receipt,
    decode_overlay,
)
from hushcast_protocol.overlay.leases import Install, ToRelay
from hushcast_protocol.overlay.parcels import Parcel, seal_parcel
from hushcast_protocol.shards.shard_requests import AskSlice
from hushcast_runtime.transports import connection_guard
from hushcast_runtime.transports.base import TransportError
from hushcast_runtime.transports.channel import open_channel

LONG = 4 * 3600

SAID: dict[str, Wire] = {
    "forward": Forward(message(1)),
    "ping": Ping(),
    "parcel answer": ParcelAnswer(1, None, ()),
    "drop": Drop(message(1), None),
    "receipt": Receipt("accepted"),
    "question": AskSlice(1, 0),
    "standing": BoxStanding((), 0, host_card(0), bytes(32), 0),
    "hold answer": HoldAnswer(1, None),
    "unrouted": Ack(0, (1,)),
    "ack of what was not sent": Ack(1, ()),
}


class Pretender:
    """A key of the attacker's, which says that it is another's."""

    def __init__(self, claimed: bytes) -> None:
        self._own = Seed(os.urandom(32))
        self._claimed = claimed

    def public(self) -> bytes:
        return self._claimed

    def __getattr__(self, name: str) -> Any:
        return getattr(self._own, name)


async def refused_link(net: SmallNetwork, host: Node, us: Any) -> bool:
    """Tell whether a host ends a link of this identity without a word."""
    link = Link.initiate(net.net.id, host.id, os.urandom, MAX_OVERLAY_FRAME, us)
    channel, _ = await open_channel(
        net.wires.transport(), net.directory_entry(host), "test", link, decode_overlay
    )
    try:
        with trio.fail_after(5):
            return await channel.receive() == []
    except (TransportError, AuthenticationError):
        return True


async def test_nobody_attaches_with_a_key_that_is_not_theirs() -> None:
    async with small_network(relays=2, clients=0, epoch=LONG) as net:
        host = net.relays[0]
        owner, one = OwnerEnd(net, host), message(net.calendar.day(net.now))
        await owner.attach()
        await owner.hold()
        assert await refused_link(net, host, Pretender(owner.box))
        assert owner.links_ended == 0
        await drop(net, host, one)
        await owner.hears(one)


@pytest.mark.parametrize("has_box", [False, True])
@pytest.mark.parametrize("what", SAID)
async def test_an_owner_says_four_things_and_nothing_else(what: str, has_box: bool) -> None:
    async with small_network(relays=2, clients=0, epoch=LONG) as net:
        host = net.relays[0]
        owner = OwnerEnd(net, host)
        await owner.attach()
        if has_box:
            await owner.hold()
        await owner.say(Ack(0, ()))
        await owner.say(SAID[what])
        await until(lambda: owner.links_ended == 1, 5, "the link ends")
        assert host.count("refused_form") == 1
        assert host.count("messages_received") == host.count("messages_dropped_here") == 0


async def test_a_lease_of_anothers_is_not_taken_over() -> None:
    async with small_network(relays=2, clients=0, epoch=LONG) as net:
        host, other = net.relays
        victim, thief = OwnerEnd(net, host), OwnerEnd(net, host)
        await victim.attach()
        await thief.attach()
        lease = await victim.hold()
        assert await thief.ask(thief.hold_of(lease=lease)) == "form"
        assert (await thief.attach()).leases == ()
        day, draw = net.calendar.day(net.now), os.urandom
        install = Install(lease, day, ToRelay(other.id), (draw(16),), draw(16), draw(16))
        assert host.identity is not None
        assert host.daemon.overlay.relay is not None
        parcel = Parcel(net.net.id, host.id, net.calendar.epoch(net.now), install, 0, (), draw(16))
        sealed = seal_parcel(parcel, host.identity.parcel_key.public(), draw)
        await thief.say(ParcelFrame(1, sealed, None))
        await until(lambda: ParcelAnswer(1, "form", ()) in thief.answers, 5)
        book = host.daemon.overlay.relay.leases.book
        stolen = Install(draw(16), day, ToRelay(other.id), (draw(16),), draw(16), draw(16))
        book.install(stolen, net.now)
        assert await thief.ask(thief.hold_of(lease=stolen.lease)) == "form"
        assert {held.id for held in book.leases()} == {lease, stolen.lease}
        one = message(day)
        await drop(net, host, one)
        await victim.hears(one)
        assert thief.heard == []


async def test_a_box_has_so_many_leases_and_they_are_of_days_that_may_be_installed() -> None:
    async with small_network(relays=2, clients=0, epoch=LONG) as net:
        owner, day = OwnerEnd(net, net.relays[0]), net.calendar.day(net.now)
        await owner.attach()
        assert await owner.ask(owner.hold_of(day=day + 2)) == "day"
        assert await owner.ask(owner.hold_of(day=day - 1)) == "day"
        held = [await owner.hold(trunk=os.urandom(16)) for _ in range(leases.MAX_BOX_LEASES)]
        assert await owner.ask(owner.hold_of(trunk=os.urandom(16))) == "quota"
        assert await owner.hold(trunk=os.urandom(16), lease=held[0]) == held[0]
        assert (await owner.attach()).leases == tuple(sorted(held))


async def test_whoever_pays_nothing_leaves_half_of_the_boxes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kept_boxes, "MAX_BOXES", 8)
    async with small_network(relays=2, clients=0) as net:
        host = net.relays[0]
        owners = [OwnerEnd(net, host) for _ in range(5)]
        for owner in owners[:4]:
            await owner.attach()
            await owner.hold()
        late = owners[4]
        await late.attach()
        assert await late.ask(late.hold_of()) == "quota"
        shards = host.daemon.overlay.shards
        await until(lambda: shards.least_price(host.id) == MAX_INSIDE, 4 * net.epoch, "it has a price")
        await late.attach()
        assert await late.ask(late.hold_of()) in ("stamp", "quota")
        frame = late.hold_of()
        bits, epoch = hold_price(frame, MAX_INSIDE), net.calendar.epoch(net.now)
        stamp = mint(host.id, epoch, held_out(frame), bits, os.urandom)
        paid = type(frame)(frame.number, frame.lease, frame.day, frame.elements, frame.children, stamp)
        assert await late.ask(paid) is None
        again = type(frame)(9, os.urandom(16), frame.day, frame.elements, frame.children, stamp)
        assert await late.ask(again) in ("stamp", None), "a stamp is for one hold"


async def test_a_box_that_is_full_gives_way_and_tells(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(box_shares, "MAX_BOX", 5 * BODY)
    async with small_network(relays=2, clients=0, epoch=LONG) as net:
        host = net.relays[0]
        owner = OwnerEnd(net, host)
        await owner.attach()
        await owner.hold()
        await owner.detach()
        sent = [message(net.calendar.day(net.now)) for _ in range(8)]
        await drop(net, host, *sent)
        await until(lambda: host.count("messages_gave_way") == 3, 5)
        await host.restart()
        assert (await owner.attach()).gave_way == 3
        await owner.hears(*sent[3:])
        assert owner.ids == {one.id for one in sent[3:]}
        await owner.detach()
        await drop(net, host, *(message(net.calendar.day(net.now)) for _ in range(6)))
        assert (await owner.attach()).gave_way == 4


async def test_strangers_who_fill_a_host_take_nothing_from_a_small_box(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(box_shares, "MAX_BOX", 20 * BODY)
    monkeypatch.setattr(box_shares, "MAX_ALL_BOXES", 40 * BODY)
    async with small_network(relays=2, clients=0, epoch=LONG) as net:
        host = net.relays[0]
        day = net.calendar.day(net.now)
        owner, sent = OwnerEnd(net, host), [message(day) for _ in range(8)]
        strangers = [OwnerEnd(net, host) for _ in range(3)]
        for one in (owner, *strangers):
            await one.attach()
        await owner.hold()
        await owner.detach()
        await drop(net, host, *sent)
        for stranger in strangers:
            await stranger.hold(trunk=b"s" * 16)
            await stranger.detach()
        await drop(net, host, *(message(day, b"s" * 16) for _ in range(30)))
        assert host.count("messages_gave_way") > 30
        await owner.attach()
        await owner.hears(*sent)


async def test_keys_that_hold_nothing_take_strangers_places(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection_guard, "MAX_STRANGERS", 8)
    async with small_network(relays=2, clients=0, epoch=LONG) as net:
        host = net.relays[0]
        owner = OwnerEnd(net, host)
        await owner.attach()
        await owner.hold()
        idle = [OwnerEnd(net, host) for _ in range(12)]
        for one in idle:
            await one.attach()
        await trio.sleep(1)
        assert sum(one.links_ended for one in idle) == 4
        assert host.daemon.overlay.relay is not None
        assert len(host.daemon.overlay.relay.box_links) == 9
        await trio.sleep(61)
        assert all(one.links_ended == 1 for one in idle)
        assert owner.links_ended == 0
        one = message(net.calendar.day(net.now))
        await drop(net, host, one)
        await owner.hears(one)


@pytest.mark.slow
async def test_a_full_box_keeps_nobody_waiting() -> None:
    """It is filled with the smallest messages, fetched, and deleted at once: each in short steps."""
    async with small_network(relays=2, clients=0, epoch=LONG) as net:
        host, child = net.relays
        owner = OwnerEnd(net, host, acknowledges=False)
        await owner.attach()
        await owner.hold(child)
        await owner.detach()
        assert child.identity is not None
        channel = await net.knock(host, child.identity.seed)
        count = box_shares.MAX_BOX // BODY + 100
        day = net.calendar.day(net.now)
        for _ in range(0, count, 128):
            await channel.send(*(Forward(message(day)) for _ in range(128)))
        await until(lambda: host.count("messages_received") >= count, 600)
        await until(lambda: host.count("messages_gave_way") > 0, 60)
        assert owner.waiting() <= box_shares.MAX_BOX
        await owner.attach()
        await until(lambda: len(owner.heard) > 300, 60, "a window full")
        await owner.forget()
        assert owner.waiting() == 0
        assert await owner.spooled() == []


async def test_who_takes_no_answers_is_given_up() -> None:
    async with small_network(relays=2, clients=0, epoch=LONG) as net:
        host = net.relays[0]
        greedy, lazy = OwnerEnd(net, host), OwnerEnd(net, host)
        for one in (greedy, lazy):
            await one.attach()
            await one.hold()
        links = host.daemon.overlay.relay.box_links  # type: ignore[union-attr]
        for one in (greedy, lazy):  # a circuit that takes nothing more
            await links._links[one.box].writer.channel.send()
            links._links[one.box].writer.channel._sending = trio.Event()
        await greedy.say(*(greedy.hold_of(day=0) for _ in range(MAX_OWNERS_REQUESTS + 1)))
        await until(lambda: greedy.links_ended == 1, 5, "more than may be asked at once")
        await lazy.say(lazy.hold_of(day=0))
        for _ in range(10):
            await trio.sleep(60)
            if not lazy.links_ended:
                await lazy.say(Ack(0, ()))
        assert lazy.links_ended == 1
        assert lazy.waiting() == 0
        assert len(links) == 0
