"""Whoever publishes a moment before somebody subscribes loses nothing: the origin waits for leases."""

from __future__ import annotations

from typing import Any

import pytest
import trio
from small_network import ONE, TWO, SmallNetwork, derive, small_network, until

from hushcast_overlay.relay import detours, drops
from hushcast_protocol.base.record_kinds import RecordKind
from hushcast_protocol.content.bodies import Content, compose
from hushcast_protocol.content.tokens import token
from hushcast_protocol.overlay import late_routes
from hushcast_protocol.overlay.frames import Drop, Receipt
from hushcast_protocol.overlay.late_routes import WAIT
from hushcast_runtime.storage.store import Records

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


@pytest.mark.parametrize("later", [1.0, 100.0])
async def test_whoever_comes_later_gets_what_others_had_and_nobody_gets_it_twice(later: float) -> None:
    async with small_network(relays=8, clients=3, epoch=LONG) as net:
        first, second, publisher = net.clients
        ear = await first.listen()
        sent = [b"%d" % number for number in range(5)]
        for payload in sent:
            await publisher.daemon.service.publish(ONE, Content(payload))
        assert sorted(await ear.hears(5)) == sent
        await trio.sleep(later)
        late = await second.listen()
        assert sorted(await late.hears(5)) == sent
        await trio.sleep(WAIT)
        assert (sorted(ear.payloads), sorted(late.payloads)) == (sent, sent)
        assert await waiting(net) == 0


async def test_after_five_minutes_it_comes_no_more() -> None:
    async with small_network(relays=8, clients=3, epoch=LONG) as net:
        ear = await net.clients[0].listen()
        await net.clients[2].daemon.service.publish(ONE, Content(b"early"))
        assert await ear.hears(1) == [b"early"]
        await trio.sleep(WAIT + 10)
        late = await net.clients[1].listen()
        await trio.sleep(WAIT)
        assert late.payloads == []


async def test_it_goes_once_more_to_a_relay_behind_which_the_later_tree_is_another() -> None:
    """Of two relays one is the host of at least two of three boxes, and the other's next hop for both."""
    async with small_network(relays=2, clients=3, epoch=LONG) as net:
        ears = [await net.clients[0].listen()]
        sent = sorted([relay.name.encode() for relay in net.relays])
        for relay in net.relays:
            await net.drop_at(relay, ONE, Content(relay.name.encode()))
        await ears[0].hears(2)
        for reader in net.clients[1:]:
            await trio.sleep(5)
            ears.append(await reader.listen())
        for ear in ears:
            assert sorted(await ear.hears(2)) == sent
        await trio.sleep(WAIT)
        assert [sorted(ear.payloads) for ear in ears] == [sent] * 3


async def test_whoever_comes_after_a_restart_of_the_origins_gets_it_too() -> None:
    async with small_network(relays=4, clients=3, epoch=LONG) as net:
        first, second, publisher = net.clients
        ear = await first.listen()
        await publisher.daemon.service.publish(ONE, Content(b"early"))
        assert await ear.hears(1) == [b"early"]
        for relay in net.relays:
            await relay.restart()
        late = await second.listen()
        assert await late.hears(1) == [b"early"]
        await trio.sleep(2 * WAIT)
        assert (ear.payloads, late.payloads) == ([b"early"], [b"early"])
        assert await waiting(net) == 0


async def test_leases_that_come_in_a_flood_are_served_at_a_pace(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(drops, "MAX_LATE_A_SECOND", 2.0)
    monkeypatch.setattr(drops, "MAX_LATE_AT_ONCE", 1.0)
    async with small_network(relays=2, clients=2, epoch=LONG, origins=2) as net:
        ear = await net.clients[0].listen()
        for number in range(5):
            await net.clients[1].daemon.service.publish(ONE, Content(b"%d" % number))
        await ear.hears(5)
        for _ in range(100):
            for role in [relay.daemon.overlay.relay for relay in net.relays]:
                for lease in role.leases.book.leases():
                    role.drops.take_up(lease)
            await trio.sleep(0.1)
        assert 10 < net.count("messages_routed_late") <= len(net.relays) * (2 + 2 * 10)
        assert len(ear.payloads) == 5


async def test_what_waits_takes_no_room_from_what_is_on_its_way() -> None:
    async with small_network(relays=2, clients=2, epoch=LONG, origins=1) as net:
        relay = net.relays[0]
        for number in range(20):
            await net.drop_at(relay, TWO, Content(b"%d" % number))
        await trio.sleep(1)
        assert len(await relay.store.scan("intake")) == 20
        assert relay.daemon.overlay.relay.forwarding._spool.size == 0
        await relay.restart()
        assert relay.daemon.overlay.relay.forwarding._spool.size == 0
        await trio.sleep(WAIT + 1)
        assert await relay.store.scan("intake") == await relay.store.scan("routed") == []


async def test_restarts_send_nothing_again() -> None:
    async with small_network(relays=2, clients=2, epoch=LONG, origins=1) as net:
        ear = await net.clients[0].listen()
        for relay in net.relays:
            await net.drop_at(relay, ONE, Content(relay.name.encode()))
        await ear.hears(2)
        await trio.sleep(1)  # until what was taken over is acknowledged
        received = net.count("messages_received")
        for _ in range(3):
            for relay in net.relays:
                await relay.restart()
        await trio.sleep(30)
        assert net.count("messages_received") == received


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
        await until(lambda: net.count("messages_unrouted") == 80)  # each is handed on once, for nothing
        await trio.sleep(1)
        assert await waiting(net) == 16
        ear = await net.clients[0].listen(TWO)
        assert sorted(await ear.hears(8)) == sorted(b"%d" % number for number in range(12, 20))


async def test_a_flood_of_what_nobody_wants_is_handed_on_no_longer(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of most of them the relay has forgotten how often it handed them on."""
    monkeypatch.setattr(detours, "MAX_TRIED", 4)
    async with small_network(relays=4, clients=0, epoch=LONG) as net:
        relay = net.relays[0]
        async with trio.open_nursery() as publishing:
            for number in range(20):
                publishing.start_soon(net.drop_at, relay, TWO, Content(b"%d" % number))
        await trio.sleep(10)
        handed_on = net.count("messages_sent")
        assert 20 <= handed_on <= detours.HAND_ONS * 20
        await trio.sleep(10)
        assert net.count("messages_sent") == handed_on


async def test_as_published_nothing_waits() -> None:
    async with small_network(relays=4, clients=1, epoch=LONG, late_routes=False, origins=1) as net:
        await net.clients[0].daemon.service.publish(ONE, Content(b"early"))
        await until(lambda: net.count("messages_unrouted") == 1)
        await trio.sleep(1)
        assert await waiting(net) == 0


async def test_a_start_reads_what_waits_once(monkeypatch: pytest.MonkeyPatch) -> None:
    async with small_network(relays=2, clients=2, epoch=LONG, origins=1) as net:
        relay = net.relays[0]
        for number in range(30):
            await net.drop_at(relay, TWO, Content(b"%d" % number))
        await trio.sleep(1)
        scan, reads = relay.store.scan, 0

        async def counted(kind: RecordKind | str, *others: Any, **more: Any) -> Records:
            nonlocal reads
            reads += kind == "intake"
            return await scan(kind, *others, **more)

        monkeypatch.setattr(relay.store, "scan", counted)
        await relay.restart()
        assert 0 < reads < 5
        held = relay.daemon.overlay.relay.drops._late
        assert held is not None
        assert len(held) == 30
