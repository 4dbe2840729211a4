"""Restarts: whoever stops and comes back with its own state loses no subscription and no message."""

from __future__ import annotations

from dataclasses import asdict, replace

import pytest
import trio
from hanging_disk import Disk
from small_network import EPOCH_SECONDS, ONE, TWO, Node, SmallNetwork, derive, small_network, unrouted, until

from hushcast_protocol.base.crypto.secrets import TopicSecret
from hushcast_protocol.base.link.hop import MAX_LINKS_A_PEER
from hushcast_protocol.content.bodies import Content, compose
from hushcast_protocol.content.predicates import parse_where
from hushcast_protocol.content.tokens import token
from hushcast_protocol.content.topics import Interest, make_topic
from hushcast_protocol.overlay.frames import Ack, Forward
from hushcast_protocol.overlay.profile import PAPER


async def publish_some(node: Node, payloads: list[bytes]) -> None:
    for payload in payloads:
        await node.daemon.service.publish(ONE, Content(payload))


async def test_every_relay_may_restart_one_after_the_other() -> None:
    async with small_network() as net:
        subscriber, publisher = net.clients
        ear = await subscriber.listen()
        await until(lambda: subscriber.route().on(net.calendar.day(net.now))[0].nodes == net.seats)
        parcels = net.count("parcels_opened")
        sent = []
        for number, relay in enumerate(net.relays):
            await relay.restart()
            sent.append(b"%d" % number)
            await publisher.daemon.service.publish(ONE, Content(sent[-1]))
            await ear.hears(len(sent))
        await trio.sleep(EPOCH_SECONDS)
        assert ear.payloads == sent
        assert net.each_seat_holds(1)
        assert net.count("parcels_opened") == parcels, "nobody had to be told again"


@pytest.mark.slow
async def test_messages_published_while_a_relay_is_away_arrive() -> None:
    """Another origin takes them, or a spool keeps them until the next hop is back."""
    async with small_network(origins=1) as net:
        subscriber, publisher = net.clients
        ear = await subscriber.listen()
        sent = []
        for relay in net.relays:
            await relay.stop()
            for number in range(6):
                sent.append(b"%s %d" % (relay.name.encode(), number))
                await publisher.daemon.service.publish(ONE, Content(sent[-1]))
            await relay.start()
            assert sorted(await ear.hears(len(sent))) == sorted(sent)
        await trio.sleep(2 * EPOCH_SECONDS)
        assert sorted(ear.payloads) == sorted(sent)


async def test_what_a_relay_took_over_survives_its_restart() -> None:
    """The host is away: everything waits in the spools of the top relays, which all restart."""
    async with small_network() as net:
        subscriber, publisher = net.clients
        (await subscriber.daemon.service.subscribe(Interest(ONE))).close()
        await subscriber.stop()
        sent = [b"%d" % number for number in range(10)]
        await publish_some(publisher, sent)
        await trio.sleep(5)
        for relay in net.relays:
            await relay.restart()
        await subscriber.start()
        ear = await subscriber.listen()
        assert sorted(await ear.hears(10)) == sorted(sent)
        await trio.sleep(EPOCH_SECONDS)
        assert len(ear.heard) == 10
        for relay in net.relays:
            assert await relay.store.scan("spool") == []
            assert await unrouted(relay) == 0


@pytest.mark.parametrize("moment", [0.0, 0.05, 0.1, 0.2, 0.3, 0.5])
async def test_a_message_with_a_receipt_survives_the_restart_of_its_origin(moment: float) -> None:
    async with small_network(origins=1) as net:
        subscriber, publisher = net.clients
        ear = await subscriber.listen()
        for number in range(5):
            publication = await publisher.daemon.service.publish(ONE, Content(b"%d" % number))
            await trio.sleep(moment)
            await net.relay(publication.origins[0]).restart()
        assert sorted(await ear.hears(5)) == [b"%d" % number for number in range(5)]
        await trio.sleep(EPOCH_SECONDS)
        assert len(ear.heard) == 5


async def test_a_subscriber_that_restarts_keeps_its_subscriptions() -> None:
    async with small_network() as net:
        subscriber, publisher = net.clients
        for topic in (ONE, TWO):
            (await subscriber.daemon.service.subscribe(Interest(topic))).close()
        told = 2 * [net.seats]
        await until(lambda: [held["nodes"] for held in subscriber.daemon.service.subscriptions()] == told)
        before = {
            held.wanted.interest.topic: (
                held.wanted.name,
                held.box and held.box.seed,
                held.box and held.box.hosts,
            )
            for held in routes(subscriber)
        }
        parcels = net.count("parcels_opened")
        for _ in range(3):
            await subscriber.restart()
        after = {
            held.wanted.interest.topic: (
                held.wanted.name,
                held.box and held.box.seed,
                held.box and held.box.hosts,
            )
            for held in routes(subscriber)
        }
        assert after == before
        await until(lambda: all(held["ready"] for held in subscriber.daemon.service.subscriptions()))
        assert [held["nodes"] for held in subscriber.daemon.service.subscriptions()] == told
        one, two = await subscriber.listen(ONE), await subscriber.listen(TWO)
        await publisher.daemon.service.publish(ONE, Content(b"one"))
        await publisher.daemon.service.publish(TWO, Content(b"two"))
        assert (await one.hears(1), await two.hears(1)) == ([b"one"], [b"two"])
        assert net.count("parcels_opened") == parcels


