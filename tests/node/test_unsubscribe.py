"""Unsubscribing: nothing more comes, relays forget, and what cannot be told now is told later."""

from __future__ import annotations

import pytest
import trio
from hosted_network import in_use
from small_network import EPOCH_SECONDS, ONE, TWO, Node, SmallNetwork, small_network, until

from hushcast_local.subscriber import WITHDRAW_WITHIN
from hushcast_overlay.relay.detours import HAND_ONS
from hushcast_protocol.base.crypto.secrets import TopicSecret
from hushcast_protocol.content.bodies import Content
from hushcast_protocol.content.topics import Interest, make_topic


def tombstones(net: SmallNetwork) -> dict[str, int]:
    return {
        node.name: len(node.daemon.overlay.relay.leases.book.tombstones())
        for node in net.relays
        if node.is_up and node.daemon.overlay.relay is not None
    }


async def kept(node: Node, *kinds: str) -> list[tuple[bytes, bytes]]:
    return [record for kind in kinds for record in await node.store.scan(kind)]


async def held(net: SmallNetwork, kind: str) -> int:
    """How many records of a kind relays have, all together."""
    return sum([len(await relay.store.scan(kind)) for relay in net.relays])


@pytest.mark.slow
async def test_after_unsubscribing_nothing_comes_and_nothing_is_left() -> None:
    async with small_network() as net:
        subscriber, publisher = net.clients
        ear, other = await subscriber.listen(), await publisher.listen(TWO)
        await publisher.daemon.service.publish(ONE, Content(b"before"))
        await ear.hears(1)
        await until(lambda: net.count("messages_duplicate") + net.count("messages_sent") >= 2)
        assert sum(net.leases().values()) == 2 * net.seats
        host = in_use(net, subscriber)
        assert await subscriber.daemon.service.unsubscribe(ONE)
        await until(lambda: ear.ended)
        assert ear.payloads == [b"before"]
        assert subscriber.daemon.service.subscriptions() == []
        assert sum(net.leases().values()) == net.seats
        assert sum(tombstones(net).values()) == net.seats
        # And those of both boxes, which stay until their day lapses.
        assert await held(net, "lease") == net.seats + 2
        assert await held(net, "tombstone") == net.seats
        await trio.sleep(1)
        kinds = ("interest", "installation", "inbox", "inbox-seen", "inbox-progress")
        assert await kept(subscriber, *kinds) == []
        assert len(net.wires.listeners) == 1 + len(net.relays), "directory and relays"
        sent = net.count("messages_sent")
        away = [relay for relay in net.relays if relay is not host]
        for number, relay in enumerate(away):
            await net.drop_at(relay, ONE, Content(b"after %d" % number))
        await until(lambda: net.count("drops_handed_on") == len(away))
        await net.drop_at(host, ONE, Content(b"for a box that was forgotten"))
        await trio.sleep(EPOCH_SECONDS)
        # Each is handed on for nothing; the host of the box that it forgot takes it, for all that others see.
        assert len(away) <= net.count("messages_sent") - sent <= HAND_ONS * len(away)
        assert net.count("messages_delivered") == 1
        assert await kept(subscriber, "owned-box") == []
        await publisher.daemon.service.publish(TWO, Content(b"still here"))
        assert await other.hears(1) == [b"still here"]


@pytest.mark.slow
async def test_what_is_on_its_way_while_unsubscribing_is_not_shown() -> None:
    async with small_network() as net:
        subscriber, publisher = net.clients
        ear = await subscriber.listen()
        async with trio.open_nursery() as nursery:
            for number in range(20):
                nursery.start_soon(publisher.daemon.service.publish, ONE, Content(b"%d" % number))
            await until(lambda: len(ear.heard) >= 3)
            await subscriber.daemon.service.unsubscribe(ONE)
            heard = len(ear.heard)
        await trio.sleep(EPOCH_SECONDS)
        assert len(ear.heard) == heard
        assert len(set(ear.payloads)) == heard
        assert await kept(subscriber, "inbox", "inbox-seen") == []


async def test_there_is_nothing_to_unsubscribe_from() -> None:
    async with small_network(relays=1) as net:
        assert not await net.clients[0].daemon.service.unsubscribe(ONE)
        await net.clients[0].daemon.service.subscribe(Interest(ONE))
        assert await net.clients[0].daemon.service.unsubscribe(ONE)
        assert not await net.clients[0].daemon.service.unsubscribe(ONE)


