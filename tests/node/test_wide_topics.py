"""A topic of a width has several shards a day: subscribers draw one each, and publications go to all."""

from __future__ import annotations

import msgspec
import pytest
import trio
from cut_network import CutNetwork, cut_network
from small_network import EPOCH_SECONDS, ONE, Ear, Node, derive, until

from hushcast_local.outbox import NoReceiptYet
from hushcast_protocol.content.bodies import Content
from hushcast_protocol.content.tokens import token
from hushcast_protocol.content.topics import Topic, make_topic
from hushcast_protocol.shards.assignment import copies_of_topic
from hushcast_runtime.storage.changes import Change

pytestmark = pytest.mark.slow
EPOCH = EPOCH_SECONDS
READERS = 4


def wide_topic(net: CutNetwork, days: int = 1) -> Topic:
    """A topic of width 1 whose two shards differ, today and on so many days in all."""
    topics = (make_topic(f"wide {number}", width=1) for number in range(100))
    return next(topic for topic in topics if all(len(copies(net, topic, day)) == 2 for day in range(days)))


def copies(net: CutNetwork, topic: Topic, after: int) -> tuple[int, ...]:
    return copies_of_topic(token(derive(topic, net.net.id, net.today + after)), 1, 1)


async def listening(net: CutNetwork, topic: Topic) -> tuple[dict[Node, Ear], Node]:
    """Let all clients but one subscribe, some in each shard; return these and the one who publishes."""
    *readers, publisher = net.clients
    ears = {node: await node.listen(topic) for node in readers}
    drawn = {node.route(topic).copy for node in readers}
    while drawn != {0, 1}:  # by chance, of one network in eight
        ears[readers[0]].close()
        await readers[0].daemon.service.unsubscribe(topic)
        ears[readers[0]] = await readers[0].listen(topic)
        drawn |= {readers[0].route(topic).copy}
    return ears, publisher


def relays_of(node: Node, topic: Topic, day: int) -> set[bytes]:
    (planned,) = node.route(topic).on(day)
    box = node.route(topic).box
    hosts = set() if box is None else {box.hosts.current}
    return {*planned.installation.tree.parents, *hosts}


async def assert_each_once(ears: dict[Node, Ear], sent: list[bytes]) -> None:
    for ear in ears.values():
        await ear.hears(len(sent))
    await trio.sleep(EPOCH)
    for ear in ears.values():
        assert sorted(ear.payloads) == sorted(sent)


async def test_subscribers_are_in_different_shards_and_each_gets_each_message_once_on_both_days() -> None:
    async with cut_network(clients=READERS + 1, later=16) as net:
        topic, first = wide_topic(net, days=2), net.today
        ears, publisher = await listening(net, topic)
        by_copy: dict[int, set[bytes]] = {}
        for node in ears:
            by_copy.setdefault(node.route(topic).copy, set()).update(relays_of(node, topic, first))
        assert by_copy[0].isdisjoint(by_copy[1])
        assert by_copy[0] | by_copy[1] == {relay.id for relay in net.relays}
        sent = await net.publish_until(net.now + EPOCH, 10, publisher, topic)
        await net.sleep_until(net.midnight() - 2 * EPOCH)
        sent += await net.publish_until(net.midnight() + 2 * EPOCH, 20, publisher, topic)
        assert net.today == first + 1
        await assert_each_once(ears, sent)
        assert len(publisher.daemon.service.outbox()) == 0


async def test_a_shard_that_takes_nothing_gets_the_message_later_and_the_other_gets_it_once() -> None:
    async with cut_network(clients=READERS + 1) as net:
        topic = wide_topic(net)
        ears, publisher = await listening(net, topic)
        await publisher.daemon.service.publish(topic, Content(b"first"))
        await assert_each_once(ears, [b"first"])
        far = next(node for node in ears if node.route(topic).copy == 1)
        away = [net.relay(relay) for relay in relays_of(far, topic, net.today)]
        for relay in away:
            await relay.stop()
        await publisher.daemon.service.publish(topic, Content(b"second"))
        near = [node for node in ears if node.route(topic).copy == 0]
        for node in near:
            assert await ears[node].hears(2) == [b"first", b"second"]
        assert len(publisher.daemon.service.outbox()) == 1
        await publisher.restart()
        assert len(publisher.daemon.service.outbox()) == 1
        for relay in away:
            await relay.start()
        await assert_each_once(ears, [b"first", b"second"])
        await until(lambda: not publisher.daemon.service.outbox(), what="the outbox is empty")


