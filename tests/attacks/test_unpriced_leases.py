"""A stranger has relays pass on installs for another, thousands in a few parcels, at no price there.

He wants the room for leases, kept for two days, or the filter towards one next hop, so that
honest subscriptions find none.
"""

from __future__ import annotations

import os

import pytest
from small_network import ONE, Node, SmallNetwork, small_network, until

from hushcast_protocol.base.crypto.proof_of_work import MAX_INSIDE, ProofOfWork, mint
from hushcast_protocol.base.epochs import Calendar
from hushcast_protocol.content.bodies import Content
from hushcast_protocol.overlay import leases, parcels
from hushcast_protocol.overlay.frames import ParcelAnswer
from hushcast_protocol.overlay.leases import MAX_ELEMENTS, Install, LeaseBook, ToRelay
from hushcast_protocol.overlay.parcels import OnwardParcel, Parcel, instructed, price, seal_parcel

ROOM = 40
BITS = MAX_INSIDE  # asked for where half of the room is taken


def an_install(net: SmallNetwork, hop: Node) -> Install:
    draw = net.env.randomness
    return Install(draw(16), net.calendar.day(net.now) + 1, ToRelay(hop.id), (draw(16),), draw(16), draw(16))


def sealed_to(
    net: SmallNetwork,
    relay: Node,
    install: Install,
    stamp: ProofOfWork | None = None,
    below: tuple[OnwardParcel, ...] = (),
) -> bytes:
    assert relay.identity is not None
    epoch, word = net.calendar.epoch(net.now), net.env.randomness(16)
    parcel = Parcel(net.net.id, relay.id, epoch, install, 20, below, word, stamp)
    return seal_parcel(parcel, relay.identity.parcel_key.public(), net.env.randomness)


async def passed_on(relay: Node, sealed: bytes, previous: Node) -> ParcelAnswer:
    """Have a relay hand in what it was given; it looks at it as little as an honest one can."""
    assert relay.daemon.overlay.relay is not None
    return await relay.daemon.overlay.relay.parcels.take(sealed, previous.id)


def held(relay: Node) -> int:
    assert relay.daemon.overlay.relay is not None
    return len(relay.daemon.overlay.relay.leases.book)


async def fill(net: SmallNetwork, relay: Node, previous: Node, hop: Node) -> int:
    """Install without a stamp until nothing more is taken; return how many were."""
    taken = 0
    while (await passed_on(relay, sealed_to(net, relay, an_install(net, hop)), previous)).refused is None:
        taken += 1
    return taken


def asked(net: SmallNetwork, relay: Node) -> int:
    """What subscribers pay at a relay now, by the roster of the epoch that runs: bits."""
    listed = net.clients[0].daemon.overlay.shards.relay(relay.id)
    assert listed is not None
    return listed.difficulty


async def test_one_parcel_brings_one_install_to_a_relay() -> None:
    async with small_network(relays=3, clients=0) as net:
        relay, through, hop = net.relays
        below = tuple(OnwardParcel(relay.id, sealed_to(net, relay, an_install(net, hop))) for _ in range(256))
        answer = await passed_on(through, sealed_to(net, through, an_install(net, hop), None, below), hop)
        assert answer.refused == "form"
        assert held(relay) == held(through) == 0


async def test_whoever_pays_nothing_leaves_half_and_honest_subscriptions_pay_for_theirs(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(leases, "MAX_LEASES", ROOM)
    async with small_network(relays=3, clients=2, origins=1) as net:
        relay, through, hop = net.relays
        early = await net.clients[0].listen()
        assert await fill(net, relay, through, hop) == ROOM // 2 - 1
        listed = net.clients[1].daemon.overlay.shards
        await until(lambda: listed.least_price(relay.id) == BITS, 4 * net.epoch, "the price is known")
        await until(lambda: held(relay) < ROOM, 1.0)
        assert await fill(net, relay, through, hop) == 0
        late = await net.clients[1].listen()
        await until(lambda: held(relay) == ROOM // 2 + 1, 2 * net.epoch, "who pays finds room")
        for ear in (early, late):
            ear.heard.clear()
        await net.clients[0].daemon.service.publish(ONE, Content(b"heard by both"))
        await early.hears(1)
        await late.hears(1)
        assert net.count("internal_errors") == 0


async def test_a_stamp_inside_serves_once_for_one_instruction_at_one_relay(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(leases, "MAX_LEASES", ROOM)
    async with small_network(relays=3, clients=0) as net:
        relay, through, hop = net.relays
        await fill(net, relay, through, hop)
        await until(lambda: relay.daemon.overlay.shards.least_price(relay.id) == BITS, 4 * net.epoch)
        install, other = an_install(net, hop), an_install(net, hop)
        epoch, draw = net.calendar.epoch(net.now), net.env.randomness
        bits = price(install, BITS)
        bought = mint(relay.id, epoch, instructed(install), 18, draw)  # no other relay takes it by chance
        assert bits == BITS
        elsewhere = mint(hop.id, epoch, instructed(install), 18, draw)
        for wrong in (sealed_to(net, relay, other, bought), sealed_to(net, relay, install, elsewhere)):
            assert (await passed_on(relay, wrong, through)).refused == "quota"
        before = held(relay)
        assert (await passed_on(relay, sealed_to(net, relay, install, bought), through)).refused is None
        assert held(relay) == before + 1
        assert relay.daemon.overlay.relay is not None
        relay.daemon.overlay.relay.leases.book.prune(
            next(one for one in relay.daemon.overlay.relay.leases.book.leases() if one.id == install.lease)
        )
        assert (await passed_on(relay, sealed_to(net, relay, install, bought), through)).refused == "quota"


async def test_a_memory_for_parcels_that_others_filled_has_room_for_who_pays(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with small_network(relays=3, clients=1) as net:
        relay, through, hop = net.relays
        monkeypatch.setattr(parcels, "MAX_PARCELS_REMEMBERED", 60)
        await fill(net, relay, through, hop)
        assert held(relay) == 30
        await until(lambda: asked(net, relay) > 0, 4 * net.epoch)
        await fill(net, relay, through, hop)
        before = held(relay)
        await net.clients[0].listen()
        await until(lambda: held(relay) == before + 1, 60)


@pytest.mark.slow
async def test_the_largest_leases_towards_a_relay_leave_room_for_others() -> None:
    calendar, now, hop = Calendar(3600), 2.4e9, os.urandom(32)
    book = LeaseBook(os.urandom(32), calendar, os.urandom(32))

    def towards(count: int) -> Install:
        elements = tuple(os.urandom(16) for _ in range(count))
        return Install(
            os.urandom(16), calendar.day(now), ToRelay(hop), elements, os.urandom(16), os.urandom(16)
        )

    honest = [towards(10) for _ in range(20)]
    book.install(honest[0], now)
    for _ in range(200):
        book.install(towards(MAX_ELEMENTS - 4), now)
    for install in honest:
        book.install(install, now)
    grown = Install(
        honest[0].lease,
        honest[0].day,
        honest[0].next_hop,
        (*honest[0].elements, os.urandom(16)),
        honest[0].mark,
        honest[0].bypass,
    )
    book.install(grown, now)
    table = book.table(calendar.day(now))
    assert table is not None
    assert all(table.lookup(one) for install in (*honest, grown) for one in install.elements)
