"""An MQTT client that has a session answers each message of QoS 2 with PUBREC, and none of our PUBRELs, and
comes again and again: it wants more and more under way, until there is no packet identifier left to look for.
"""

from __future__ import annotations

import pytest
from broker_world import Client, World
from steps import one_step

from hushcast_protocol.mqtt import mqtt_session as session_module
from hushcast_protocol.mqtt.limits import MAX_WINDOW
from hushcast_protocol.mqtt.mqtt_session import DeliveryState, PendingMessage
from hushcast_protocol.mqtt.wire.packets import Connect, Publish, PubRec, PubRel

TOPIC = "m/x"


def come(world: World) -> Client:
    return world.connect("mallory", clean=False, expiry=100)


def flood(world: World, sender: Client) -> None:
    for number in range(1, MAX_WINDOW + 1):
        sender.send(Publish(TOPIC, b"x", 2, packet_id=number), PubRel(number))


def take_without_end(client: Client) -> int:
    """Answer all messages with PUBREC, and nothing else; return how many there were."""
    messages = client.published()
    client.send(*(PubRec(one.packet_id) for one in messages))
    client.got()
    return len(messages)


def test_what_was_released_and_not_completed_is_under_way_on_the_next_connection_too() -> None:
    world = World()
    sender = world.connect("sender", version=4)
    client = come(world)
    client.subscribe(TOPIC)
    for _ in range(4):
        flood(world, sender)
        take_without_end(client)
        client.lose()
        client = come(world)
    released = [packet for packet in client.got() if isinstance(packet, PubRel)]
    assert len(released) == MAX_WINDOW
    world.kill()
    assert sum(isinstance(packet, PubRel) for packet in come(world).got()) == MAX_WINDOW


def test_a_session_of_before_that_has_all_identifiers_stops_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    """As such a client left it on disk: the gateway starts, and is there for others."""
    most = 5 * MAX_WINDOW
    monkeypatch.setattr(session_module, "LAST_ID", most)
    world = World()
    come(world).subscribe(TOPIC)
    session = world.broker._sessions._sessions["", "mallory"]
    for number in range(1, most + 1):
        entry = PendingMessage(None, 2, False, (), "", number)
        entry.packet_id, entry.state = number, DeliveryState.RELEASED
        world.broker._archive.queued(session, entry, False)
    world.commit()
    world.kill()
    session = world.broker._sessions._sessions["", "mallory"]
    assert len(session.inflight) == most
    client = Client(world, 5)
    packet = Connect(5, "mallory", False, properties={"session_expiry_interval": 100})
    with one_step():
        accepted = world.broker.connect(client.outlet, packet, session.permissions, world.now)
    assert accepted is not None
    client.link = accepted[0]
    while world.broker.has_more:
        with one_step():
            world.broker.go_on(world.now)
    world.settle()
    assert sum(isinstance(packet, PubRel) for packet in client.got()) == most
    honest = world.connect("honest")
    honest.subscribe(TOPIC)
    with one_step():
        world.connect("sender").publish(TOPIC, b"x", qos=2)
    assert honest.payloads() == [b"x"]
    assert client.published() == []