def routes(node: Node) -> list:
    return node.daemon.overlay.routes.held


async def test_messages_published_while_the_subscriber_is_away_arrive_once() -> None:
    async with small_network() as net:
        subscriber, publisher = net.clients
        (await subscriber.daemon.service.subscribe(Interest(ONE))).close()
        sent = []
        for round_number in range(3):
            await subscriber.stop()
            for number in range(4):
                sent.append(b"%d %d" % (round_number, number))
                await publisher.daemon.service.publish(ONE, Content(sent[-1]))
            await subscriber.start()
        ear = await subscriber.listen()
        assert sorted(await ear.hears(len(sent))) == sorted(sent)
        await trio.sleep(2 * EPOCH_SECONDS)
        assert len(ear.heard) == len(sent)


@pytest.mark.slow
async def test_a_subscriber_that_restarts_while_subscribing_gets_there() -> None:
    for moment in (0.0, 0.2, 0.4, 0.6, 0.8, 1.0):
        async with small_network(relays=4) as net:
            subscriber, publisher = net.clients
            net.nursery.start_soon(quietly_subscribe, subscriber)
            await trio.sleep(moment)
            await subscriber.restart()
            ear = await subscriber.listen()
            await publisher.daemon.service.publish(ONE, Content(b"x"))
            assert await ear.hears(1) == [b"x"]
            await until(lambda net=net: net.each_seat_holds(1), 3 * EPOCH_SECONDS)


async def quietly_subscribe(node: Node) -> None:
    with trio.move_on_after(1):
        await node.daemon.service.subscribe(Interest(ONE))


async def test_the_network_works_on_while_the_directory_is_away() -> None:
    async with small_network() as net:
        subscriber, publisher = net.clients
        await net.directory.stop()
        ear = await subscriber.listen()
        for number in range(10):
            await publisher.daemon.service.publish(ONE, Content(b"%d" % number))
            await trio.sleep(EPOCH_SECONDS / 4)
        assert await ear.hears(10) == [b"%d" % number for number in range(10)]


@pytest.mark.slow
@pytest.mark.parametrize("away", [3, 4, 6])
async def test_a_directory_that_was_away_for_epochs_takes_nothing_from_the_network(away: int) -> None:
    async with small_network() as net:
        subscriber, publisher = net.clients
        ear = await subscriber.listen()
        await net.directory.stop()
        sent = []
        for epoch in range(away + 4):
            if epoch == away:
                await net.directory.start()
            for quarter in range(4):
                sent.append(b"%d %d" % (epoch, quarter))
                await publisher.daemon.service.publish(ONE, Content(sent[-1]))
                await trio.sleep(EPOCH_SECONDS / 4)
        await ear.hears(len(sent))
        assert sorted(ear.payloads) == sorted(sent)
        newest = publisher.daemon.overlay.rosters.newest
        assert newest is not None
        assert len(newest.relays) == len(newest.origins) == 5


async def test_a_directory_that_restarts_goes_on() -> None:
    async with small_network() as net:
        ear = await net.clients[0].listen()
        for number in range(6):
            await net.directory.restart()
            await trio.sleep(EPOCH_SECONDS / 2)
            await net.clients[1].daemon.service.publish(ONE, Content(b"%d" % number))
        assert await ear.hears(6) == [b"%d" % number for number in range(6)]
        newest = [node.daemon.overlay.rosters.newest for node in net.nodes]
        assert len({roster.digest for roster in newest if roster}) <= 2  # some may be about to fetch it
        assert all(roster and len(roster.relays) == 5 for roster in newest)
        assert net.count("roster_mismatches") == 0


async def everything_restarts(net: SmallNetwork) -> None:
    for process in (*net.nodes, net.directory):
        await process.stop()
    await net.directory.start()
    net.waits = False
    for node in net.nodes:
        await node.start()
    net.waits = True
    await until(lambda: all(node.daemon.ready for node in net.nodes))


