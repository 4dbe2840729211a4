"""From publisher to subscriber, through real daemons: every message once, and to the right one."""

from __future__ import annotations

import pytest
import trio
from small_network import ONE, TWO, Ear, small_network, until

from hushcast_overlay.relay.detours import HAND_ONS
from hushcast_protocol.base.crypto.secrets import Seed, TopicSecret
from hushcast_protocol.content.bodies import Content
from hushcast_protocol.content.payload_sizes import MAX_PAYLOAD
from hushcast_protocol.content.predicates import parse_where
from hushcast_protocol.content.topics import Interest, make_topic


async def test_a_message_reaches_the_subscriber() -> None:
    async with small_network() as net:
        subscriber, publisher = net.clients
        ear = await subscriber.listen()
        assert ear.feed.nodes == net.seats
        accepted = await publisher.daemon.service.publish(ONE, Content(b"hello"))
        assert await ear.hears(1) == [b"hello"]
        assert ear.heard[0].id == accepted.id
        assert ear.heard[0].received_at <= net.now


@pytest.mark.slow
async def test_a_message_comes_once_whatever_the_number_of_origins() -> None:
    for origins in (1, 2, 3):
        async with small_network(origins=origins) as net:
            ear = await net.clients[0].listen()
            publication = await net.clients[1].daemon.service.publish(ONE, Content(b"x"))
            await until(lambda p=publication, o=origins: len(p.origins) == o)
            await ear.hears(1)
            await trio.sleep(30)
            assert ear.payloads == [b"x"]
            assert len(set(publication.origins)) == origins
            assert net.count("messages_dropped_here") == origins
            assert net.count("messages_delivered") == 1


async def test_topics_are_not_mixed() -> None:
    async with small_network() as net:
        one, two = await net.clients[0].listen(ONE), await net.clients[0].listen(TWO)
        other = await net.clients[1].listen(TWO)
        for number in range(10):
            await net.clients[1].daemon.service.publish(ONE, Content(b"one %d" % number))
            await net.clients[0].daemon.service.publish(TWO, Content(b"two %d" % number))
        await one.hears(10)
        await two.hears(10)
        await other.hears(10)
        await trio.sleep(30)
        assert sorted(one.payloads) == [b"one %d" % number for number in range(10)]
        assert sorted(two.payloads) == sorted(other.payloads) == [b"two %d" % number for number in range(10)]
        assert net.count("messages_not_ours") == 0
        assert net.count("messages_unrouted") == 0


async def test_a_topic_that_nobody_subscribes_to_is_handed_on_three_times_and_comes_to_nobody() -> None:
    async with small_network() as net:
        ear = await net.clients[0].listen(ONE)
        await net.clients[1].daemon.service.publish(TWO, Content(b"x"))
        await until(lambda: net.count("messages_unrouted") == 2 * (1 + HAND_ONS))
        await trio.sleep(net.epoch)
        assert net.count("messages_sent") == 2 * HAND_ONS
        assert net.count("messages_unrouted") == 2 * (1 + HAND_ONS)
        assert ear.heard == []


@pytest.mark.parametrize(
    "payload",
    [b"", b"\x00", bytes(1024), bytes(1025), b"\xff" * MAX_PAYLOAD],
    ids=["empty", "zero", "1024", "1025", "largest"],
)
async def test_payloads_of_every_size_arrive_whole(payload: bytes) -> None:
    async with small_network(relays=3) as net:
        ear = await net.clients[0].listen()
        await net.clients[1].daemon.service.publish(ONE, Content(payload))
        assert await ear.hears(1) == [payload]


@pytest.mark.slow
async def test_many_messages_arrive_once_each_whatever_their_order() -> None:
    async with small_network(relays=8) as net:
        ears = [await client.listen() for client in net.clients]
        sent = [b"message %d" % number for number in range(60)]
        async with trio.open_nursery() as nursery:
            for number, payload in enumerate(sent):
                nursery.start_soon(net.clients[number % 2].daemon.service.publish, ONE, Content(payload))
        for ear in ears:
            await ear.hears(60)
        await trio.sleep(30)
        for ear in ears:
            assert sorted(ear.payloads) == sorted(sent)
        assert net.count("messages_looped") == 0