async def test_a_restart_keeps_the_shard_and_ending_it_leaves_no_lease() -> None:
    async with cut_network(clients=READERS + 1) as net:
        topic = wide_topic(net)
        ears, publisher = await listening(net, topic)
        far = next(node for node in ears if node.route(topic).copy == 1)
        relays = relays_of(far, topic, net.today)
        await far.restart()
        assert far.route(topic).copy == 1
        assert relays_of(far, topic, net.today) == relays
        ears[far] = await far.listen(topic)
        await publisher.daemon.service.publish(topic, Content(b"after"))
        await assert_each_once(ears, [b"after"])
        for node, ear in ears.items():
            ear.close()
            await node.daemon.service.unsubscribe(topic)
        await until(lambda: not any(net.leases().values()), what="all leases are withdrawn")


async def test_a_probe_goes_where_publications_go_and_measures_its_own_shard() -> None:
    async with cut_network(clients=READERS + 1, probes=6) as net:
        topic = wide_topic(net)
        ears, _ = await listening(net, topic)
        before, sent = net.count("messages_dropped_here"), net.count("probes_sent")
        await trio.sleep(2 * EPOCH)
        covered = {node: node.daemon.overlay.routes.held[0].coverage.describe() for node in ears}
        assert all(found["probes"] > 0 for found in covered.values())
        assert all(found["share"] == found["delivered"] == 1.0 for found in covered.values()), covered
        probes = net.count("probes_sent") - sent
        dropped = net.count("messages_dropped_here") - before
        most = 2 * net.profile.origins * (probes + READERS)  # some were under way, before or after
        assert 2 * net.profile.origins * (probes - READERS) <= dropped <= most
        assert not any(ear.heard for ear in ears.values())


async def test_records_that_know_no_width_are_read_as_of_none() -> None:
    async with cut_network(clients=2) as net:
        reader, publisher = net.clients
        await reader.listen()
        for relay in net.relays:
            await relay.stop()
        with pytest.raises(NoReceiptYet):
            await publisher.daemon.service.publish(ONE, Content(b"waits"))
        assert len(publisher.daemon.service.outbox()) == 1
        # What came later than the width stands behind it: the relays that stood at the top before, and what
        # seals a publication anew, with its id, and what cuts it into parts.
        for node, kind, later in ((reader, "installation", 2), (publisher, "outbox-state", 4)):
            await node.stop()
            records = await node.store.scan(kind)
            assert records
            for key, value in records:
                fields = msgspec.msgpack.decode(value)
                assert fields[-later] == 0, "the field is what older programs did not write"
                await node.store.write(Change(kind, key, msgspec.msgpack.encode(fields[:-later])))
        for relay in net.relays:
            await relay.start()
        for node in (reader, publisher):
            await node.start()
        ear = await reader.listen()
        assert await ear.hears(1, 900) == [b"waits"]
        await until(lambda: not publisher.daemon.service.outbox(), what="the outbox is empty")


async def test_on_a_day_that_is_not_cut_a_width_changes_nothing() -> None:
    async with cut_network(relays=6, clients=3) as net:
        topic = make_topic("wide", width=4)
        *readers, publisher = net.clients
        ears = {node: await node.listen(topic) for node in readers}
        assert not net.is_cut(net.today)
        before = net.count("messages_dropped_here")
        await publisher.daemon.service.publish(topic, Content(b"one"))
        await assert_each_once(ears, [b"one"])
        assert net.count("messages_dropped_here") == before + net.profile.origins
        assert len(publisher.daemon.service.outbox()) == 0
