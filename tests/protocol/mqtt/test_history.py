"""Histories: what was published, for who asks since when; on disk, within shares, gone in time."""

from __future__ import annotations

from collections import Counter

import pytest
from broker_world import Client, World

from hushcast_protocol.mqtt.kept.message_history import is_message_id
from hushcast_protocol.mqtt.limits import MqttLimits
from hushcast_protocol.mqtt.mqtt_settings import MqttSettings
from hushcast_protocol.mqtt.topics.permissions import FullPermissions
from hushcast_protocol.mqtt.wire.packets import Publish, RequestedSubscription, SubAck, Subscribe

HOUR = 3_600


def world(limits: MqttLimits | None = None) -> World:
    return World(settings=MqttSettings(limits=limits or MqttLimits(), history=("k/#",), history_seconds=HOUR))


def since(client: Client, wanted: str, value: str) -> list[Publish]:
    """Subscribe, and return what comes before the SUBACK; nothing comes behind it."""
    asked = [RequestedSubscription(wanted)]
    client.send(Subscribe(9, asked, {"user_property": [("since", value)]}))
    *messages, last = client.got()
    assert isinstance(last, SubAck)
    assert last.reasons == [0]
    found = [packet for packet in messages if isinstance(packet, Publish)]
    assert len(found) == len(messages)
    return found


def said(packet: Publish) -> dict[str, str]:
    return dict(packet.properties.get("user_property", ()))


@pytest.mark.parametrize("qos", [0, 1])
def test_all_that_was_comes_before_the_suback(qos: int) -> None:
    one = world()
    writer = one.connect("writer")
    for number in range(150):
        writer.publish("k/a", b"%d" % number, qos, packet_id=number + 1)
    reader = one.connect("reader")
    found = since(reader, "k/a", "all")
    assert [int(packet.payload) for packet in found] == list(range(150))
    assert all(packet.retain for packet in found)
    assert all(is_message_id(said(packet)["id"]) for packet in found)
    assert {said(packet)["time"] for packet in found} == {str(int(one.now))}


def test_since_an_id_a_time_or_the_last() -> None:
    one = world()
    writer, reader = one.connect("writer"), one.connect("reader")
    reader.subscribe("k/#")
    for number in range(6):
        writer.publish(f"k/{number % 2}", b"%d" % number)
        one.now += 10
    ids = [said(packet)["id"] for packet in reader.published()]
    other = one.connect("other")

    def payloads(value: str, wanted: str = "k/+") -> list[int]:
        return [int(packet.payload) for packet in since(other, wanted, value)]

    assert payloads(ids[3]) == [4, 5]
    assert payloads(ids[5]) == []
    assert payloads("x" * 12) == list(range(6))
    assert payloads("latest") == [4, 5]
    assert payloads("latest", "k/0") == [4]
    assert payloads(str(int(one.now) - 25)) == [4, 5]
    assert payloads("nonsense") == []
    assert payloads("all", "k/1") == [1, 3, 5]


def test_without_since_nothing_changes() -> None:
    one = world()
    client = one.connect()
    client.publish("k/a", b"1")
    client.publish("other", b"2", retain=True)
    client.subscribe("k/#")
    assert client.payloads() == []
    assert [packet.payload for packet in since(client, "other", "all")] == [b"2"]
    client.got()
    client.publish("other", b"3")
    assert client.only(Publish).properties == {}


def test_what_is_retained_of_a_topic_with_a_history_comes_once() -> None:
    one = world()
    client = one.connect()
    client.publish("k/a", b"1", retain=True)
    assert [packet.payload for packet in since(client, "k/#", "all")] == [b"1"]


def test_an_id_of_the_publisher_s_stays_and_a_time_does_not() -> None:
    one = world()
    client = one.connect()
    client.subscribe("k/a")
    given = [("id", "a" * 12), ("time", "1"), ("title", "t")]
    client.send(Publish("k/a", b"1", properties={"user_property": given}))
    assert said(client.only(Publish)) == {"id": "a" * 12, "time": str(int(one.now)), "title": "t"}
    client.send(Publish("k/a", b"2", properties={"user_property": [("id", "not one")]}))
    assert said(client.only(Publish))["id"] != "not one"


def test_what_is_not_to_be_kept_is_not() -> None:
    one = world()
    client = one.connect()
    client.send(Publish("k/a", b"1", properties={"user_property": [("cache", "no")]}))
    assert since(client, "k/a", "all") == []


def test_it_is_on_disk_and_goes_in_its_time() -> None:
    one = world()
    client = one.connect()
    client.publish("k/a", b"1")
    one.now += HOUR / 2
    client.publish("k/a", b"2", 1)
    one.kill()
    found = since(one.connect(), "k/a", "all")
    assert [packet.payload for packet in found] == [b"1", b"2"]
    assert said(found[1])["time"] == str(int(one.now))
    one.now += HOUR / 2
    one.pass_time(61)
    assert [packet.payload for packet in since(one.connect(), "k/a", "all")] == [b"2"]
    one.now += HOUR / 2
    one.pass_time(61)
    assert one.broker.kept == 0
    assert one.disk == {}


def test_a_refused_filter_gets_nothing_and_its_suback_at_once() -> None:
    one = world()
    client = one.connect()
    client.publish("k/a", b"1")
    asked = [RequestedSubscription("a/" * 40, 1), RequestedSubscription("k/#", 1)]
    client.send(Subscribe(9, asked, {"user_property": [("since", "all")]}))
    first, *_ = client.got()
    assert isinstance(first, SubAck)
    assert first.reasons == [0x8F, 1]


def test_a_user_s_oldest_go_and_nobody_else_s() -> None:
    one = world(MqttLimits(history=50))
    alice, bob = (one.connect(name, permissions=FullPermissions(name)) for name in ("alice", "bob"))
    alice.publish("k/a", b"first")
    for number in range(100):
        bob.publish("k/b", b"%d" % number)
    found = [packet.payload for packet in since(alice, "k/#", "all")]
    assert found[0] == b"first"
    assert found[-1] == b"99"
    assert len(found) < 50
    assert MqttLimits().history == 10_000


def test_bytes_of_histories_are_bounded_as_set() -> None:
    one = world(MqttLimits(history_bytes=10_000))
    client = one.connect()
    for number in range(100):
        client.publish("k/a", b"%d" % number)
    found = [int(packet.payload) for packet in since(client, "k/#", "all")]
    assert found == list(range(100 - len(found), 100))
    assert 20 < len(found) < 40


def test_withdrawn_messages_are_gone() -> None:
    one = world()
    client = one.connect()
    client.publish("k/a", b"1")
    client.publish("k/a", b"2")
    found: Counter[str] = Counter()
    for _ in one.broker.withdraw(lambda message: message.payload == b"1", found):
        pass
    assert [packet.payload for packet in since(client, "k/a", "all")] == [b"2"]
