"""An MQTT user waits until a failing disk has lost the record of somebody else's session, or of a message.

He wants what is left of them: the number of what was lost is given to what comes next, and may be his.
"""

from __future__ import annotations

import pytest
from broker_world import Client, World

from hushcast_protocol.mqtt.kept import mqtt_records
from hushcast_protocol.mqtt.topics.permissions import FullPermissions


def joined(world: World, user: str, **more: object) -> Client:
    return world.connect(user, permissions=FullPermissions(user), expiry=100, **more)  # type: ignore[arg-type]


def lost(world: World, kind: str) -> None:
    """Lose the last record of a kind, as a start does that sets it aside."""
    del world.disk[max(one for one in world.disk if one[0] == kind)]


def alices(retain: bool = False) -> World:
    """Return a broker where a message waits for a client that is away, or is retained."""
    world = World()
    joined(world, "bob").lose()
    if not retain:
        alice = joined(world, "alice")
        alice.subscribe("alice/#", "$share/g/alice/#", qos=2)
        alice.lose()
    world.connect("sender").publish("alice/1", b"hers", 1, retain=retain)
    return world


@pytest.mark.parametrize("starts", [1, 2, 3])
@pytest.mark.parametrize("kind", [mqtt_records.SESSION, mqtt_records.MESSAGE])
def test_nobody_inherits_what_a_damaged_record_leaves(kind: str, starts: int) -> None:
    world = alices()
    lost(world, kind)
    for _ in range(starts):
        world.kill()
    for number in range(3):  # of which one gets the number
        joined(world, f"mallory{number}").lose()
        world.connect("sender").publish("bob/1", b"his", 1, retain=True)
    for _ in range(2):
        world.kill()
        world.connect("sender").publish("alice/2", b"later", 1)
    for number in range(3):
        assert joined(world, f"mallory{number}", clean=False).payloads() == []
    if kind == mqtt_records.MESSAGE:
        assert set(joined(world, "alice", clean=False).answer()) == {b"later"}


@pytest.mark.parametrize("kind", [mqtt_records.SESSION, mqtt_records.MESSAGE])
def test_what_leads_nowhere_is_gone_from_the_disk(kind: str) -> None:
    world = alices()
    lost(world, kind)
    world.kill()
    left = {
        mqtt_records.SESSION: {"mqtt-session": 1},
        mqtt_records.MESSAGE: {"mqtt-session": 2, "mqtt-subscription": 2},
    }
    assert world.kinds() == left[kind]


def test_a_retained_message_whose_body_is_gone_is_no_more() -> None:
    world = alices(retain=True)
    lost(world, mqtt_records.MESSAGE)
    world.kill()
    assert world.kinds() == {"mqtt-session": 1}
    world.connect("sender").publish("bob/1", b"his", 1, retain=True)
    world.kill()
    assert world.broker.retained == 1
