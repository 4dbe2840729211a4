"""The network beyond a broker: what is handed over, what is answered, what arrives."""

from __future__ import annotations

import pytest
from broker_world import Client, World

from hushcast_protocol.mqtt import ingress
from hushcast_protocol.mqtt.network_publication import NetworkPublication
from hushcast_protocol.mqtt.reason_codes import Reason
from hushcast_protocol.mqtt.topics.topic_names import NamedTopic, alone
from hushcast_protocol.mqtt.wire.packets import (
    V5,
    V311,
    Properties,
    PubAck,
    Publish,
    PubRec,
    RequestedSubscription,
    Subscribe,
    Unsubscribe,
)


class Network:
    """A network that takes `hush/`, and answers when told to."""

    def __init__(self) -> None:
        self.taken: list[tuple[str, bytes, bool, Properties]] = []
        self.tokens: list[bytes] = []
        self.waiting: list[NetworkPublication] = []
        self.filters: set[str] = set()

    def takes(self, topic: str) -> bool:
        return topic.startswith(("hush/", "map/"))

    def is_local_too(self, topic: str) -> bool:
        return topic.startswith("map/")

    def names(self, topic: str) -> NamedTopic:
        return alone(topic)

    def names_of_filter(self, wanted: str) -> NamedTopic:
        return alone(wanted)

    def topics(self, topic: str) -> tuple[str, ...]:
        return (topic,) if self.is_local_too(topic) else (topic, topic.replace("hush/", "also/"))

    def publish(self, publication: NetworkPublication) -> int | None:
        one = publication.message
        self.taken.append((one.topic, one.payload, one.retain, one.properties))
        self.tokens.append(publication.token)
        self.waiting.append(publication)
        return None

    def grants(self, user: str, wanted: str, qos: int) -> int:
        if wanted == "hush/open/#":
            return Reason.WILDCARD_SUBSCRIPTIONS_NOT_SUPPORTED
        return min(qos, 1) if self.takes(wanted) else qos

    def wanted(self, user: str, wanted: str) -> None:
        assert wanted not in self.filters
        self.filters.add(wanted)

    def unwanted(self, wanted: str) -> None:
        self.filters.remove(wanted)


@pytest.mark.parametrize("reason", [Reason.SUCCESS, Reason.QUOTA_EXCEEDED])
@pytest.mark.parametrize("qos", [0, 1, 2])
def test_what_is_local_too_is_delivered_at_once_and_once(qos: int, reason: Reason) -> None:
    network = Network()
    world = World(network)
    reader = world.connect("reader")
    reader.subscribe("map/a")
    writer = world.connect("writer")
    writer.got()
    writer.publish("map/a", b"0", qos)
    assert reader.payloads() == [b"0"]
    assert writer.got() == []
    world.answer(network.waiting.pop(), reason)
    assert [packet.reason for packet in writer.got()] == ([reason] if qos else [])  # type: ignore[union-attr]
    assert reader.payloads() == []


def test_what_belongs_to_the_network_is_handed_over_before_it_is_delivered_here() -> None:
    network = Network()
    world = World(network)
    client = world.connect()
    assert client.subscribe("hush/a", "t", "hush/open/#") == [1, 2, 0xA2]
    client.publish("hush/a", b"0", properties={"content_type": "c", "topic_alias": 1})
    client.publish("", b"1", qos=1, retain=True, properties={"topic_alias": 1})
    assert network.taken == [("hush/a", b"0", False, {"content_type": "c"}), ("hush/a", b"1", True, {})]
    assert client.got() == []
    client.publish("t", qos=1, packet_id=8)
    (packet,) = client.got()  # the PUBACK keeps its place, and is in nobody's way
    assert isinstance(packet, Publish)
    assert packet.qos == 1
    world.answer(network.waiting[0], 0)
    world.answer(network.waiting[1], 0)
    world.settle()  # the retained one is kept here, too
    told = client.got()
    assert [packet for packet in told if isinstance(packet, PubAck)] == [PubAck(7), PubAck(8)]
    assert [packet.payload for packet in told if isinstance(packet, Publish)] == [b"0", b"1"]


def test_what_the_network_refuses_is_delivered_to_nobody() -> None:
    network = Network()
    client = World(network).connect()
    client.subscribe("hush/a", "also/a")
    for qos in (0, 1):
        client.publish("hush/a", qos=qos)
    for publication in network.waiting:
        client.world.answer(publication, Reason.QUOTA_EXCEEDED)
    assert client.got() == [PubAck(7, Reason.QUOTA_EXCEEDED)]


