"""What waits at a top relay for a host follows its lease to the next one: its own, and no other's."""

from __future__ import annotations

import os
from dataclasses import dataclass, field

import pytest
import trio
from msgspec.structs import replace
from owner_end import TRUNK, OwnerEnd, card_of, drop, message
from small_network import Node, SmallNetwork, small_network, until

from hushcast_overlay.relay import moved_messages
from hushcast_protocol.content.messages import Message
from hushcast_protocol.overlay.elements import ORIGIN, element
from hushcast_protocol.overlay.hops import host_hop
from hushcast_protocol.overlay.host_cards import HostCard
from hushcast_protocol.overlay.late_routes import WAIT
from hushcast_protocol.overlay.leases import Install, ToHost, ToRelay, lease_mark
from hushcast_runtime.storage import spool as spools

LONG = 4 * 3600


@dataclass
class Seat:
    """A lease at a top relay, as the owner of a box has it installed."""

    net: SmallNetwork
    top: Node
    trunk: bytes = TRUNK
    lease: bytes = field(default_factory=lambda: os.urandom(16))
    bypass: bytes = field(default_factory=lambda: os.urandom(16))

    async def leads_to(self, hop: HostCard | Node) -> None:
        relay = self.top.daemon.overlay.relay
        assert relay is not None
        elements = (element(self.net.profile, self.trunk, self.top.id, ORIGIN),)
        day, mark = self.net.calendar.day(self.net.now), lease_mark(self.trunk, self.top.id)
        next_hop = ToRelay(hop.id) if isinstance(hop, Node) else ToHost(hop)
        lease = await relay.leases.install(
            Install(self.lease, day, next_hop, elements, mark, self.bypass), paid=True
        )
        relay.moved.took(lease)


def share(node: Node, host: Node) -> int:
    """How many bytes wait at a relay for a host."""
    assert node.daemon.overlay.relay is not None
    return node.daemon.overlay.relay.peers._spool.shares.get(host_hop(host.id), 0)


def many(net: SmallNetwork, count: int, trunk: bytes = TRUNK) -> list[Message]:
    return [message(net.calendar.day(net.now), trunk) for _ in range(count)]


async def test_what_waits_for_a_dead_host_goes_to_the_next_one_and_nothing_else_does() -> None:
    async with small_network(relays=3, clients=0, epoch=LONG) as net:
        top, first, second = net.relays
        card, other = card_of(first), b"o" * 16
        mine, its = Seat(net, top), Seat(net, top, other)
        await mine.leads_to(card)
        await its.leads_to(card)
        owner, stranger = OwnerEnd(net, second), OwnerEnd(net, second)
        await owner.attach()
        await owner.hold(top)
        await stranger.attach()
        await stranger.hold(top, trunk=other)
        await first.stop()
        sent, left = many(net, 20), many(net, 5, other)
        await drop(net, top, *sent, *left)
        assert owner.heard == []
        await mine.leads_to(card_of(second))
        await owner.hears(*sent)
        await trio.sleep(60)
        assert len(owner.heard) == len(sent), "each once"
        assert stranger.heard == []
        assert top.count("messages_moved") == len(sent)
        assert share(top, first) == sum(len(one.body) for one in left), "what is another lease's waits"
        assert top.daemon.overlay.relay is not None
        assert top.daemon.overlay.relay.leases.book.moves.left() == []


async def test_who_knows_a_topic_takes_nothing_away_from_others_of_it() -> None:
    async with small_network(relays=3, clients=0, epoch=LONG) as net:
        top, first, second = net.relays
        card, honest, hostile = card_of(first), Seat(net, top), Seat(net, top)
        owner = OwnerEnd(net, first)
        await owner.attach()
        await owner.hold(top)
        await owner.detach()
        await honest.leads_to(card)
        await hostile.leads_to(card)
        await first.stop()
        await drop(net, top, *(sent := many(net, 20)))
        for _ in range(3):
            await hostile.leads_to(card_of(second))
            await trio.sleep(5)
            await hostile.leads_to(card)
            await trio.sleep(5)
        await top.restart()
        assert share(top, first) == sum(len(one.body) for one in sent)
        await first.start()
        await owner.attach()
        await owner.hears(*sent)


