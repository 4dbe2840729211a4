"""A relay under a flood: a cap at once, a price from the next epoch on, and honest publications all along."""

from __future__ import annotations

from typing import Any

import pytest
import trio
from small_network import ONE, Node, SmallNetwork, small_network, until

from hushcast_overlay.relay import admission_control
from hushcast_overlay.relay.admission_control import MAX_DROPS_AT_ONCE, MAX_PARCELS_AT_ONCE, AdmissionControl
from hushcast_protocol.base.crypto.proof_of_work import CAPACITY, FIRST_DIFFICULTY, MAX_DIFFICULTY, mint
from hushcast_protocol.content.bodies import Content, compose
from hushcast_protocol.content.messages import Message
from hushcast_protocol.content.tokens import published_tokens, topic_key
from hushcast_protocol.overlay.frame_directions import decode_receipt
from hushcast_protocol.overlay.frames import Drop, ParcelAnswer, ParcelFrame, Receipt, handed_in

LOW = 6  # bits, where a test mints a lot


def a_message(net: SmallNetwork, payload: bytes = b"x") -> Message:
    day = net.calendar.day(net.now)
    key = topic_key(ONE, net.net.id, day)
    tokens = published_tokens(key, ONE, {}, net.env.randomness)
    return compose(key, day, tokens, Content(payload), net.env.randomness)


def admission_of(node: Node) -> AdmissionControl:
    assert node.daemon.overlay.relay is not None
    return node.daemon.overlay.relay.admission


async def flood(net: SmallNetwork, relay: Node, seconds: float, rate: float) -> None:
    """Let strangers hand in frames as fast as that; their links and circuits are not what is tried here."""
    message = a_message(net)
    end = trio.current_time() + seconds
    while trio.current_time() < end:
        for _ in range(int(rate)):
            admission_of(relay).refusal(Drop(message, None))
        await trio.sleep(1)


def listed_difficulty(net: SmallNetwork, relay: Node) -> int:
    newest = net.clients[0].daemon.overlay.rosters.newest
    assert newest is not None
    return newest.relays[relay.id].difficulty


async def ask(net: SmallNetwork, relay: Node, frame: Any) -> Any:
    channel = await net.knock(relay)
    await channel.send(frame)
    answer = await channel.one(60)
    await channel.aclose()
    return answer


@pytest.mark.slow
async def test_a_flooded_relay_asks_a_price_and_honest_publications_pass() -> None:
    async with small_network(relays=3, clients=2, origins=1) as net:
        ear = await net.clients[0].listen()
        relay = net.relays[0]
        assert net.clients[0].daemon.status()["difficulty"] == 0
        net.nursery.start_soon(flood, net, relay, 600, 10 * CAPACITY)
        heard = 0
        for _ in range(8):  # while the price goes up, and then at it
            for number in range(3):
                await net.clients[1].daemon.service.publish(ONE, Content(b"%d" % number))
            heard += 3
            await trio.sleep(net.epoch / 2)
        await ear.hears(heard)
        assert listed_difficulty(net, relay) > FIRST_DIFFICULTY
        assert [listed_difficulty(net, other) for other in net.relays[1:]] == [0, 0]
        assert relay.daemon.status()["difficulty"] > FIRST_DIFFICULTY
        # The flood pays nothing and gets nothing; who pays is served in the middle of it.
        before = relay.count("messages_dropped_here")
        assert await ask(net, relay, Drop(a_message(net), None)) == Receipt("stamp")
        assert relay.count("refused_stamp") == 1
        assert relay.count("messages_dropped_here") == before
        connector = net.clients[1].daemon.service._publisher._carrier._dropper._connector
        entry = relay.daemon.overlay.shards.relay(relay.id)
        assert entry is not None
        message = a_message(net, b"paid")
        assert await connector.drop(entry, Drop(message, None), decode_receipt, 30) == Receipt("accepted")
        heard += 1
        assert b"paid" in await ear.hears(heard)


