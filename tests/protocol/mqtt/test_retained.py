"""Retained messages: the last of a topic, found by filters, within their caps."""

from __future__ import annotations

import pytest
from broker_world import World
from hypothesis import given
from hypothesis import strategies as st
from test_tree import FILTERS, TOPICS

from hushcast_protocol.mqtt.kept.retained_messages import RetainedMessages
from hushcast_protocol.mqtt.limits import MAX_HELD_BACK, MAX_OFFERED, MqttLimits
from hushcast_protocol.mqtt.mqtt_messages import MqttMessage
from hushcast_protocol.mqtt.reason_codes import Reason
from hushcast_protocol.mqtt.topics.topic_filters import matches
from hushcast_protocol.mqtt.wire.packets import PubAck, RequestedSubscription, Subscribe


@pytest.mark.slow
@given(st.lists(TOPICS, max_size=12, unique=True), st.lists(TOPICS, max_size=4), FILTERS)
def test_a_filter_finds_what_it_matches(topics: list[str], removed: list[str], wanted: str) -> None:
    store = RetainedMessages()
    for topic in topics:
        store.put(MqttMessage(topic, b"x"), "")
    for topic in removed:
        store.remove(topic)
    left = {topic for topic in topics if topic not in removed}
    assert store.count == len(left)
    found = [message.topic for message in store.match(wanted)]
    assert sorted(found) == sorted(topic for topic in left if matches(wanted, topic))
    for topic in left:
        store.remove(topic)
    assert (store.count, store.size, list(store.walk())) == (0, 0, [])


def test_the_last_one_stays_and_an_empty_one_clears() -> None:
    world = World()
    client = world.connect()
    client.publish("t", b"1", retain=True)
    client.publish("t", b"2", retain=True)
    client.subscribe("t")
    (message,) = client.published()
    assert (message.payload, message.retain) == (b"2", True)
    client.publish("t", b"", retain=True)
    assert client.payloads() == [b""]
    client.subscribe("t")
    assert client.payloads() == []
    assert world.broker.retained == 0
    assert world.disk == {}


@pytest.mark.parametrize("payload", [b"", b"2"])
@pytest.mark.parametrize("qos", [0, 1, 2])
def test_what_is_not_to_be_retained_changes_nothing(qos: int, payload: bytes) -> None:
    client = World().connect()
    client.publish("t", b"1", retain=True)
    client.publish("t", payload, qos)
    client.publish("u", b"3", qos, packet_id=8)
    client.got()
    client.subscribe("#")
    assert client.payloads() == [b"1"]


@pytest.mark.parametrize(("handling", "first", "again"), [(0, [b"1"], [b"1"]), (1, [b"1"], []), (2, [], [])])
def test_retain_handling(handling: int, first: list[bytes], again: list[bytes]) -> None:
    client = World().connect()
    client.publish("t", b"1", retain=True)
    client.subscribe("t", retain_handling=handling)
    assert client.payloads() == first
    client.subscribe("t", retain_handling=handling)
    assert client.payloads() == again


def test_shared_subscriptions_get_none() -> None:
    client = World().connect()
    client.publish("t", b"1", retain=True)
    client.subscribe("$share/g/t")
    assert client.payloads() == []


def test_more_than_the_queue_takes_all_come_as_the_client_acknowledges() -> None:
    client = World().connect()
    for n in range(1_200):
        client.publish(f"t/{n}", b"%d" % n, qos=1, retain=True)
    client.got()
    client.subscribe("t/#", qos=1)
    assert len(client.answer()) == 1_200


def test_what_is_retained_meanwhile_comes_once_and_what_is_cleared_not_at_all() -> None:
    world = World()
    sender, client = world.connect("sender"), world.connect(properties={"receive_maximum": 1})
    for n in range(5):
        sender.publish(f"t/{n}", b"old", qos=1, retain=True)
    client.subscribe("t/#", qos=1)
    (first,) = client.published()
    others = [f"t/{n}" for n in range(5) if f"t/{n}" != first.topic]
    sender.publish(others[0], b"new", qos=1, retain=True)
    sender.publish(others[1], b"", retain=True)
    sender.publish("t/9", b"new", qos=1, retain=True)
    client.send(PubAck(first.packet_id))
    assert sorted(client.answer()) == [b"", b"new", b"new", b"old", b"old"]


def test_looks_for_retained_messages_are_bounded() -> None:
    world = World()
    client = world.connect(version=4)
    world.connect("sender").publish("t", retain=True)
    client.outlet.room = False
    for _ in range(MAX_OFFERED + 10):
        client.send(Subscribe(1, [RequestedSubscription("t")]))
    client.outlet.room = True
    assert client.link is not None
    world.broker.drained(client.link, world.now)
    world.settle()
    assert len(client.published()) == MAX_OFFERED


@pytest.mark.slow
def test_little_waits_for_the_disk_on_its_way_to_one_client() -> None:
    """Behind a SUBACK that is not on disk: else everybody who subscribes holds all that is retained."""
    world = World()
    sender = world.connect("sender")
    for n in range(1_000):
        sender.publish(f"t/{n}", b"x" * 5_000, retain=True)
    client = world.connect(expiry=100)
    client.got()
    world.commits = False
    client.send(Subscribe(1, [RequestedSubscription("t/#")]))
    assert client.link is not None
    assert client.got() == []
    assert MAX_HELD_BACK <= client.link._held_bytes < MAX_HELD_BACK + 6_000
    sender.publish("t/new", b"new")
    world.commit()
    found = client.published()
    assert len(found) in (1_000, 1_001)
    assert client.link._held_bytes == 0


def test_caps_refuse_and_what_is_there_stays() -> None:
    # Of three one user has two at most, and bytes for two and a little.
    world = World(limits=MqttLimits(retained=3, retained_bytes=550))
    client = world.connect()
    old = world.connect("old", version=4)
    for n in range(4):
        client.publish(f"t/{n}", qos=1, retain=True)
    reasons = [packet.reason for packet in client.got() if isinstance(packet, PubAck)]
    assert reasons == [*[Reason.SUCCESS] * 2, *[Reason.QUOTA_EXCEEDED] * 2]
    old.publish("t/9", qos=0, retain=True)
    assert world.broker.counts["not_retained"] == 3
    old.publish("t/9", qos=1, retain=True)
    assert old.got() == []  # it cannot hear "full", and must not take it for kept
    assert old.outlet.is_closed
    client.publish("t/0", b"new", qos=1, retain=True)
    client.got()
    client.subscribe("#")
    assert sorted(client.payloads()) == [b"new", b"x"]
    client.publish("t/0", b"new" * 20, qos=1, retain=True)
    assert client.only(PubAck).reason == Reason.QUOTA_EXCEEDED


def test_what_is_too_old_is_not_given_and_goes() -> None:
    world = World()
    client = world.connect()
    client.publish("t", retain=True, properties={"message_expiry_interval": 5})
    world.pass_time(3)
    client.subscribe("t")
    (message,) = client.published()
    assert message.properties["message_expiry_interval"] == 2
    world.now += 2
    client.subscribe("t")
    assert client.payloads() == []
    world.pass_time(100)
    assert world.broker.retained == 0
    assert world.disk == {}