async def test_a_relay_may_subscribe_and_publish() -> None:
    async with small_network(clients=0) as net:
        ear = await net.relays[0].listen()
        for relay in net.relays:
            await relay.daemon.service.publish(ONE, Content(relay.name.encode()))
        assert sorted(await ear.hears(5)) == [relay.name.encode() for relay in net.relays]


async def test_one_relay_alone_is_a_network() -> None:
    async with small_network(relays=1) as net:
        ear = await net.clients[0].listen()
        await net.clients[1].daemon.service.publish(ONE, Content(b"x"))
        assert await ear.hears(1) == [b"x"]


@pytest.mark.parametrize("depth", [1, 3, 4])
async def test_trees_of_every_depth_carry_messages(depth: int) -> None:
    async with small_network(relays=8, depth=depth) as net:
        ear = await net.clients[0].listen()
        for number in range(10):
            await net.clients[1].daemon.service.publish(ONE, Content(b"%d" % number))
        assert sorted(await ear.hears(10)) == [b"%d" % number for number in range(10)]


# Applications of one daemon


async def test_every_listener_gets_every_message() -> None:
    async with small_network(relays=3) as net:
        ears = [await net.clients[0].listen() for _ in range(3)]
        assert len(net.clients[0].daemon.service.subscriptions()) == 1
        for payload in (b"1", b"2", b"3"):
            await net.clients[1].daemon.service.publish(ONE, Content(payload))
            await ears[0].hears(int(payload))
        for ear in ears:
            assert await ear.hears(3) == [b"1", b"2", b"3"]


async def test_what_came_while_nobody_listened_comes_first() -> None:
    async with small_network(relays=3) as net:
        subscriber, publisher = net.clients
        (await subscriber.daemon.service.subscribe(Interest(ONE))).close()
        for number in range(3):
            await publisher.daemon.service.publish(ONE, Content(b"%d" % number))
            await until(lambda n=number: subscriber.count("messages_delivered") == n + 1)
        ear = await subscriber.listen()
        await publisher.daemon.service.publish(ONE, Content(b"3"))
        assert await ear.hears(4) == [b"0", b"1", b"2", b"3"]
        assert ear.numbers == [1, 2, 3, 4]


async def test_what_was_shown_is_not_shown_again_even_after_a_restart() -> None:
    async with small_network(relays=3) as net:
        subscriber, publisher = net.clients
        feed = await subscriber.daemon.service.subscribe(Interest(ONE))
        for number in range(4):
            await publisher.daemon.service.publish(ONE, Content(b"%d" % number))
            await until(lambda n=number: subscriber.count("messages_delivered") == n + 1)
        for expected in (b"0", b"1", b"2"):
            arrival = await feed.next()
            assert arrival is not None
            assert arrival[1].payload == expected
            if expected != b"2":
                feed.shown(arrival[0])  # the third was taken, but not shown
        feed.close()
        again = await subscriber.listen()
        assert await again.hears(2) == [b"2", b"3"]
        again.close()
        await subscriber.restart()
        last = await subscriber.listen()
        await publisher.daemon.service.publish(ONE, Content(b"4"))
        assert await last.hears(1) == [b"4"]
        assert last.numbers == [5]


async def test_unseen_messages_outlive_a_restart() -> None:
    async with small_network(relays=3) as net:
        subscriber, publisher = net.clients
        (await subscriber.daemon.service.subscribe(Interest(ONE))).close()
        for number in range(3):
            await publisher.daemon.service.publish(ONE, Content(b"%d" % number))
            await until(lambda n=number: subscriber.count("messages_delivered") == n + 1)
        await subscriber.restart()
        ear = await subscriber.listen()
        assert await ear.hears(3) == [b"0", b"1", b"2"]


