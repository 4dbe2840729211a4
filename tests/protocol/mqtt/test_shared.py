"""Shared subscriptions: one member gets each message, and what one leaves undone goes to another."""

from __future__ import annotations

import pytest
from broker_world import Client, World

from hushcast_protocol.mqtt.limits import MAX_LOOKED_AT
from hushcast_protocol.mqtt.reason_codes import Reason
from hushcast_protocol.mqtt.topics.permissions import FullPermissions
from hushcast_protocol.mqtt.wire.packets import V311, PubAck, Publish, PubRec


def members(world: World, *names: str, qos: int = 1, expiry: int = 0) -> list[Client]:
    found = [world.connect(name, expiry=expiry) for name in names]
    for client in found:
        assert client.subscribe("$share/g/t/#", qos=qos) == [qos]
    return found


def publish(world: World, count: int, qos: int = 1) -> None:
    sender = world.connect("sender")
    for n in range(count):
        sender.publish("t/1", b"%d" % n, qos=qos, packet_id=n + 1)


def test_members_take_turns() -> None:
    world = World()
    clients = members(world, "a", "b", "c")
    publish(world, 9)
    assert [len(client.payloads()) for client in clients] == [3, 3, 3]


def test_groups_and_plain_subscriptions_each_get_it() -> None:
    world = World()
    one, other, plain = (world.connect(name) for name in "abc")
    one.subscribe("$share/g/t", "t")
    other.subscribe("$share/h/t")
    plain.subscribe("t")
    world.connect("sender").publish("t")
    assert [len(client.payloads()) for client in (one, other, plain)] == [2, 1, 1]


def test_who_is_here_goes_before_who_is_away() -> None:
    world = World()
    away, here = members(world, "away", "here", expiry=100)
    away.lose()
    publish(world, 4)
    assert len(here.payloads()) == 4


def test_when_all_are_away_a_session_that_stays_keeps_it() -> None:
    world = World()
    durable, brief = *members(world, "durable", expiry=100), *members(world, "brief")
    durable.lose()
    brief.lose()
    publish(world, 2)
    back = world.connect("durable", clean=False, expiry=100)
    assert back.payloads() == [b"0", b"1"]


def test_what_a_member_did_not_acknowledge_goes_to_another_when_its_session_ends() -> None:
    world = World()
    first, second = members(world, "first", "second")
    publish(world, 4)
    assert first.payloads() == [b"0", b"2"]
    assert second.payloads() == [b"1", b"3"]
    first.lose()
    assert second.payloads() == [b"0", b"2"]


def test_of_qos_2_nothing_that_was_sent_goes_to_another() -> None:
    world = World()
    first, second = members(world, "first", "second", qos=2)
    publish(world, 4, qos=2)
    assert first.payloads() == [b"0", b"2"]
    second.got()
    first.lose()
    assert second.payloads() == []


@pytest.mark.parametrize("qos", [1, 2])
def test_who_comes_back_gets_what_was_sent_to_it(qos: int) -> None:
    world = World()
    first, second = members(world, "first", "second", qos=qos, expiry=100)
    publish(world, 2, qos=qos)
    assert first.payloads() == [b"0"]
    second.answer()
    first.lose()
    assert second.got() == []
    assert world.connect("first", clean=False, expiry=100).answer() == [b"0"]


def test_each_copy_has_the_identifier_of_its_own_subscription() -> None:
    world = World()
    client = world.connect("both")
    client.subscribe("t", properties={"subscription_identifier": [1]})
    client.subscribe("$share/g/t", properties={"subscription_identifier": [2]})
    client.subscribe("$share/h/t")
    world.connect("sender").publish("t", qos=1)
    found = [packet.properties.get("subscription_identifier", []) for packet in client.published()]
    assert sorted(found) == [[], [1], [2]]


def test_a_refusal_ends_a_message() -> None:
    world = World()
    first, second = members(world, "first", "second")
    publish(world, 1)
    packet = first.only(Publish)
    first.send(PubAck(packet.packet_id, Reason.NOT_AUTHORIZED))
    first.lose()
    assert second.got() == []
    (only,) = members(world, "only", qos=2)
    second.lose()
    world.connect("another").publish("t/1", qos=2)
    only.send(PubRec(only.only(Publish).packet_id, Reason.QUOTA_EXCEEDED))
    assert only.got() == []
    assert world.broker.held_bytes == 0


class Compatible(FullPermissions):
    def __init__(self) -> None:
        super().__init__()
        self.may = False

    def may_receive(self, topic: str) -> bool:
        return self.may


def test_only_members_that_may_have_it_are_chosen() -> None:
    world = World()
    (open_to_all,) = members(world, "open")
    picky = world.connect("picky", permissions=Compatible())
    picky.subscribe("$share/g/t/#", qos=1)
    publish(world, 5)
    assert (len(open_to_all.payloads()), picky.payloads()) == (5, [])


def test_what_waited_for_one_that_may_no_longer_have_it_goes_to_another() -> None:
    world = World()
    permissions = Compatible()
    permissions.may = True
    picky = world.connect("picky", permissions=permissions, expiry=100)
    picky.subscribe("$share/g/t/#", qos=1)
    picky.lose()
    publish(world, 1)
    (other,) = members(world, "other")
    permissions.may = False
    assert world.connect("picky", clean=False, permissions=permissions, expiry=100).payloads() == []
    assert other.payloads() == [b"0"]


def test_clients_of_3_1_1_may_share_and_leave() -> None:
    world = World()
    client = world.connect("old", version=V311)
    client.subscribe("$share/g/t")
    client.lose()
    assert world.broker.subscriptions == 0
    publish(world, 1)
    assert world.disk == {}


def test_of_a_large_group_all_have_their_turn_though_most_are_away() -> None:
    """Not all of it is looked at for each message: who is here gets what comes once its turn is near."""
    world = World()
    for client in members(world, *(f"away{n}" for n in range(2 * MAX_LOOKED_AT)), expiry=100):
        client.lose()
    (here,) = members(world, "here")
    publish(world, MAX_LOOKED_AT)
    assert len(here.answer()) > MAX_LOOKED_AT // 4
    left = sum(len(session.queue) for session in world.broker._sessions)
    assert left > 0
