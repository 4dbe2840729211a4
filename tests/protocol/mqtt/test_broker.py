"""The broker: what clients are granted, what is refused with which reason, and what waits for the disk."""

from __future__ import annotations

from typing import Any

import pytest
from broker_world import Client, World

from hushcast_protocol.mqtt.limits import (
    KEEP_ALIVE,
    MAX_INCOMING,
    MAX_PACKET,
    MAX_TOPIC,
    RECEIVE_MAXIMUM,
    MqttLimits,
)
from hushcast_protocol.mqtt.mqtt_settings import MqttSettings
from hushcast_protocol.mqtt.reason_codes import Reason
from hushcast_protocol.mqtt.topics.permissions import FullPermissions
from hushcast_protocol.mqtt.wire.packets import (
    V5,
    V311,
    Auth,
    ConnAck,
    Connect,
    PingReq,
    PingResp,
    Properties,
    PubAck,
    PubComp,
    Publish,
    PubRec,
    PubRel,
    RequestedSubscription,
    SubAck,
    Subscribe,
    UnsubAck,
    Unsubscribe,
)


def connack(client: Client) -> ConnAck:
    (packet,) = client.got()
    assert isinstance(packet, ConnAck)
    return packet


# CONNECT


def test_a_plain_client_is_told_nothing_that_it_need_not_know() -> None:
    given = connack(World(settings=MqttSettings(maximum_packet=None)).arrive(keep_alive=10))
    assert given == ConnAck(properties={"topic_alias_maximum": 10, "receive_maximum": 20})
    assert connack(World().arrive(keep_alive=10)).properties["maximum_packet_size"] == MAX_PACKET
    assert connack(World().arrive(version=V311)) == ConnAck()


@pytest.mark.parametrize(
    ("asked", "granted"), [(0, KEEP_ALIVE), (60, None), (61, 60), (65_535, 60), (1, None)]
)
def test_keep_alive_is_imposed_on_version_5_alone(asked: int, granted: int | None) -> None:
    world = World()
    assert connack(world.arrive(keep_alive=asked)).properties.get("server_keep_alive") == granted
    for version, seconds in ((V5, granted or asked), (V311, asked)):
        accepted = world.broker.connect(
            Client(world, version).outlet,
            Connect(version, "x", keep_alive=asked),
            FullPermissions(),
            world.now,
        )
        assert accepted is not None
        assert accepted[1] == seconds


def test_a_client_without_an_identifier_gets_one() -> None:
    world = World()
    one, other = (connack(world.arrive("")).properties["assigned_client_identifier"] for _ in "ab")
    assert one != other
    assert connack(world.arrive("", version=V311)).reason == 0


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({"client_id": "x" * 257}, Reason.CLIENT_IDENTIFIER_NOT_VALID),
        ({"client_id": "ä" * 129, "version": V311}, 2),
        ({"client_id": "", "version": V311, "clean": False}, 2),
        ({"properties": {"authentication_method": "SCRAM"}}, Reason.BAD_AUTHENTICATION_METHOD),
    ],
)
def test_refused_with_the_reason(fields: dict[str, Any], reason: int) -> None:
    client = World().arrive(**fields)
    assert client.link is None
    assert client.outlet.is_closed
    assert connack(client).reason == reason


@pytest.mark.parametrize(("largest", "client_id"), [(5, "a"), (4, "x" * 257)], ids=["accepted", "refused"])
def test_a_client_too_narrow_for_a_connack_is_closed(largest: int, client_id: str) -> None:
    client = World().arrive(client_id, properties={"maximum_packet_size": largest})
    assert client.outlet.is_closed
    assert client.got() == []


@pytest.mark.parametrize("act", ["wrong", "taken over", "shut down"])
def test_who_was_not_greeted_yet_hears_no_disconnect(act: str) -> None:
    world = World()
    world.commits = False
    client = world.arrive(expiry=100)
    if act == "wrong":
        client.send(Auth(0x19, {"authentication_method": "x"}))
    elif act == "taken over":
        world.arrive(expiry=100)
    else:
        world.broker.shut_down()
    assert client.outlet.is_closed
    assert client.got() == []


