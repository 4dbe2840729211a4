"""Wills: published when a client is lost, later if it said so, never if it took its leave."""

from __future__ import annotations

from typing import Any

import pytest
from broker_world import Client, World

from hushcast_protocol.mqtt.reason_codes import Reason
from hushcast_protocol.mqtt.topics.permissions import FullPermissions
from hushcast_protocol.mqtt.wire.packets import V5, V311, Properties, Will


def mourner(world: World) -> Client:
    client = world.connect("mourner")
    client.subscribe("w/#")
    return client


def dying(world: World, delay: int = 0, **fields: Any) -> Client:
    will = Will("w/x", b"gone", 1, properties={"will_delay_interval": delay} if delay else {})
    return world.connect("dying", will=will, **fields)


@pytest.mark.parametrize(
    ("delay", "expiry", "after"),
    [(0, 0, 0), (0, 100, 0), (5, 0, 0), (5, 100, 5), (100, 5, 5), (5, 5, 5)],
)
def test_it_comes_after_its_delay_or_with_the_end_of_the_session(delay: int, expiry: int, after: int) -> None:
    world = World()
    client = mourner(world)
    dying(world, delay, expiry=expiry).lose()
    if after:
        world.pass_time(after - 1)
        assert client.payloads() == []
        world.pass_time(1)
    assert client.payloads() == [b"gone"]
    world.pass_time(300)
    assert client.payloads() == []


@pytest.mark.parametrize(("reason", "comes"), [(0, False), (Reason.DISCONNECT_WITH_WILL, True), (0x80, True)])
def test_taking_leave_deletes_it(reason: int, comes: bool) -> None:
    world = World()
    client = mourner(world)
    dying(world).leave(reason)
    assert client.payloads() == ([b"gone"] if comes else [])


@pytest.mark.parametrize(
    ("delay", "expiry", "clean", "comes"),
    [
        (0, 0, True, True),
        (0, 100, False, True),
        (5, 100, False, False),
        (5, 100, True, True),
        (5, 0, False, True),
    ],
)
def test_taken_over(delay: int, expiry: int, clean: bool, comes: bool) -> None:
    world = World()
    client = mourner(world)
    first = dying(world, delay, expiry=expiry)
    world.connect("dying", clean=clean, expiry=expiry)
    assert first.end == Reason.SESSION_TAKEN_OVER
    first.lose()
    world.pass_time(300)
    assert client.payloads() == ([b"gone"] if comes else [])


def test_coming_back_before_the_delay_is_over_deletes_it() -> None:
    world = World()
    client = mourner(world)
    dying(world, 5, expiry=100).lose()
    world.pass_time(3)
    world.connect("dying", clean=False, expiry=100)
    world.pass_time(10)
    assert client.payloads() == []


def test_in_3_1_1_a_takeover_publishes_it() -> None:
    world = World()
    client = mourner(world)
    dying(world, version=V311)
    world.connect("dying", version=V311)
    assert client.payloads() == [b"gone"]


@pytest.mark.parametrize("retain", [False, True])
def test_it_may_be_retained(retain: bool) -> None:
    world = World()
    world.connect("dying", will=Will("w/x", b"gone", retain=retain)).lose()
    client = mourner(world)
    assert [(one.payload, one.retain) for one in client.published()] == [(b"gone", True)] * retain


def test_its_properties_go_with_it_in_their_order() -> None:
    world = World()
    client = mourner(world)
    given: Properties = {
        "content_type": "c",
        "response_topic": "r",
        "user_property": [("b", "1"), ("a", "2"), ("b", "0")],
    }
    world.connect("dying", will=Will("w/x", b"gone", properties={"will_delay_interval": 0, **given})).lose()
    (packet,) = client.published()
    assert packet.properties == given


class NoWills(FullPermissions):
    may = False

    def may_publish(self, topic: str) -> bool:
        return self.may


@pytest.mark.parametrize(("version", "reason"), [(V5, Reason.NOT_AUTHORIZED), (V311, 5)])
def test_who_may_not_publish_it_is_refused(version: int, reason: int) -> None:
    world = World()
    client = world.arrive("dying", version, permissions=NoWills(), will=Will("w/x", b""))
    assert client.link is None
    assert client.got()[0].reason == reason  # type: ignore[union-attr]


def test_who_may_not_any_more_leaves_none() -> None:
    world = World()
    client = mourner(world)
    permissions = NoWills()
    permissions.may = True
    dead = world.connect("dying", permissions=permissions, will=Will("w/x", b"gone"))
    permissions.may = False
    dead.lose()
    assert client.payloads() == []


@pytest.mark.parametrize("version", [V5, V311])
@pytest.mark.parametrize("permissions", [FullPermissions(), NoWills()])
def test_to_topics_of_the_server_it_leads_nowhere_and_keeps_nobody_out(
    version: int, permissions: FullPermissions
) -> None:
    world = World()
    client = mourner(world)
    client.subscribe("$SYS/#")
    world.connect("dying", version, permissions=permissions, will=Will("$SYS/x", b"gone")).lose()
    assert b"gone" not in client.payloads()


@pytest.mark.parametrize(("delay", "after"), [(0, 0), (5, 5)])
def test_a_durable_session_keeps_its_will_through_a_crash(delay: int, after: int) -> None:
    world = World()
    world.connect("mourner", expiry=1_000).subscribe("w/#")
    dying(world, delay, expiry=100)
    world.kill()
    world.pass_time(after)
    assert world.connect("mourner", clean=False, expiry=1_000).payloads() == [b"gone"]


def test_one_that_was_pending_comes_at_its_time_all_the_same() -> None:
    world = World()
    world.connect("mourner", expiry=1_000).subscribe("w/#")
    dying(world, 20, expiry=100).lose()
    world.pass_time(15)
    world.kill()
    back = world.connect("mourner", clean=False, expiry=1_000)
    world.pass_time(4)
    assert back.payloads() == []
    world.pass_time(1)
    assert back.payloads() == [b"gone"]


@pytest.mark.parametrize("stops", [False, True])
@pytest.mark.parametrize(("expiry", "delay", "after"), [(0, 0, 0), (0, 50, 0), (100, 0, 0), (100, 50, 50)])
def test_it_outlives_the_program(stops: bool, expiry: int, delay: int, after: int) -> None:
    """A client whose session ends with its connection has lost it with the program."""
    world = World()
    world.connect("mourner", expiry=1_000).subscribe("w/#")
    dying(world, delay, expiry=expiry)
    world.settle()
    if stops:
        world.broker.shut_down()
        world.settle()
    world.kill()
    world.settle()
    back = world.connect("mourner", clean=False, expiry=1_000)
    if after:
        world.pass_time(after - 1)
        assert back.payloads() == []
        world.pass_time(2)
    assert back.answer() == [b"gone"]
    world.settle()
    world.kill()
    world.settle()
    back = world.connect("mourner", clean=False, expiry=1_000)
    assert back.payloads() == [], "once"
    assert "mqtt-will" not in world.kinds()


def test_it_does_not_come_where_its_client_has_taken_leave_or_is_back() -> None:
    world = World()
    world.connect("mourner", expiry=1_000).subscribe("w/#")
    dying(world).leave()
    dying(world, 50, expiry=100)
    world.settle()
    world.kill()
    world.connect("dying", clean=False, expiry=100)
    world.pass_time(200)
    assert world.connect("mourner", clean=False, expiry=1_000).payloads() == []