async def test_a_host_that_was_a_top_relay_itself_has_what_waited_there_in_the_box() -> None:
    async with small_network(relays=2, clients=0, epoch=LONG) as net:
        second, first = net.relays
        mine, its = Seat(net, second), Seat(net, second)
        for seat in (mine, its):
            await seat.leads_to(card_of(first))
        await first.stop()
        await drop(net, second, *(sent := many(net, 10)))
        await trio.sleep(WAIT + 10)  # nothing waits for late routes any more
        owner, stranger = OwnerEnd(net, second), OwnerEnd(net, second)
        await stranger.attach()
        await stranger.hold()
        await owner.attach()
        hold = owner.hold_of()
        bypass = element(net.profile, mine.bypass, second.id, ORIGIN)
        assert await owner.ask(replace(hold, elements=(*hold.elements, bypass))) is None
        await owner.hears(*sent)
        await trio.sleep(60)
        assert len(owner.heard) == len(sent)
        assert stranger.heard == [], "the same topic, and another installation"
        await second.restart()
        await owner.attach()
        await trio.sleep(60)
        assert owner.ids == {one.id for one in sent}


async def test_a_lease_that_leads_to_a_relay_now_takes_along_what_waits() -> None:
    async with small_network(relays=3, clients=0, epoch=LONG) as net:
        top, first, above = net.relays
        mine, higher = Seat(net, top), Seat(net, above)
        await mine.leads_to(card_of(first))
        await first.stop()
        await drop(net, top, *(sent := many(net, 10)))
        await mine.leads_to(above)
        await until(lambda: above.count("messages_received") >= len(sent), 60)
        assert share(top, first) == 0
        del higher


@pytest.mark.slow
@pytest.mark.parametrize("seed", [0, 1, *(pytest.param(seed, marks=pytest.mark.soak) for seed in (2, 3))])
async def test_nothing_is_lost_at_whichever_moment_the_top_relay_is_killed(
    monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    monkeypatch.setattr(moved_messages, "READ_A_SECOND", 64 * 1024)
    async with small_network(relays=3, clients=0, epoch=LONG, seed=seed) as net:
        top, first, second = net.relays
        mine, its = Seat(net, top), Seat(net, top)
        cards = card_of(first), card_of(second)
        owner, other = OwnerEnd(net, second), OwnerEnd(net, first)
        await owner.attach()
        await owner.hold(top)
        await other.attach()
        await other.hold(top)
        await other.detach()
        await mine.leads_to(cards[0])
        if seed % 2:
            await its.leads_to(cards[0])
        await first.stop()
        await drop(net, top, *(sent := many(net, 400)))
        await mine.leads_to(cards[1])
        for _ in range(12):
            await trio.sleep(net.env.uniform(0.0, 1.0))
            await top.restart()
        await owner.hears(*sent, within=600)
        await trio.sleep(60)
        assert share(top, first) == (sum(len(one.body) for one in sent) if seed % 2 else 0)
        await first.start()
        await other.attach()
        if seed % 2:
            await other.hears(*sent)


async def test_what_the_next_host_has_no_room_for_waits_until_it_has(monkeypatch: pytest.MonkeyPatch) -> None:
    async with small_network(relays=3, clients=0, epoch=LONG) as net:
        top, first, second = net.relays
        card, cards = card_of(first), card_of(second)
        owner = OwnerEnd(net, second)
        await owner.attach()
        await owner.hold(top)
        mine, its = Seat(net, top), Seat(net, top, b"o" * 16)
        await its.leads_to(cards)
        await mine.leads_to(card)
        await first.stop()
        await drop(net, top, *(sent := many(net, 10)))
        await second.stop()
        monkeypatch.setattr(spools, "MAX_SHARE", 15_000)
        await drop(net, top, *many(net, 8, b"o" * 16))
        await mine.leads_to(cards)
        await trio.sleep(200)
        await top.restart()
        assert share(top, first) > 0
        await second.start()
        await owner.attach()
        await owner.hears(*sent)
        await trio.sleep(100)
        assert len(owner.heard) == len(sent)
        assert share(top, first) == 0