@pytest.mark.parametrize("count", [20, 50])
def test_answers_that_are_too_large_for_a_client_end_its_connection(count: int) -> None:
    """One reason for each filter takes a byte; 5 are the rest of a SUBACK or UNSUBACK."""
    filters = [f"t/{n}" for n in range(count)]
    for packet in (Subscribe(1, [RequestedSubscription(one) for one in filters]), Unsubscribe(1, filters)):
        client = World().connect(properties={"maximum_packet_size": 30})
        client.send(packet)
        if count + 5 <= 30:
            assert len(client.got()) == 1
        else:
            assert client.end == Reason.PACKET_TOO_LARGE


def test_of_two_with_one_identifier_the_later_stays() -> None:
    world = World()
    first = world.connect()
    second = world.connect()
    assert first.end == Reason.SESSION_TAKEN_OVER
    first.lose()
    second.send(PingReq())
    assert second.only(PingResp)
    assert world.broker.connected == 1


def test_the_end_of_the_server_is_told() -> None:
    world = World()
    new, old = world.connect("new"), world.connect("old", version=V311)
    world.broker.shut_down()
    assert (new.end, old.end) == (Reason.SERVER_SHUTTING_DOWN, None)


def test_what_a_client_sends_after_its_end_is_ignored() -> None:
    world = World()
    reader, client = world.connect("reader"), world.connect()
    reader.subscribe("t")
    client.send(Auth(0x19, {"authentication_method": "x"}))
    assert client.end == Reason.PROTOCOL_ERROR
    client.publish("t")
    assert reader.got() == []


# PUBLISH


class Picky(FullPermissions):
    def may_publish(self, topic: str) -> bool:
        return topic != "secret"

    def may_subscribe(self, wanted: str) -> bool:
        return wanted != "secret"

    def may_receive(self, topic: str) -> bool:
        return topic != "hidden"


@pytest.mark.parametrize(
    ("topic", "reason"),
    [
        ("t", Reason.SUCCESS),
        ("secret", Reason.NOT_AUTHORIZED),
        ("$SYS/broker/version", Reason.TOPIC_NAME_INVALID),
        ("$anything", Reason.TOPIC_NAME_INVALID),
        ("a/" * 31 + "a", Reason.SUCCESS),
        ("a/" * 32 + "a", Reason.TOPIC_NAME_INVALID),
        ("a" * MAX_TOPIC, Reason.SUCCESS),
        ("a" * (MAX_TOPIC + 1), Reason.TOPIC_NAME_INVALID),
    ],
)
def test_answers_to_a_publish(topic: str, reason: int) -> None:
    world = World()
    client = world.connect(permissions=Picky())
    client.publish(topic, qos=1)
    assert client.only(PubAck) == PubAck(7, reason)
    client.publish(topic, qos=2)
    assert client.only(PubRec) == PubRec(7, reason if reason >= 0x80 else 0)
    client.publish(topic)
    assert client.got() == []
    old = world.connect("old", V311, permissions=Picky())
    old.publish(topic, qos=1)
    assert old.only(PubAck) == PubAck(7)
    old.publish(topic, qos=2)
    assert old.only(PubRec) == PubRec(7)
    assert not old.outlet.is_closed


def test_a_payload_that_is_no_text_but_says_so_is_refused() -> None:
    client = World().connect()
    client.publish("t", b"\xff", 1, properties={"payload_format_indicator": 1})
    assert client.only(PubAck).reason == Reason.PAYLOAD_FORMAT_INVALID


