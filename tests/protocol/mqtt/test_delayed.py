"""Delayed messages: they wait on disk until they are due, and are published as if they came then."""

from __future__ import annotations

import pytest
from broker_world import Client, World
from test_beyond import Network

from hushcast_protocol.mqtt.kept.delayed_messages import delay_of
from hushcast_protocol.mqtt.limits import MAX_SESSION_SECONDS, MqttLimits
from hushcast_protocol.mqtt.reason_codes import Reason
from hushcast_protocol.mqtt.topics.access import Access, AccessPermissions
from hushcast_protocol.mqtt.topics.permissions import FullPermissions
from hushcast_protocol.mqtt.wire.packets import V311, PubAck, PubRec, PubRel

SOME = MqttLimits(delayed=10)
PICKY = AccessPermissions(Access(("home/#",), ()), "mallory", "frost")


def reason_of(client: Client, topic: str, **more: object) -> int:
    """Publish at QoS 1, and return the answer's reason."""
    client.got()
    client.publish(topic, b"x", 1, **more)  # type: ignore[arg-type]
    return client.only(PubAck).reason


def test_forms() -> None:
    assert delay_of("$delayed/0/t") == (0, "t")
    assert delay_of("$delayed/007/a//b\n") == (7, "a//b\n")
    assert delay_of(f"$delayed/{MAX_SESSION_SECONDS}/t") == (MAX_SESSION_SECONDS, "t")
    for wrong in (
        "5",
        "/t",
        "-1/t",
        "5/",
        "x/t",
        "1.5/t",
        "²/t",
        f"{MAX_SESSION_SECONDS + 1}/t",
        "9" * 50 + "/t",
    ):
        assert delay_of(f"$delayed/{wrong}") is None


def test_it_is_no_topic_unless_it_is_set() -> None:
    world = World()
    client = world.connect()
    assert reason_of(client, "$delayed/5/t") == Reason.TOPIC_NAME_INVALID
    world.pass_time(10)
    assert world.broker.delayed.count == 0


@pytest.mark.parametrize("qos", [0, 1, 2])
def test_a_message_comes_when_it_is_due(qos: int) -> None:
    world = World(limits=SOME)
    client = world.connect()
    client.subscribe("t")
    client.publish("$delayed/5/t", b"x", qos, retain=True, properties={"content_type": "text"})
    if qos == 2:
        client.only(PubRec)
        client.publish("$delayed/5/t", b"x", qos, dup=True, retain=True)
        client.only(PubRec)
        client.send(PubRel(7))
    client.got()
    world.pass_time(4)
    assert client.got() == []
    assert world.broker.retained == 0
    world.pass_time(2)
    (message,) = client.published()
    assert (message.topic, message.payload, message.qos) == ("t", b"x", qos)
    assert message.properties == {"content_type": "text"}
    assert world.broker.retained == 1
    assert world.broker.delayed.count == 0
    assert world.kinds().keys() == {"mqtt-message", "mqtt-retained"}


def test_it_waits_over_a_kill_whoever_goes() -> None:
    world = World(limits=SOME)
    client = world.connect("frost", permissions=FullPermissions("mallory"))
    assert reason_of(client, "$delayed/50/t", retain=True) == 0
    assert reason_of(client, "$delayed/20/u", retain=True) == 0
    client.leave()
    world.kill()
    assert [one.message.topic for one in world.broker.delayed.waiting()] == ["u", "t"]
    assert world.broker.delayed.waiting()[0].sender.user == "mallory"
    reader = world.connect("reader")
    reader.subscribe("+", qos=1)
    world.now += 30
    world.kill()  # what is due while it is down comes at the start
    reader = world.connect("reader")
    reader.subscribe("+", qos=1)
    world.pass_time(1)
    assert [one.topic for one in reader.published()] == ["u"]
    world.pass_time(30)
    assert [one.topic for one in reader.published()] == ["t"]
    assert world.broker.delayed.count == 0
    assert world.kinds().keys() == {"mqtt-message", "mqtt-retained"}


