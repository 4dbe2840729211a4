"""An MQTT user fills its share of what waits in sessions, publishes one message more to hundreds of its own
clients that are away, and wants all others to wait while room is made for each of them.
"""

from __future__ import annotations

import pytest
from broker_world import Client, World
from steps import one_step

from hushcast_protocol.mqtt import queues
from hushcast_protocol.mqtt.limits import MqttLimits
from hushcast_protocol.mqtt.topics.permissions import FullPermissions
from hushcast_protocol.mqtt.wire.packets import Publish

pytestmark = pytest.mark.slow

CLIENTS = 600
HOLDERS = 60
QUEUE = 1_000
SMALL = 200 + len("m/small") + 300  # bytes that a small message counts


def away(world: World, wanted: str, count: int) -> None:
    for number in range(count):
        client = world.connect(f"{wanted}{number}", permissions=FullPermissions("mallory"), expiry=100)
        client.subscribe(wanted, qos=1)
        client.lose()


def publish(world: World, sender: Client, topic: str, size: int) -> None:
    assert sender.link is not None
    packet = Publish(topic, b"x" * size, 1, packet_id=1)
    with one_step():
        world.broker.receive(sender.link, packet, world.now)
    world.settle()


def test_nobody_gets_room_where_all_hold_as_much() -> None:
    world = World(limits=MqttLimits(held_bytes=2_000 * CLIENTS))
    away(world, "m/#", CLIENTS)
    sender = world.connect("sender", permissions=FullPermissions("mallory"))
    for _ in range(4):
        publish(world, sender, "m/x", 500)
    assert world.broker.counts["dropped_all_full"] > CLIENTS // 2
    assert world.broker.held_bytes <= 2_000 * CLIENTS * 4 / 5


def test_room_is_made_of_many_small_messages() -> None:
    world = World(limits=MqttLimits(held_bytes=HOLDERS * QUEUE * SMALL * 5 // 4, queue=QUEUE))
    away(world, "m/small", HOLDERS)
    away(world, "m/large", HOLDERS)
    sender = world.connect("sender", permissions=FullPermissions("mallory"))
    for _ in range(QUEUE):
        sender.publish("m/small", b"x" * 300, 1)
    held = world.broker.held_bytes
    publish(world, sender, "m/large", QUEUE * SMALL // 3)
    dropped = world.broker.counts["dropped_all_full"]
    assert 0 < dropped <= queues.MAX_TAKEN + HOLDERS
    assert world.broker.held_bytes <= held + QUEUE * SMALL // 3  # what was taken was given