def test_the_receive_maximum_counts_what_is_not_answered() -> None:
    world = World()
    client = world.connect()
    for n in range(RECEIVE_MAXIMUM):
        client.publish("t", qos=2, packet_id=n + 1)
    assert len(client.got()) == RECEIVE_MAXIMUM
    client.publish("t", qos=2, packet_id=1, dup=True)  # the same again does not count
    client.send(PubRel(1))
    client.got()
    client.publish("t", qos=2, packet_id=1)
    client.publish("t", qos=1, packet_id=99)
    assert client.end == Reason.RECEIVE_MAXIMUM_EXCEEDED


def test_messages_of_qos_1_that_wait_for_the_disk_count_too() -> None:
    world = World()
    world.connect("durable", expiry=10).subscribe("t", qos=1)
    client = world.connect()
    world.commits = False
    for n in range(RECEIVE_MAXIMUM):
        client.publish("t", qos=1, packet_id=n + 1)
    assert client.got() == []
    world.commit()
    assert len(client.got()) == RECEIVE_MAXIMUM
    for n in range(RECEIVE_MAXIMUM + 1):
        client.publish("t", qos=1, packet_id=n + 1)
    assert client.end == Reason.RECEIVE_MAXIMUM_EXCEEDED


def test_a_client_of_3_1_1_cannot_open_exchanges_without_end() -> None:
    client = World().connect(version=V311)
    for n in range(MAX_INCOMING + 1):
        client.publish("t", qos=2, packet_id=n + 1)
    assert len(client.got()) == MAX_INCOMING
    assert client.outlet.is_closed


def test_qos_2_is_taken_once() -> None:
    world = World()
    reader, client = world.connect("reader"), world.connect()
    reader.subscribe("t", qos=0)
    client.publish("t", b"1", qos=2)
    client.publish("t", b"1", qos=2, dup=True)
    client.send(PubRel(7), PubRel(7))
    assert client.got() == [PubRec(7), PubRec(7), PubComp(7), PubComp(7)]
    client.publish("t", b"2", qos=2)
    assert reader.payloads() == [b"1", b"2"]


# Topic aliases


def test_aliases_of_clients() -> None:
    world = World()
    client = world.connect()
    client.subscribe("#", qos=0)
    client.publish("a", b"1", properties={"topic_alias": 10})
    client.publish("", b"2", properties={"topic_alias": 10})
    client.publish("b", b"3", properties={"topic_alias": 10})
    client.publish("", b"4", properties={"topic_alias": 10})
    assert [packet.topic for packet in client.published()] == ["a", "a", "b", "b"]
    client.publish("", properties={"topic_alias": 1})
    assert client.end == Reason.TOPIC_ALIAS_INVALID
    client = world.connect()
    client.publish("a", properties={"topic_alias": 11})
    assert client.end == Reason.TOPIC_ALIAS_INVALID


def test_aliases_end_with_the_connection() -> None:
    world = World()
    client = world.connect(expiry=100)
    client.publish("a", properties={"topic_alias": 1})
    client.lose()
    client = world.connect(clean=False, expiry=100)
    client.publish("", properties={"topic_alias": 1})
    assert client.end == Reason.TOPIC_ALIAS_INVALID


def test_aliases_that_we_set_for_clients_that_take_them() -> None:
    world = World()
    reader, client = world.connect("reader", properties={"topic_alias_maximum": 1}), world.connect()
    reader.subscribe("#")
    for topic, qos in (("a", 0), ("b", 0), ("a", 1), ("b", 2), ("a", 0)):
        client.publish(topic, qos=qos)
    found = [(packet.topic, packet.properties.get("topic_alias")) for packet in reader.published()]
    assert found == [("a", 1), ("b", None), ("", 1), ("b", None), ("", 1)]


@pytest.mark.parametrize(("allowed", "used"), [(None, 0), (0, 0), (1, 1), (3, 3), (65_535, 10)])
def test_no_more_aliases_than_a_client_takes(allowed: int | None, used: int) -> None:
    world = World()
    reader = world.connect("reader", properties={} if allowed is None else {"topic_alias_maximum": allowed})
    reader.subscribe("#")
    client = world.connect()
    for n in range(20):
        client.publish(f"t/{n}", qos=n % 2)
    aliases = [packet.properties.get("topic_alias") for packet in reader.published()]
    assert [one for one in aliases if one] == list(range(1, used + 1))