async def test_everything_may_restart_at_once() -> None:
    async with small_network() as net:
        subscriber, publisher = net.clients
        (await subscriber.daemon.service.subscribe(Interest(ONE))).close()
        sent = []
        for round_number in range(3):
            sent.append(b"%d" % round_number)
            await publisher.daemon.service.publish(ONE, Content(sent[-1]))
            await everything_restarts(net)
        ear = await subscriber.listen()
        assert sorted(await ear.hears(3)) == sent
        assert net.count("roster_mismatches") == 0


async def test_a_private_subscription_with_a_condition_outlives_a_restart() -> None:
    topic = make_topic("places", ["kind", "a:0..65535"], TopicSecret(bytes(range(32))))
    where = 'a in [10, 20], kind = "a \\"b\\", c"'
    async with small_network(relays=4) as net:
        subscriber, publisher = net.clients
        (
            await subscriber.daemon.service.subscribe(Interest(topic, parse_where(where, topic.attributes)))
        ).close()
        described = subscriber.daemon.service.subscriptions()
        await subscriber.restart()
        await until(lambda: all(held["ready"] for held in subscriber.daemon.service.subscriptions()))
        assert subscriber.daemon.service.subscriptions() == described
        ear = await subscriber.listen(topic, where)
        assert len(subscriber.daemon.service.subscriptions()) == 1
        for number, kind in enumerate(['a "b", c', "other", 'a "b", c']):
            values = {"a": 15, "kind": kind}
            await publisher.daemon.service.publish(topic, Content(b"%d" % number, values))
        assert sorted(await ear.hears(2)) == [b"0", b"2"]
        await until(lambda: subscriber.count("messages_excess") == 1)


async def test_the_next_hop_does_not_wait_for_a_relays_disk_and_an_acknowledgement_does() -> None:
    async with small_network(origins=1) as net:
        ear = await net.clients[0].listen()
        (planned,) = net.clients[0].route().planned.values()
        below, top = next((key, above) for key, above in planned.installation.tree.parents.items() if above)
        relay, origin = net.relay(top), net.relay(below)
        assert origin.daemon.overlay.relay is not None
        spool = origin.daemon.overlay.relay.forwarding._spool
        disk = relay.store = Disk(relay.store)
        await relay.restart()
        disk.hang()
        await net.drop_at(origin, ONE, Content(b"x"))
        assert await ear.hears(1, within=10) == [b"x"]
        assert spool.size > 0, "nothing is acknowledged"
        await relay.stop()
        disk.lose()
        received = relay.count("messages_received")
        await relay.start()
        await until(lambda: not spool.size, what="all is acknowledged")
        assert relay.count("messages_received") == received + 1
        await trio.sleep(EPOCH_SECONDS)
        assert ear.payloads == [b"x"]


async def test_a_repeat_is_not_acknowledged_either_before_a_relay_has_it_on_disk() -> None:
    async with small_network(origins=1) as net:
        subscriber = net.clients[0]
        (await subscriber.daemon.service.subscribe(Interest(ONE))).close()
        (planned,) = subscriber.route().planned.values()
        await until(lambda: not planned.unconfirmed, what="all are told")
        below, top = next((key, above) for key, above in planned.installation.tree.parents.items() if above)
        await subscriber.stop()
        relay, origin = net.relay(top), net.relay(below)
        disk = relay.store = Disk(relay.store)
        await relay.restart()
        disk.hang()
        await net.drop_at(origin, ONE, Content(b"x"))
        await trio.sleep(1)
        await origin.restart()  # it hands the message in again
        await trio.sleep(5)
        assert relay.count("messages_received") == 2
        await relay.stop()
        disk.lose()
        await relay.start()
        await subscriber.start()
        assert await (await subscriber.listen()).hears(1) == [b"x"]


async def test_what_a_listed_root_is_still_taking_is_forwarded_though_its_link_ends() -> None:
    """As published a relay takes messages for itself, too; its disk hangs, and a previous hop links anew."""
    async with small_network(relays=3, **asdict(replace(PAPER, depth=1))) as net:
        relay, other, previous = net.relays
        disk = relay.store = Disk(relay.store)
        await relay.restart()
        ears = [await node.listen() for node in (relay, other)]
        day = net.calendar.day(net.now)
        key = derive(ONE, net.net.id, day)
        message = compose(key, day, (token(key),), Content(b"x"), net.env.randomness)
        assert previous.identity is not None
        us = previous.identity.seed
        disk.hang()
        links = [await net.knock(relay, us)]
        await links[0].send(Forward(message))
        await trio.sleep(1)
        links += [await net.knock(relay, us) for _ in range(MAX_LINKS_A_PEER)]  # the oldest ends
        await trio.sleep(1)
        disk.turn()
        await links[-1].send(Forward(message))
        assert await links[-1].one(5) == Ack(1, ())
        for ear in ears:
            assert await ear.hears(1) == [b"x"]