async def test_subscribing_again_is_a_new_subscription() -> None:
    async with small_network() as net:
        subscriber, publisher = net.clients
        await subscriber.listen()
        first = subscriber.route()
        assert first.box is not None
        await subscriber.daemon.service.unsubscribe(ONE)
        ear = await subscriber.listen()
        second = subscriber.route()
        assert second.box is not None
        assert second.box.seed != first.box.seed
        assert first.wanted.name != second.wanted.name
        await publisher.daemon.service.publish(ONE, Content(b"x"))
        assert await ear.hears(1) == [b"x"]
        assert sum(net.leases().values()) == net.seats


async def test_unsubscribing_does_not_wait_for_a_relay_that_is_away() -> None:
    async with small_network() as net:
        subscriber = net.clients[0]
        await subscriber.listen()
        away = net.relays[0]
        await away.stop()
        before = trio.current_time()
        assert await subscriber.daemon.service.unsubscribe(ONE)
        assert trio.current_time() - before <= WITHDRAW_WITHIN + 1
        await away.start()
        relay = away.daemon.overlay.relay
        assert relay is not None
        await until(lambda: net.leases()[away.name] == 0, EPOCH_SECONDS, "the relay forgot")
        await until(lambda: sum(tombstones(net).values()) == net.seats, EPOCH_SECONDS)
        assert set(net.leases().values()) == {0}


async def test_a_restart_does_not_forget_to_withdraw() -> None:
    async with small_network() as net:
        subscriber = net.clients[0]
        await subscriber.listen()
        away = net.relays[0]
        await away.stop()
        await subscriber.daemon.service.unsubscribe(ONE)
        await subscriber.restart()
        assert subscriber.daemon.service.subscriptions() == []
        assert len(await kept(subscriber, "installation")) == 1
        await away.start()
        await until(lambda: set(net.leases().values()) == {0}, EPOCH_SECONDS, "all relays forgot")
        await until(lambda: sum(tombstones(net).values()) == net.seats, EPOCH_SECONDS)


@pytest.mark.slow
async def test_unsubscribing_while_still_subscribing_leaves_nothing() -> None:
    for moment in (0.1, 0.3, 0.5, 0.7, 0.9, 1.2):
        async with small_network() as net:
            subscriber = net.clients[0]
            async with trio.open_nursery() as nursery:
                nursery.start_soon(subscriber.daemon.service.subscribe, Interest(ONE))
                await trio.sleep(moment)
                await subscriber.daemon.service.unsubscribe(ONE)
            await until(
                lambda net=net: not any(net.leases().values()), 2 * EPOCH_SECONDS, f"forgotten, {moment}"
            )
            await trio.sleep(2 * EPOCH_SECONDS)
            assert not any(net.leases().values())
            assert await kept(subscriber, "interest", "installation") == []
            assert len(net.wires.listeners) == 1 + len(net.relays)


@pytest.mark.slow
async def test_tombstones_lapse() -> None:
    async with small_network(relays=2) as net:
        subscriber = net.clients[0]
        await subscriber.listen()
        await subscriber.daemon.service.unsubscribe(ONE)
        day = net.calendar.day(net.now)
        await net.sleep_until(net.calendar.lapse(day + 1) + 1.5 * EPOCH_SECONDS)
        assert set(tombstones(net).values()) == {0}
        for relay in net.relays:
            assert await kept(relay, "lease", "tombstone") == []


async def test_an_application_that_leaves_at_once_has_unsubscribed_all_the_same() -> None:
    async with small_network(relays=3) as net:
        subscriber = net.clients[0]
        await subscriber.listen()
        with trio.CancelScope() as leaving:
            leaving.cancel()
            await subscriber.daemon.service.unsubscribe(ONE)
        assert leaving.cancelled_caught
        assert subscriber.daemon.service.subscriptions() == []
        await until(lambda: set(net.leases().values()) == {0}, 2 * EPOCH_SECONDS)
        assert await kept(subscriber, "interest", "inbox", "inbox-seen") == []


async def test_two_that_end_the_same_subscriptions_at_once_both_succeed() -> None:
    boxes = make_topic("places", ["a:0..99"], TopicSecret(bytes(32)))
    async with small_network(relays=3) as net:
        daemon = net.clients[0].daemon
        for where in ("a in [0, 9]", "a in [10, 19]", "a in [20, 29]"):
            await net.clients[0].listen(boxes, where)
        async with trio.open_nursery() as nursery:
            for _ in range(2):
                nursery.start_soon(daemon.service.unsubscribe, boxes)
        assert daemon.service.subscriptions() == []
        assert set(net.leases().values()) == {0}
