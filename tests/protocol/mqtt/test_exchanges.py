"""Exchanges of QoS 1 and 2: packet identifiers, DUP, what is new and what came before (2.2.1, 4.3)."""

from __future__ import annotations

import pytest
from broker_world import World

from hushcast_protocol.mqtt.mqtt_session import LAST_ID
from hushcast_protocol.mqtt.reason_codes import Reason
from hushcast_protocol.mqtt.topics.permissions import FullPermissions
from hushcast_protocol.mqtt.wire.packets import (
    Packet,
    PingReq,
    PingResp,
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


@pytest.mark.parametrize("number", [1, 300, LAST_ID])
@pytest.mark.parametrize(
    ("sent", "answer"),
    [
        (lambda number: Publish("t", b"", 1, packet_id=number), PubAck),
        (lambda number: Publish("t", b"", 2, packet_id=number), PubRec),
        (lambda number: PubRel(number), PubComp),
        (lambda number: PubRec(number), PubRel),
        (lambda number: Subscribe(number, [RequestedSubscription("t")]), SubAck),
        (lambda number: Unsubscribe(number, ["t"]), UnsubAck),
    ],
)
def test_an_answer_bears_the_identifier_of_what_it_answers(sent, answer: type[Packet], number: int) -> None:  # type: ignore[no-untyped-def]
    client = World().connect()
    client.got()
    client.send(sent(number))
    (packet,) = client.got()
    assert isinstance(packet, answer)
    assert packet.packet_id == number  # type: ignore[union-attr]


def test_identifiers_are_never_0_and_never_in_use() -> None:
    world = World()
    client, sender = world.connect(expiry=100), world.connect("sender")
    client.subscribe("t")
    assert client.link is not None
    session = client.link.session
    for last, expected in ((0, 1), (LAST_ID - 1, LAST_ID), (LAST_ID, 2), (LAST_ID - 1, 3)):
        session._last_id = last
        sender.publish("t", qos=1)
        assert [packet.packet_id for packet in client.published()] == [expected]


@pytest.mark.parametrize("granted", [0, 1, 2])
@pytest.mark.parametrize("published", [0, 1, 2])
@pytest.mark.parametrize("wanted", ["t", "$share/g/t"])
def test_the_lower_qos_counts_and_dup_is_the_servers_own(wanted: str, published: int, granted: int) -> None:
    world = World()
    client = world.connect()
    assert client.subscribe(wanted, qos=granted) == [granted]
    world.connect("sender").publish("t", qos=published, dup=published > 0)
    (packet,) = client.published()
    assert (packet.qos, packet.dup) == (min(published, granted), False)
    assert bool(packet.packet_id) == (packet.qos > 0)


def test_qos_1_that_was_acknowledged_is_new_when_it_comes_again() -> None:
    world = World()
    reader, client = world.connect("reader"), world.connect()
    reader.subscribe("t", qos=0)
    client.publish("t", b"1", qos=1)
    client.publish("t", b"2", qos=1, dup=True)
    assert client.got() == [PubAck(7), PubAck(7)]
    assert reader.payloads() == [b"1", b"2"]


class Later(FullPermissions):
    may = False

    def may_publish(self, topic: str) -> bool:
        return self.may


def test_qos_2_that_was_refused_is_new_when_it_comes_again() -> None:
    world = World()
    permissions = Later()
    reader, client = world.connect("reader"), world.connect(permissions=permissions)
    reader.subscribe("t", qos=0)
    client.publish("t", b"1", qos=2)
    permissions.may = True
    client.publish("t", b"2", qos=2, dup=True)
    assert client.got() == [PubRec(7, Reason.NOT_AUTHORIZED), PubRec(7)]
    assert reader.payloads() == [b"2"]


def test_a_message_whose_time_is_over_ends_its_exchange_all_the_same() -> None:
    client = World().connect()
    client.publish("t", qos=2, properties={"message_expiry_interval": 1})
    client.world.pass_time(5)
    client.publish("t", qos=2, dup=True, properties={"message_expiry_interval": 1})
    client.send(PubRel(7))
    assert client.got() == [PubRec(7), PubRec(7), PubComp(7)]


@pytest.mark.parametrize("qos", [1, 2])
def test_the_time_of_what_was_sent_once_is_not_counted(qos: int) -> None:
    world = World()
    first = world.connect(expiry=100)
    first.subscribe("t")
    world.connect("sender").publish("t", b"1", qos, properties={"message_expiry_interval": 1})
    (packet,) = first.published()
    first.lose()
    world.pass_time(5)
    (again,) = world.connect(clean=False, expiry=100).published()
    assert (again.packet_id, again.payload, again.dup) == (packet.packet_id, b"1", True)


@pytest.mark.parametrize(("qos", "kind"), [(1, PubAck), (2, PubRec)])
def test_what_a_client_refuses_does_not_come_again(qos: int, kind: type[PubAck]) -> None:
    world = World()
    first = world.connect(expiry=100)
    first.subscribe("t")
    world.connect("sender").publish("t", qos=qos)
    first.send(kind(first.published()[0].packet_id, Reason.QUOTA_EXCEEDED))
    first.lose()
    assert world.connect(clean=False, expiry=100).got() == []


@pytest.mark.parametrize("qos", [1, 2])
def test_unsubscribing_ends_no_exchange(qos: int) -> None:
    world = World()
    first, sender = world.connect(expiry=100), world.connect("sender")
    first.subscribe("t")
    sender.publish("t", b"1", qos)
    (packet,) = first.published()
    first.send(Unsubscribe(5, ["t"]))
    sender.publish("t", b"2", qos)
    assert first.got() == [UnsubAck(5, [0])]
    first.lose()
    back = world.connect(clean=False, expiry=100)
    assert back.answer() == [b"1"]
    assert packet.payload == b"1"
    assert world.broker.held_bytes == 0


def test_a_full_window_delays_messages_alone() -> None:
    world = World()
    client = world.connect(properties={"receive_maximum": 1})
    client.subscribe("t")
    sender = world.connect("sender")
    for n in range(3):
        sender.publish("t", b"%d" % n, qos=1)
    assert client.payloads() == [b"0"]
    client.send(PingReq(), Subscribe(3, [RequestedSubscription("u")]), Unsubscribe(4, ["u"]))
    client.publish("nobody", qos=1)
    kinds = [type(packet) for packet in client.got()]
    assert kinds == [PingResp, SubAck, UnsubAck, PubAck]
    sender.publish("t", b"qos 0")
    assert client.payloads() == [b"qos 0"]