@pytest.mark.slow
async def test_the_price_falls_when_the_flood_is_over() -> None:
    async with small_network(relays=3, clients=1, epoch=60) as net:
        relay = net.relays[0]
        await flood(net, relay, 120, 10 * CAPACITY)
        await until(lambda: listed_difficulty(net, relay) > FIRST_DIFFICULTY, 120, "the price went up")
        price = relay.daemon.status
        await until(lambda: price()["difficulty"] == 0, 60 * (MAX_DIFFICULTY + 2), "and down again")
        assert await ask(net, relay, Drop(a_message(net), None)) == Receipt("accepted")


@pytest.fixture
def priced(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every relay asks for `LOW` bits from its first descriptor on."""
    monkeypatch.setattr(admission_control, "next_difficulty", lambda rate, last: LOW)


@pytest.mark.usefixtures("priced")
async def test_where_a_price_is_asked_everything_honest_pays_it() -> None:
    async with small_network(relays=4, clients=2) as net:
        ear = await net.clients[0].listen()
        for number in range(5):
            await net.clients[1].daemon.service.publish(ONE, Content(b"%d" % number))
        await ear.hears(5)
        assert all(node.daemon.status()["difficulty"] == LOW for node in net.relays)
        assert net.count("refused_stamp") == 0
        await net.clients[0].daemon.service.unsubscribe(ONE)
        assert sum(net.leases().values()) == 0


@pytest.mark.slow
@pytest.mark.usefixtures("priced")
async def test_a_stamp_serves_once_at_one_relay_for_one_thing() -> None:
    async with small_network(relays=3, clients=1) as net:
        relay, other = net.relays[:2]
        epoch = net.calendar.epoch(net.now)
        message = a_message(net)
        bare = Drop(message, None)
        bought = mint(
            relay.id, epoch, handed_in(bare), 20, net.env.randomness
        )  # no other relay takes it by chance
        stamped = Drop(message, bought)
        assert await ask(net, other, stamped) == Receipt("stamp")
        assert await ask(net, relay, Drop(a_message(net, b"another"), bought)) == Receipt("stamp")
        assert await ask(net, relay, stamped) == Receipt("accepted")
        assert await ask(net, relay, stamped) == Receipt("stamp")
        assert await ask(net, relay, bare) == Receipt("stamp")
        assert await ask(net, relay, ParcelFrame(7, b"s", None)) == ParcelAnswer(7, "stamp", ())
        parcel = ParcelFrame(8, b"s", None)
        parcel = ParcelFrame(8, b"s", mint(relay.id, epoch, handed_in(parcel), LOW, net.env.randomness))
        assert await ask(net, relay, parcel) == ParcelAnswer(8, "form", ())  # looked at, and no parcel
        assert relay.count("refused_stamp") == 4


@pytest.mark.slow
async def test_over_the_cap_strangers_are_refused_with_quota_and_below_it_served() -> None:
    async with small_network(relays=3, clients=1) as net:
        relay = net.relays[0]
        frame = Drop(a_message(net), None)
        taken = sum(admission_of(relay).refusal(frame) is None for _ in range(2 * int(MAX_DROPS_AT_ONCE)))
        assert taken == MAX_DROPS_AT_ONCE
        assert await ask(net, relay, Drop(a_message(net), None)) != Receipt("stamp")
        parcels = [admission_of(relay).refusal(ParcelFrame(0, b"s", None)) for _ in range(1000)]
        assert parcels.count("quota") == 1000 - MAX_PARCELS_AT_ONCE
        assert await ask(net, relay, ParcelFrame(1, b"s", None)) in (
            ParcelAnswer(1, "quota", ()),
            ParcelAnswer(1, "form", ()),  # a place had come free
        )
        await trio.sleep(10)
        for _ in range(200):  # twenty a second is honest
            assert admission_of(relay).refusal(frame) is None
            await trio.sleep(1 / CAPACITY)