@pytest.mark.parametrize("alias", range(1, 11))
def test_every_alias_up_to_ours_is_taken(alias: int) -> None:
    client = World().connect()
    client.subscribe("#", qos=0)
    client.publish("a", properties={"topic_alias": alias})
    client.publish("", properties={"topic_alias": alias})
    assert [packet.topic for packet in client.published()] == ["a", "a"]


def test_an_alias_never_overtakes_its_topic() -> None:
    world = World()
    reader = world.connect("reader", expiry=10, properties={"topic_alias_maximum": 1})
    reader.subscribe("t")
    client = world.connect()
    world.commits = False
    client.publish("t", b"1", qos=1)
    client.publish("t", b"2")
    assert reader.got() == []
    world.commit()
    assert [packet.topic for packet in reader.published()] == ["t", ""]


# SUBSCRIBE


def test_answers_to_subscribe() -> None:
    client = World().connect(permissions=Picky())
    deep, long = "a/" * 31 + "#", "a" * MAX_TOPIC
    reasons = client.subscribe("t", "secret", "$share/g/secret", deep, "$SYS/#", "t", long)
    refused = Reason.NOT_AUTHORIZED
    assert reasons == [2, refused, refused, 2, 2, 2, 2]
    assert client.subscribe("a/" + deep, long + "a") == [Reason.TOPIC_FILTER_INVALID] * 2
    client.send(Unsubscribe(3, ["t", "t", "secret"]))
    gone = Reason.NO_SUBSCRIPTION_EXISTED
    (answer,) = [packet for packet in client.got() if isinstance(packet, UnsubAck)]
    assert answer.reasons == [0, gone, gone]


def test_no_client_gets_more_filters_than_the_cap() -> None:
    world = World(limits=MqttLimits(filters=20))
    client = world.connect()
    assert client.subscribe(*[f"t/{n}" for n in range(21)]) == [
        *[2] * 20,
        Reason.QUOTA_EXCEEDED,
    ]
    assert client.subscribe("t/0", qos=1) == [1]
    client.send(Unsubscribe(3, ["t/0"]))
    assert client.subscribe("new") == [2]
    old = world.connect("old", V311)
    assert old.subscribe(*[f"t/{n}" for n in range(21)])[-1] == 0x80


def test_no_user_gets_more_filters_than_the_cap() -> None:
    world = World(limits=MqttLimits(user_filters=3))
    one, two = world.connect("one", expiry=60), world.connect("two")
    assert one.subscribe("a", "b") == [2, 2]
    assert two.subscribe("a", "b") == [2, Reason.QUOTA_EXCEEDED]
    assert one.subscribe("a", qos=1) == [1]
    other = world.connect("three", permissions=FullPermissions("another"))
    assert other.subscribe("b", "c") == [2, 2]
    one.send(Unsubscribe(3, ["b"]))
    assert two.subscribe("b", "c") == [2, Reason.QUOTA_EXCEEDED]
    world.kill()
    two = world.connect("two")
    assert two.subscribe("b", "c", "d") == [2, 2, Reason.QUOTA_EXCEEDED], "one's is kept, two's went"


def test_only_the_very_filter_is_unsubscribed() -> None:
    world = World()
    client = world.connect()
    client.subscribe("a/b", "a/+", "a/#", qos=0)
    client.send(Unsubscribe(3, ["a/B", "#", "+/b", "a/b/", "a/+"]))
    gone = Reason.NO_SUBSCRIPTION_EXISTED
    assert client.got() == [UnsubAck(3, [gone, gone, gone, gone, 0])]
    client.publish("a/c")
    client.send(Unsubscribe(4, ["a/#"]))
    client.publish("a/c")
    client.publish("a/b")
    assert [packet.topic for packet in client.published()] == ["a/c", "a/b"]


