"""A message is one, whatever it is called: what each client gets, over drawn lists, maps and reservations."""

from __future__ import annotations

from random import Random

import pytest
from broker_world import Client, World
from naming import answered, joined, judged

from hushcast_gateway.sections.purposes_section import PurposesSection
from hushcast_protocol.mqtt.topics.permissions import FullPermissions
from hushcast_protocol.mqtt.wire.packets import Properties, Publish

pytestmark = pytest.mark.slow


def test_what_clients_get_is_what_plain_sets_over_all_names_say() -> None:
    wrong, compared, came = judged(150, 1)
    assert not wrong
    assert compared > 4_000
    assert came > 1_000


def house() -> tuple[World, Client]:
    world, _ = joined({"home": "operations"}, {"z/#": "home"}, PurposesSection(), Random(1))
    alice = world.connect("alice", permissions=FullPermissions("alice"))
    assert answered(alice, Publish("!RESERVE/z/HASH{operations,research}", b"", 1, packet_id=1)) == 0
    return world, alice


@pytest.mark.parametrize(("made", "asked"), [("z/HASH", "hush/home/z/#"), ("hush/home/z/HASH", "z/#")])
def test_a_presubscription_is_for_a_filter_by_all_its_names(made: str, asked: str) -> None:
    _, alice = house()
    alice.subscribe(asked, qos=0)
    alice.publish("z/x", b"1")
    assert answered(alice, Publish(f"!PBAC/PRESUB/alice/{made}{{research}}", b"", 1, packet_id=1)) == 0
    alice.publish("z/x", b"2")
    spelled = asked.replace("#", "HASH")
    assert answered(alice, Publish(f"!PBAC/PRESUB/alice/{spelled}{{!}}", b"", 1, packet_id=1)) == 0
    alice.publish("z/x", b"3")
    assert alice.payloads() == [b"2"]


@pytest.mark.parametrize(("registered", "topic"), [("z/#", "hush/home/z/x"), ("hush/home/z/#", "z/x")])
def test_what_a_client_says_once_is_of_its_messages_by_all_names(registered: str, topic: str) -> None:
    world, alice = house()
    reader = world.connect("reader", permissions=FullPermissions("bob"))
    given: Properties = {"user_property": [("ap", "operations")]}
    reader.subscribe("#", properties=given, qos=0)
    said: Properties = {"user_property": [("DAP-MP", f"research:{registered}")]}
    assert answered(alice, Publish(topic, b"1", 1, packet_id=1)) == 0
    command = Publish("$DAP/purpose_management", b"", 1, packet_id=2, properties=said)
    assert answered(alice, command) == 0
    answered(alice, Publish(topic, b"2", 1, packet_id=3))
    assert {one.payload for one in reader.published()} == {b"1"}
