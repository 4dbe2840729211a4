"""An MQTT user retains messages under long topics, and subscribes to filters that go through all of them and
match none: it wants each such look, of a few bytes, to keep everybody else waiting.
"""

from __future__ import annotations

import pytest
from broker_world import World
from memory_gateway import Gateway, running
from steps import one_step

from hushcast_protocol.mqtt.limits import PIECE, TURN_STEPS
from hushcast_protocol.mqtt.topics.permissions import FullPermissions
from hushcast_protocol.mqtt.topics.topic_filters import MAX_LEVELS
from hushcast_protocol.mqtt.wire.packets import PingReq, PingResp, RequestedSubscription, SubAck, Subscribe

MESSAGES = 300
FILTERS = 40


def retain(world: World) -> None:
    sender = world.connect("mallory-sends")
    for number in range(MESSAGES):
        sender.publish(f"m/{number}/" + "/".join("a" * (MAX_LEVELS - 2)), b"x", retain=True)


def looks() -> Subscribe:
    return Subscribe(
        1, [RequestedSubscription("m/" + "+/" * (MAX_LEVELS - 2) + f"n{n}") for n in range(FILTERS)]
    )


@pytest.mark.slow
def test_no_step_of_a_look_is_long_and_it_ends() -> None:
    world = World()
    retain(world)
    client = world.connect("mallory")
    assert client.link is not None
    with one_step():
        world.broker.receive(client.link, looks(), world.now)
    turns = 0
    while world.broker.has_more:
        with one_step():
            world.broker.go_on(world.now)
        turns += 1
    # It is the whole walk, in as many turns as it has to take.
    assert turns > FILTERS * MESSAGES * (MAX_LEVELS - 3) // (PIECE * TURN_STEPS)
    client.got()
    assert client.subscribe(f"m/7/{'+/' * (MAX_LEVELS - 3)}+") == [2]
    assert client.payloads() == [b"x"]


def test_users_who_look_have_turns_one_after_the_other() -> None:
    """Many clients of one user do not put off the look of another."""
    world = World()
    retain(world)
    mallory = [world.connect(f"mallory-{number}").link for number in range(20)]
    alice = world.connect("alice", permissions=FullPermissions("alice"))
    alice.got()
    for link in mallory:
        assert link is not None
        world.broker.receive(link, looks(), world.now)
    assert alice.link is not None
    world.broker.receive(alice.link, Subscribe(1, [RequestedSubscription("#")]), world.now)
    steps = MESSAGES + MESSAGES * MAX_LEVELS // PIECE
    for _ in range(2 * (steps // TURN_STEPS + 1)):  # every second turn is hers
        world.broker.go_on(world.now)
    assert len(alice.published()) == MESSAGES


async def test_others_are_answered_meanwhile() -> None:
    async with running() as gateway:
        alice = await gateway.connect("alice")
        mallory = await gateway.connect("mallory")
        fill(gateway)
        await mallory.send(looks())
        assert isinstance(await mallory.next(), SubAck)
        assert gateway.broker.has_more
        await alice.send(PingReq())
        assert isinstance(await alice.next(), PingResp)
        assert gateway.broker.has_more  # it is looking still


def fill(gateway: Gateway) -> None:
    for number in range(MESSAGES):
        topic = f"m/{number}/" + "/".join("a" * (MAX_LEVELS - 2))
        gateway.broker.arrived(topic, b"x", 0, True, {}, 1_000_000.0)