def test_overlapping_subscriptions_bring_one_message_with_all_identifiers() -> None:
    world = World()
    client = world.connect()
    client.subscribe("a/#", qos=1, properties={"subscription_identifier": [3]})
    client.subscribe("a/b", qos=2, properties={"subscription_identifier": [5]})
    client.subscribe("+/b", qos=0)
    world.connect("sender").publish("a/b", qos=2)
    (packet,) = client.published()
    assert packet.qos == 2
    assert sorted(packet.properties["subscription_identifier"]) == [3, 5]


def test_a_subscription_made_again_takes_the_place_of_the_first() -> None:
    world = World()
    client = world.connect()
    client.subscribe("t", qos=2, properties={"subscription_identifier": [3]})
    client.subscribe("t", qos=0)
    world.connect("sender").publish("t", qos=2)
    (packet,) = client.published()
    assert (packet.qos, packet.properties) == (0, {})


def test_no_local_spares_what_came_from_oneself() -> None:
    client = World().connect()
    client.subscribe("t/#", no_local=True, properties={"subscription_identifier": [1]})
    client.publish("t/a")
    assert client.published() == []
    client.subscribe("t/a", properties={"subscription_identifier": [2]})
    client.publish("t/a")
    (packet,) = client.published()
    assert packet.properties["subscription_identifier"] == [2]


def test_retain_as_published() -> None:
    world = World()
    plain, as_published = world.connect("a"), world.connect("b")
    plain.subscribe("t")
    as_published.subscribe("t", retain_as_published=True)
    sender = world.connect("sender")
    for retain in (True, False):
        for qos in (0, 1):
            sender.publish("t", qos=qos, retain=retain)
            assert [client.published()[0].retain for client in (plain, as_published)] == [False, retain]


def test_properties_go_with_a_message_to_version_5() -> None:
    world = World()
    new, old = world.connect("new"), world.connect("old", V311)
    for client in (new, old):
        client.subscribe("t")
    given: Properties = {
        "payload_format_indicator": 1,
        "content_type": "text",
        "response_topic": "r",
        "correlation_data": b"\x00",
        "user_property": [("a", "1"), ("b", "2"), ("a", "3")],
        "message_expiry_interval": 9,
    }
    world.connect("sender").publish("t", properties={**given, "topic_alias": 1})
    assert new.published()[0].properties == given
    assert old.published()[0].properties == {}


def test_what_a_client_may_not_have_is_not_handed_out() -> None:
    world = World()
    sender = world.connect("sender")
    sender.publish("hidden", retain=True)
    client = world.connect(permissions=Picky(), expiry=100)
    client.subscribe("#")
    sender.publish("hidden", qos=0)
    sender.publish("hidden", qos=1)
    assert client.got() == []
    client.lose()
    sender.publish("hidden", qos=1)
    assert world.connect(clean=False, permissions=Picky(), expiry=100).got() == []
    assert world.broker.counts["dropped_forbidden"] == 4


def test_what_is_too_large_for_a_client_is_as_if_it_had_been_sent() -> None:
    world = World()
    client = world.connect(expiry=100, properties={"maximum_packet_size": 50})
    client.subscribe("t")
    sender = world.connect("sender")
    for qos in (0, 1, 2):
        sender.publish("t", b"x" * 60, qos=qos)
        sender.publish("t", b"fits", qos=qos, packet_id=8)
    assert client.answer() == [b"fits"] * 3
    assert world.broker.held_bytes == 0
    assert "mqtt-message" not in world.kinds()


def test_a_client_that_does_not_read_misses_qos_0_and_nothing_else() -> None:
    world = World()
    client = world.connect()
    client.subscribe("t")
    client.outlet.room = False
    sender = world.connect("sender")
    for n in range(4):
        sender.publish("t", b"%d" % n, qos=n % 2)
    assert client.got() == []
    client.outlet.room = True
    assert client.link is not None
    world.broker.drained(client.link, world.now)
    assert client.payloads() == [b"1", b"3"]
    assert world.broker.counts["dropped_slow"] == 2