def test_the_clients_here_get_it_under_each_of_its_topics() -> None:
    network = Network()
    world = World(network)
    one, other = world.connect("one"), world.connect("other")
    one.send(
        Subscribe(1, [RequestedSubscription("hush/a", 1, no_local=True), RequestedSubscription("also/a", 1)])
    )
    other.subscribe("hush/+")
    one.got()
    one.publish("hush/a", b"x", qos=1)
    world.answer(network.waiting[0], 0)
    assert [packet.topic for packet in one.got() if isinstance(packet, Publish)] == ["also/a"]
    assert [packet.topic for packet in other.got() if isinstance(packet, Publish)] == ["hush/a"]


def test_what_is_delivered_here_is_on_disk_before_it_is_acknowledged() -> None:
    network = Network()
    world = World(network)
    reader, writer = world.connect("reader", expiry=100), world.connect("writer")
    reader.send(Subscribe(1, [RequestedSubscription("hush/a", 1)]))
    world.settle()
    writer.publish("hush/a", b"x", qos=1)
    world.answer(network.waiting[0], 0)
    assert writer.got() == []
    world.settle()
    assert writer.got() == [PubAck(7)]


@pytest.mark.parametrize("version", [V5, V311])
def test_a_refusal_of_the_network_is_told_where_it_can_be(version: int) -> None:
    network = Network()
    client = World(network).connect(version=version)
    for qos in (1, 2):
        client.publish("hush/a", qos=qos, packet_id=qos)
    for publication in network.waiting:
        client.world.answer(publication, Reason.IMPLEMENTATION_SPECIFIC_ERROR)
    reason = Reason.IMPLEMENTATION_SPECIFIC_ERROR if version == V5 else 0
    assert client.got() == [PubAck(1, reason), PubRec(2, reason)]
    client.publish("hush/a", qos=1)
    client.world.answer(network.waiting[-1], Reason.QUOTA_EXCEEDED)
    assert client.outlet.is_closed is (version == V311)


@pytest.mark.parametrize("is_back", [False, True])
def test_what_a_client_of_3_1_1_was_not_told_is_full_it_sends_again(is_back: bool) -> None:
    """It is disconnected, wherever it is by then; PUBREC for what was refused would lose it."""
    network = Network()
    world = World(network)

    def connected() -> Client:
        return world.connect(version=V311, clean=False)

    client = connected()
    client.publish("hush/a", b"x", qos=2, packet_id=2)
    if is_back:
        client.lose()
        client = connected()
        client.publish("hush/a", b"x", qos=2, packet_id=2, dup=True)
    world.answer(network.waiting[-1], Reason.QUOTA_EXCEEDED)
    assert client.outlet.is_closed
    back = connected()
    back.publish("hush/a", b"x", qos=2, packet_id=2, dup=True)
    assert len(network.taken) == 2
    world.answer(network.waiting[-1], 0)
    world.settle()
    assert back.got() == [PubRec(2)]


def test_qos_2_to_the_network_is_handed_over_once() -> None:
    network = Network()
    world = World(network)
    client = world.connect(expiry=100)
    client.publish("hush/a", qos=2)
    client.lose()
    back = world.connect(clean=False, expiry=100)
    back.publish("hush/a", qos=2, dup=True)
    assert len(network.taken) == 1
    assert back.got() == []
    world.answer(network.waiting[0], 0)
    world.settle()
    assert back.only(PubRec) == PubRec(7)
    back.publish("hush/a", qos=2, dup=True)
    assert back.only(PubRec) == PubRec(7)
    assert len(network.taken) == 1


def test_what_the_network_takes_after_its_session_ended_is_nobody_elses() -> None:
    network = Network()
    world = World(network)
    world.connect("a", expiry=100).publish("hush/a", qos=2)
    world.connect("a").lose()  # begun anew, and ended
    world.answer(network.waiting[0], 0)
    world.settle()
    assert world.kinds() == {}
    world.kill()
    world.connect("b", expiry=100).lose()
    world.kill()
    other = world.connect("b", clean=False, expiry=100)
    other.publish("hush/a", qos=2)
    assert len(network.taken) == 2, "a packet identifier is of one client"


