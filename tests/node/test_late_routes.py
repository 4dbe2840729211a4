"""Whoever publishes a moment before somebody subscribes loses nothing: the origin waits for leases."""

from __future__ import annotations

import pytest
import trio
from small_network import ONE, TWO, SmallNetwork, derive, small_network, until

from hushcast_protocol.content.bodies import Content, compose
from hushcast_protocol.content.tokens import token
from hushcast_protocol.overlay import late_routes
from hushcast_protocol.overlay.frames import Drop, Receipt
from hushcast_protocol.overlay.late_routes import WAIT

LONG = 4 * 3600  # seconds of an epoch, so long that no tree is mended during a test


async def waiting(net: SmallNetwork) -> int:
    return sum([len(await relay.store.scan("intake")) for relay in net.relays])


async def test_a_message_published_before_anybody_subscribed_arrives() -> None:
    async with small_network(relays=8, clients=2, epoch=LONG) as net:
        await net.clients[1].daemon.service.publish(ONE, Content(b"early"))
        await until(lambda: net.count("messages_unrouted") == 2)
        ear = await net.clients[0].listen()
        assert await ear.hears(1) == [b"early"]
        await trio.sleep(WAIT)
        assert ear.payloads == [b"early"]
        assert net.count("messages_routed_late") == 2
        assert await waiting(net) == 0


async def test_it_arrives_though_its_origins_were_killed_meanwhile() -> None:
    async with small_network(relays=4, clients=2, epoch=LONG) as net:
        await net.clients[1].daemon.service.publish(ONE, Content(b"early"))
        await until(lambda: net.count("messages_unrouted") == 2)
        for relay in net.relays:
            await relay.restart()
        ear = await net.clients[0].listen()
        assert await ear.hears(1) == [b"early"]


async def test_it_may_be_dropped_again_at_an_origin_that_was_killed_meanwhile() -> None:
    async with small_network(relays=2, clients=2, epoch=LONG) as net:
        origin = net.relays[0]
        day = net.calendar.day(net.now)
        key = derive(ONE, net.net.id, day)
        message = compose(key, day, (token(key),), Content(b"early"), net.env.randomness)
        for _ in range(2):
            await origin.restart()
            channel = await net.knock(origin)
            await channel.send(Drop(message, None))
            assert await channel.one(60) == Receipt("accepted")
            await channel.aclose()
        await net.drop_at(origin, TWO, Content(b"to nobody"))
        first, second = net.clients
        assert await (await first.listen()).hears(1) == [b"early"]
        assert (await second.listen()).feed.nodes == net.seats


async def test_it_waits_for_its_own_topic_and_not_for_ever() -> None:
    async with small_network(relays=4, clients=2, epoch=LONG) as net:
        await net.clients[1].daemon.service.publish(ONE, Content(b"to nobody"))
        await until(lambda: net.count("messages_unrouted") == 2)
        await net.clients[0].listen(TWO)
        await trio.sleep(WAIT / 2)
        assert await waiting(net) == 2
        await trio.sleep(WAIT)
        assert await waiting(net) == 0
        ear = await net.clients[0].listen(ONE)
        await trio.sleep(WAIT)
        assert ear.payloads == []
        assert net.count("messages_routed_late") == 0


async def test_a_flood_of_what_nobody_wants_takes_a_bounded_room(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(late_routes, "MAX_ELEMENTS_AWAITED", 64)  # a message has eight tokens or more
    async with small_network(relays=2, clients=2, epoch=LONG, origins=2) as net:
        for number in range(20):
            await net.clients[1].daemon.service.publish(TWO, Content(b"%d" % number))
        await until(lambda: net.count("messages_unrouted") == 40)
        await trio.sleep(1)
        assert await waiting(net) == 16
        ear = await net.clients[0].listen(TWO)
        assert sorted(await ear.hears(8)) == sorted(b"%d" % number for number in range(12, 20))


async def test_as_published_nothing_waits() -> None:
    async with small_network(relays=4, clients=1, epoch=LONG, late_routes=False, origins=1) as net:
        await net.clients[0].daemon.service.publish(ONE, Content(b"early"))
        await until(lambda: net.count("messages_unrouted") == 1)
        await trio.sleep(1)
        assert await waiting(net) == 0
