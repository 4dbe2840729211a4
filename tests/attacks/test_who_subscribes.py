"""An MQTT user that may publish, and subscribe to nothing, publishes to topics at QoS 1 and 2.

It wants to know by the answers which of them anybody in the house is subscribed to.
"""

from __future__ import annotations

import pytest
from broker_world import Client, World

from hushcast_protocol.mqtt.topics.access import Access, AccessPermissions
from hushcast_protocol.mqtt.wire.packets import Publish


def answers(world: World, mallory: Client, topic: str, qos: int, retain: bool) -> bytes:
    mallory.outlet.data = b""
    mallory.send(Publish(topic, b"x", qos, retain, packet_id=7))
    return mallory.outlet.data


@pytest.mark.parametrize("retain", [False, True])
@pytest.mark.parametrize("qos", [1, 2])
@pytest.mark.parametrize("wanted", ["house/alarm", "house/#", "$share/g/house/alarm"])
def test_an_answer_is_the_same_whoever_is_subscribed(wanted: str, qos: int, retain: bool) -> None:
    found = []
    for is_there in (False, True):
        world = World()
        if is_there:
            world.connect("alice").subscribe(wanted)
        mallory = world.connect(
            "mallory", permissions=AccessPermissions(Access(("#",)), "mallory", "mallory")
        )
        found.append(answers(world, mallory, "house/alarm", qos, retain))
    assert found[0] == found[1] != b""
