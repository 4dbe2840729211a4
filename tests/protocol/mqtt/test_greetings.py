"""CONNECT and CONNACK: clean starts, sessions present, identifiers (sections 3.1.2.4, 3.1.3.1, 3.2.2)."""

from __future__ import annotations

import string

import pytest
from broker_world import World, connack

from hushcast_protocol.mqtt.reason_codes import Reason
from hushcast_protocol.mqtt.topics.permissions import FullPermissions
from hushcast_protocol.mqtt.wire.packets import V5, V311, ConnAck, PubRec, PubRel, Unsubscribe, Will


@pytest.mark.parametrize("version", [V311, V5])
@pytest.mark.parametrize(("is_known", "clean"), [(False, False), (False, True), (True, False), (True, True)])
def test_a_clean_start_forgets_and_any_other_goes_on(version: int, is_known: bool, clean: bool) -> None:
    world = World()
    expiry = {"expiry": 100} if version == V5 else {}
    if is_known:
        first = world.connect(version=version, clean=False, **expiry)
        first.subscribe("t", qos=1)
        first.lose()
        world.connect("sender").publish("t", b"waits", qos=1)
    client = world.arrive(version=version, clean=clean, **expiry)
    goes_on = is_known and not clean
    assert client.got_keeping()[0] == ConnAck(goes_on, 0, connack_properties(version))
    assert client.payloads() == ([b"waits"] if goes_on else [])
    world.connect("sender").publish("t", b"new", qos=1)
    assert client.payloads() == ([b"new"] if goes_on else [])


def connack_properties(version: int) -> dict[str, int]:
    plain = World().arrive("other", version)
    return dict(connack(plain).properties)  # type: ignore[arg-type]


class Nothing(FullPermissions):
    def may_publish(self, topic: str) -> bool:
        return False


def test_a_refusal_tells_of_no_session() -> None:
    world = World()
    world.connect(expiry=100).lose()
    refused = world.arrive(clean=False, expiry=100, permissions=Nothing(), will=Will("t", b""))
    assert connack(refused) == ConnAck(False, Reason.NOT_AUTHORIZED)
    assert refused.outlet.is_closed
    assert connack(world.arrive(clean=False, expiry=100)).session_present


@pytest.mark.parametrize("client_id", ["0", string.digits + string.ascii_lowercase[:13], "Z" * 23, "z"])
@pytest.mark.parametrize("version", [V311, V5])
def test_every_identifier_of_letters_and_digits_is_taken(version: int, client_id: str) -> None:
    assert connack(World().arrive(client_id, version)).reason == 0


def test_a_session_is_found_by_its_identifier_alone() -> None:
    world = World()
    for name in ("one", "One"):
        world.connect(name, expiry=100).subscribe(name)
    world.kill()
    assert connack(world.arrive("one", clean=False, expiry=100)).session_present
    assert not connack(world.arrive("ONE", clean=False, expiry=100)).session_present
    back = world.connect("One", clean=False, expiry=100)
    world.connect("sender").publish("one")
    assert back.got() == []


def test_an_identifier_that_was_assigned_is_like_a_client_s_own() -> None:
    world = World()
    first = world.arrive("", expiry=100)
    assigned = connack(first).properties["assigned_client_identifier"]
    first.subscribe("t", qos=1)
    first.lose()
    again = world.arrive(assigned, clean=False, expiry=100)
    packet = connack(again)
    assert packet.session_present
    assert "assigned_client_identifier" not in packet.properties


def test_no_session_ends_while_its_client_is_connected() -> None:
    world = World()
    client = world.connect(expiry=5)
    client.subscribe("t")
    world.pass_time(100)
    world.connect("sender").publish("t")
    assert client.payloads() == [b"x"]
    client.lose()
    world.pass_time(4)
    assert connack(world.arrive(clean=False, expiry=5)).session_present


@pytest.mark.parametrize("asked", [0, 1])
def test_texts_are_sent_to_nobody_whether_they_are_asked_for_or_not(asked: int) -> None:
    """`broker_world.Outlet` looks at each packet; here are all that could have one, refusals among them."""
    world = World()
    given = {"request_problem_information": asked, "request_response_information": asked}
    client = world.arrive(properties=given, permissions=Nothing())
    assert connack(client).properties.keys() == {
        "maximum_packet_size",
        "receive_maximum",
        "server_keep_alive",
        "topic_alias_maximum",
    }
    for qos in (1, 2):
        client.publish("t", qos=qos)
    client.subscribe("x/" * 40)
    client.send(PubRec(9), PubRel(9, 0x92), Unsubscribe(9, ["no"]))
    client.publish("", properties={"topic_alias": 99})
    assert client.end == Reason.TOPIC_ALIAS_INVALID