def test_what_an_ended_session_left_on_disk_is_nobody_elses() -> None:
    """Earlier versions left packet identifiers of sessions that had ended, whose numbers are given anew."""
    network = Network()
    world = World(network)
    world.disk["mqtt-incoming", (1).to_bytes(8, "big") + (7).to_bytes(2, "big")] = b""
    world.kill()
    world.connect(expiry=100).lose()
    world.kill()
    world.connect(clean=False, expiry=100).publish("hush/a", qos=2)
    assert len(network.taken) == 1


def test_the_network_hears_which_filters_somebody_has() -> None:
    network = Network()
    world = World(network)
    one, other = world.connect("one", expiry=100), world.connect("other")
    one.subscribe("hush/a", "$share/g/hush/b")
    other.subscribe("hush/a", "hush/b")
    other.send(Unsubscribe(1, ["hush/a"]))
    other.lose()
    assert network.filters == {"hush/a", "hush/b"}
    network.filters.clear()
    world.kill()
    assert network.filters == {"hush/a", "hush/b"}
    world.connect("one")
    assert network.filters == set()


def test_what_arrives_from_the_network_is_delivered_and_told_once_it_is_safe() -> None:
    world = World(Network())
    brief, durable = world.connect("brief"), world.connect("durable", expiry=100)
    told: list[str] = []
    for client in (brief, durable):
        client.subscribe("hush/#", qos=1)
    world.commits = False
    before = world.broker.ledger.made
    world.broker.arrived("hush/a", b"1", 1, True, {}, world.now)
    world.broker.ledger.once_stored(before, lambda: told.append("1"))
    assert brief.payloads() == [b"1"]
    assert told == []
    world.commit()
    assert told == ["1"]
    assert durable.payloads() == [b"1"]
    before = world.broker.ledger.made
    world.broker.arrived("hush/a", b"0", 0, False, {}, world.now)
    world.broker.ledger.once_stored(before, lambda: told.append("0"))
    assert told == ["1", "0"]
    late = world.connect("late")
    late.subscribe("hush/a")
    assert late.payloads() == [b"1"]


def test_a_will_may_go_to_the_network() -> None:
    from hushcast_protocol.mqtt.wire.packets import Will

    network = Network()
    world = World(network)
    world.connect(will=Will("hush/a", b"gone", 1)).lose()
    assert network.taken == [("hush/a", b"gone", False, {})]


def test_what_the_network_is_handed_at_qos_2_has_a_token_that_is_on_disk_before() -> None:
    network = Network()
    world = World(network)
    writer = world.connect("writer", expiry=100)
    world.commits = False
    writer.publish("hush/a", b"0", 2)
    assert network.taken == []
    world.commit()
    (token,) = network.tokens
    assert len(token) == 16
    assert world.kinds()["mqtt-pending"] == 1
    world.commits = True
    world.kill()
    writer = world.connect("writer", clean=False, expiry=100)
    writer.publish("hush/a", b"0", 2, dup=True)
    assert network.tokens == [token, token]
    world.answer(network.waiting.pop(), 0)
    world.settle()
    assert writer.got() == [PubRec(7)]
    assert "mqtt-pending" not in world.kinds()
    writer.publish("hush/a", b"0", 2, packet_id=8)
    writer.leave(session_expiry_interval=0)
    assert len({*network.tokens}) == 2
    assert world.disk == {}


def test_an_identifier_that_is_used_anew_is_no_repetition() -> None:
    """Of a client that lost what it had: it does not say that it repeats itself."""
    network = Network()
    world = World(network)
    world.connect("writer", expiry=100).publish("hush/a", b"0", 2)
    world.kill()
    world.connect("writer", clean=False, expiry=100).publish("hush/b", b"1", 2)
    assert len({*network.tokens}) == 2


def test_all_that_was_open_before_a_kill_may_be_repeated(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(ingress, "MAX_INCOMING", 3)
    network = Network()
    world = World(network)
    writer = world.connect("writer", 4, clean=False)
    for number in (1, 2, 3):
        writer.publish("hush/a", b"0", 2, packet_id=number)
    world.kill()
    writer = world.connect("writer", 4, clean=False)
    for number in (1, 2, 3):
        writer.publish("hush/a", b"0", 2, packet_id=number, dup=True)
    assert network.tokens[:3] == network.tokens[3:]
    writer.publish("hush/a", b"0", 2, packet_id=4)
    assert writer.outlet.is_closed