def test_what_may_not_be_published_is_refused_now_or_when_it_is_due() -> None:
    world = World(limits=SOME)
    client = world.connect("frost", permissions=PICKY)
    for topic, reason in (
        ("$delayed/5/secret", Reason.NOT_AUTHORIZED),
        ("$delayed/5/$SYS/x", Reason.TOPIC_NAME_INVALID),
        ("$delayed/5/$delayed/5/home/x", Reason.TOPIC_NAME_INVALID),
        ("$delayed/x/home/x", Reason.TOPIC_NAME_INVALID),
        ("$delayed/5/home/" + "x" * 1_024, Reason.TOPIC_NAME_INVALID),
        ("$delayed/5/home/x", Reason.SUCCESS),
    ):
        assert reason_of(client, topic) == reason
    reader = world.connect("reader")
    reader.subscribe("#")
    client.lose()
    world.permissions_of = lambda user, client_id: AccessPermissions(Access(), user, client_id)
    world.kill()  # with a configuration that has no such user
    reader = world.connect("reader")
    reader.subscribe("#")
    world.pass_time(10)
    assert reader.published() == []
    assert world.broker.counts["dropped_forbidden"] == 1
    assert world.kinds() == {}


def test_no_more_wait_than_may_and_each_user_has_a_share() -> None:
    world = World(limits=SOME)
    client = world.connect("frost", permissions=FullPermissions("mallory"))
    reasons = [reason_of(client, "$delayed/5/t") for _ in range(10)]
    assert reasons == [0] * 8 + [Reason.QUOTA_EXCEEDED] * 2
    assert world.broker.counts["not_delayed"] == 2
    assert reason_of(world.connect("other"), "$delayed/5/t") == 0
    old = world.connect("old", V311, permissions=FullPermissions("mallory"))
    old.publish("$delayed/5/t", b"x", 1)
    assert old.outlet.is_closed, "it cannot hear that there is no room"
    world.kill()
    assert world.broker.delayed.count == 9
    world.pass_time(10)
    assert world.broker.delayed.count == 0


def test_its_expiry_is_counted_from_then() -> None:
    world = World(limits=SOME)
    client = world.connect()
    client.subscribe("t")
    client.publish("$delayed/50/t", properties={"message_expiry_interval": 10})
    world.pass_time(50)
    (message,) = client.published()
    assert message.properties == {"message_expiry_interval": 10}


@pytest.mark.parametrize("topic", ["hush/x", "map/x"])
def test_what_travels_stays_on_disk_until_the_network_has_it(topic: str) -> None:
    network = Network()
    world = World(network, limits=SOME)
    reader = world.connect("reader")
    reader.subscribe(topic)
    assert reason_of(world.connect(), f"$delayed/5/{topic}") == 0
    world.pass_time(6)
    is_local = topic.startswith("map/")
    assert reader.payloads() == [b"x"] * is_local, "a house goes on without the network"
    world.answer(network.waiting[0], Reason.QUOTA_EXCEEDED)
    world.pass_time(61)
    network.filters.clear()
    world.kill()
    reader = world.connect("reader")
    reader.subscribe(topic)
    world.pass_time(1)
    assert len(set(network.tokens)) == 1, "by which the network takes it once"
    assert [one[:2] for one in network.taken] == [(topic, b"x")] * 3
    world.answer(network.waiting[-1], Reason.SUCCESS)
    world.settle()
    assert len(reader.payloads()) == 1
    assert world.broker.delayed.count == 0
    assert world.kinds() == {}


def test_what_the_network_refuses_for_good_is_counted() -> None:
    network = Network()
    world = World(network, limits=SOME)
    assert reason_of(world.connect(), "$delayed/5/hush/x") == 0
    world.pass_time(6)
    world.answer(network.waiting[0], Reason.NOT_AUTHORIZED)
    world.settle()
    assert world.broker.counts["dropped_delayed"] == 1
    assert world.kinds() == {}