def test_the_server_tells_of_itself_to_those_who_ask() -> None:
    world = World(settings=MqttSettings(version="1.2"))
    world.pass_time(1)
    client, other = world.connect(), world.connect("other")
    other.subscribe("#", "+/broker/version")
    client.subscribe("$SYS/#")
    values = {packet.topic: packet.payload for packet in client.published()}
    assert values["$SYS/broker/version"] == b"hushcast 1.2"
    assert values["$SYS/broker/clients/connected"] == b"0"
    world.pass_time(10)
    values = {packet.topic: packet.payload for packet in client.published()}
    assert values["$SYS/broker/clients/connected"] == b"2"
    assert other.got() == []


# The disk


def publisher_of(qos: int) -> Any:
    return lambda client: client.publish("t", qos=qos)


@pytest.mark.parametrize(
    ("act", "answer"),
    [
        (publisher_of(1), PubAck),
        (publisher_of(2), PubRec),
        (lambda client: client.send(Subscribe(1, [RequestedSubscription("u", 1)])), SubAck),
        (lambda client: client.send(Unsubscribe(1, ["t"])), UnsubAck),
    ],
)
def test_nothing_is_acknowledged_before_the_disk_has_it(act: Any, answer: type) -> None:
    world = World()
    client = world.connect(expiry=100)
    client.subscribe("t", qos=0)
    client.publish("t", qos=2, packet_id=50)
    reader = world.connect("reader", expiry=100)
    reader.subscribe("t")
    client.got()
    world.commits = False
    act(client)
    assert [packet for packet in client.got() if not isinstance(packet, Publish)] == []
    assert reader.got() == []  # neither is what a crash must not number anew
    world.commit()
    assert answer in [type(packet) for packet in client.got()]


def test_the_end_of_an_exchange_waits_for_the_disk_on_both_ways() -> None:
    world = World()
    client = world.connect(expiry=100)
    client.subscribe("t")
    client.publish("t", qos=2)
    packet = next(one for one in client.got() if isinstance(one, Publish))
    world.commits = False
    client.send(PubRec(packet.packet_id), PubRel(7))
    assert client.got() == []
    world.commit()
    assert client.got() == [PubRel(packet.packet_id), PubComp(7)]


def test_a_connack_waits_for_its_session() -> None:
    world = World()
    world.commits = False
    client = world.arrive(expiry=100)
    world.connect("brief").publish("t", retain=True)
    client.send(PingReq())
    assert client.got() == []
    world.commit()
    assert [type(packet) for packet in client.got()] == [ConnAck, PingResp]


def test_what_needs_no_disk_does_not_wait_for_it() -> None:
    world = World()
    brief, sender = world.connect("brief"), world.connect("sender")
    brief.subscribe("t")
    durable = world.connect("durable", expiry=100)
    durable.subscribe("t", "u", qos=1)
    world.commits = False
    sender.publish("u", qos=1, packet_id=1)
    made = world.broker.ledger.made
    sender.publish("t", b"0")
    assert brief.payloads() == [b"0"]
    assert durable.payloads() == [b"0"]
    durable.send(Unsubscribe(1, ["t"]))
    made = world.broker.ledger.made
    other = world.connect("other")
    other.publish("t", b"1", qos=1)
    assert other.only(PubAck)
    assert brief.payloads() == [b"1"]
    assert world.broker.ledger.made == made


def test_acknowledgements_keep_their_order() -> None:
    world = World()
    world.connect("durable", expiry=100).subscribe("t")
    client = world.connect()
    world.commits = False
    client.publish("t", qos=1, packet_id=1)
    client.publish("nobody", qos=1, packet_id=2)
    assert client.got() == []
    world.commit()
    assert [packet.packet_id for packet in client.got()] == [1, 2]  # type: ignore[union-attr]