async def test_a_listener_that_leaves_costs_the_others_nothing() -> None:
    """Nor the inbox: what was acknowledged is deleted once all who listen have it, or have left."""
    async with small_network(relays=3) as net:
        subscriber, publisher = net.clients
        stays = await subscriber.listen()
        leaves = await subscriber.daemon.service.subscribe(Interest(ONE))
        await publisher.daemon.service.publish(ONE, Content(b"1"))
        await stays.hears(1)
        await subscriber.daemon.service.acknowledge(ONE, 1)
        assert len(await subscriber.store.scan("inbox")) == 1
        arrival = await leaves.next()
        assert arrival is not None
        assert arrival[1].payload == b"1"
        for payload in (b"2", b"3"):
            await publisher.daemon.service.publish(ONE, Content(payload))
        assert sorted(await stays.hears(3)) == [b"1", b"2", b"3"]
        await subscriber.daemon.service.acknowledge(ONE, 3)
        assert len(await subscriber.store.scan("inbox")) == 2
        leaves.close()
        leaves.close()
        assert await subscriber.store.scan("inbox") == []


async def test_a_slow_listener_keeps_what_it_has_not_seen() -> None:
    async with small_network(relays=3) as net:
        subscriber, publisher = net.clients
        slow = await subscriber.daemon.service.subscribe(Interest(ONE))
        quick = await subscriber.listen()
        for number in range(5):
            await publisher.daemon.service.publish(ONE, Content(b"%d" % number))
        await quick.hears(5)
        seen = [await slow.next() for _ in range(5)]
        assert sorted(arrival[1].payload for arrival in seen if arrival) == sorted(quick.payloads)


async def test_two_who_subscribe_at_once_share_one_subscription() -> None:
    async with small_network(relays=3) as net:
        ears: list[Ear] = []

        async def subscribe() -> None:
            ears.append(await net.clients[0].listen())

        async with trio.open_nursery() as nursery:
            nursery.start_soon(subscribe)
            nursery.start_soon(subscribe)
        assert len(net.clients[0].daemon.service.subscriptions()) == 1
        assert net.each_seat_holds(1)
        await net.clients[1].daemon.service.publish(ONE, Content(b"x"))
        assert [await ear.hears(1) for ear in ears] == [[b"x"], [b"x"]]


async def test_an_author_is_seen_and_nobody_is_where_there_is_none() -> None:
    author = Seed(b"author's" * 4)
    async with small_network(relays=3) as net:
        ear = await net.clients[0].listen()
        await net.clients[1].daemon.service.publish(ONE, Content(b"signed"), author)
        await net.clients[1].daemon.service.publish(ONE, Content(b"not"))
        await ear.hears(2)
        assert {one.payload: one.author for one in ear.heard} == {b"signed": author.public(), b"not": None}


async def test_subscriptions_to_one_topic_end_one_by_one_or_together() -> None:
    topic = make_topic("readings", ["level:0..65535"], TopicSecret(bytes(range(32))))
    async with small_network(relays=3) as net:
        subscriber, publisher = net.clients
        wheres = ("level in [0, 10]", "level in [5, 20]", "")
        ears = [await subscriber.listen(topic, where) for where in wheres]
        assert await subscriber.daemon.service.unsubscribe(topic, parse_where(wheres[0], topic.attributes))
        await publisher.daemon.service.publish(topic, Content(b"x", {"level": 7}))
        await publisher.daemon.service.publish(topic, Content(b"no level"))
        assert [await ears[1].hears(1), sorted(await ears[2].hears(2))] == [[b"x"], [b"no level", b"x"]]
        assert ears[0].ended
        assert ears[0].payloads == []
        assert await subscriber.daemon.service.unsubscribe(topic)
        assert subscriber.daemon.service.subscriptions() == []
        assert not await subscriber.daemon.service.unsubscribe(topic)


async def test_messages_whose_attributes_are_not_the_topics_are_counted_and_not_shown() -> None:
    """Whoever knows the topic can seal anything under it."""
    topic = make_topic("readings", ["level:0..65535"], TopicSecret(bytes(range(32))))
    async with small_network(relays=3, origins=1) as net:
        ear = await net.clients[0].listen(topic)
        for values in ({"level": 65_536}, {"level": "high"}, {"depth": 1}):
            await net.clients[1].daemon.service.publish(topic, Content(b"hostile", values))
        await net.clients[1].daemon.service.publish(topic, Content(b"good", {"level": 65_535}))
        assert await ear.hears(1) == [b"good"]
        await until(lambda: net.clients[0].count("messages_not_ours") == 3)
        assert ear.payloads == [b"good"]
