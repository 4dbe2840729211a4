"""What an operator is told of what clients were refused, and that no filter, user or client is."""

from __future__ import annotations

import pytest
from broker_world import World
from memory_gateway import running
from trio.testing import MockClock

from hushcast_gateway.refusals import _ADVICE, TOLD_EVERY, TWINS, RefusalLog, refusals_found
from hushcast_protocol.base.findings import Finding
from hushcast_protocol.mqtt.limits import MAX_ASKED, MqttLimits
from hushcast_protocol.mqtt.reason_codes import Reason
from hushcast_protocol.mqtt.refusals import LATELY, MAX_NAMED, RefusalCause, Refusals, RefusedThing
from hushcast_protocol.mqtt.topics.access import Access, AccessPermissions
from hushcast_protocol.mqtt.topics.permissions import Permissions
from hushcast_protocol.mqtt.wire.packets import V5, V311, Connect, PubAck, Publish, Will
from hushcast_runtime.logs import configure_logs

NAMES = ("secret", "mallory", "frost")
PICKY = AccessPermissions(Access(("home/#",), ("home/#",)), "mallory", "frost")


def refused(*causes: tuple[RefusalCause, float]) -> Refusals:
    found = Refusals()
    for cause, now in causes:
        found.note(cause, now, "mallory", "frost", "secret/#")
    return found


def told(world: World, thing: RefusedThing) -> Finding:
    """Return what the doctor says of a kind of thing, which names nobody."""
    found = dict(zip(RefusedThing, refusals_found(world.broker.refusals, world.now), strict=True))[thing]
    assert not any(name in found.found + found.advice for name in NAMES)
    return found


def named(world: World) -> list[tuple[RefusalCause, str | None, str, str, int]]:
    return [
        (one.cause, one.user, one.client_id, one.subject, one.count)
        for one in world.broker.refusals.named(world.now)
    ]


@pytest.mark.parametrize(("version", "code"), [(V5, Reason.NOT_AUTHORIZED), (V311, Reason.UNSPECIFIED_ERROR)])
def test_a_filter_that_a_user_may_not_have(version: int, code: int) -> None:
    world = World()
    client = world.connect("frost", version, permissions=PICKY)
    assert client.subscribe("secret/#", "home/x") == [code, 2]
    assert world.broker.counts["subscriptions_forbidden"] == 1
    found = told(world, RefusedThing.SUBSCRIPTION)
    assert (found.check, found.verdict, found.found) == (
        "refused subscriptions",
        "warning",
        "1 subscription refused in 10 minutes: 1 because their user may not read what they match",
    )
    assert named(world) == [(RefusalCause.FORBIDDEN, "mallory", "frost", "secret/#", 1)]


BOUNDS = {
    RefusalCause.FULL: MqttLimits(filters=2),
    RefusalCause.FULL_USER: MqttLimits(user_filters=2),
    RefusalCause.FULL_SHARED: MqttLimits(shared_filters=3),
}


@pytest.mark.parametrize("cause", BOUNDS)
def test_each_bound_of_subscriptions_says_which_setting_it_is(cause: RefusalCause) -> None:
    limits = BOUNDS[cause]
    world = World(limits=limits)
    client = world.connect("frost")
    filters = [f"$share/g/secret/{n}" for n in range(4)]
    assert client.subscribe(*filters) == [2, 2, Reason.QUOTA_EXCEEDED, Reason.QUOTA_EXCEEDED]
    assert world.broker.counts[cause.count] == 2
    (setting,) = [one for one in limits.__struct_fields__ if getattr(limits, one) in (2, 3)]
    assert f"`limits.{setting}`" in told(world, RefusedThing.SUBSCRIPTION).advice
    assert named(world) == [(cause, "", "frost", "secret/3", 2)]


def test_bounds_of_clients_are_told() -> None:
    world = World(limits=MqttLimits(clients=2, sessions=2))
    world.connect("first", expiry=10).lose()
    assert world.arrive("frost", expiry=10).link is None
    world.connect("first")
    assert world.arrive("frost").link is None
    assert world.arrive("frost", permissions=PICKY, will=Will("secret", b"")).link is None
    causes = [RefusalCause.SESSIONS, RefusalCause.CROWDED, RefusalCause.WILL]
    assert {one[0] for one in named(world)} == set(causes)
    assert [world.broker.counts[one.count] for one in causes] == [1, 1, 1]
    assert "3 clients refused" in told(world, RefusedThing.CLIENT).found


def test_bounds_of_messages_are_told() -> None:
    world = World(limits=MqttLimits(retained=3, queue=2))
    away = world.connect("frost", expiry=10)
    away.subscribe("t", qos=1)
    away.lose()
    sender = world.connect("sender")
    for n in range(4):
        sender.publish("t", b"x", 1)
        sender.publish(f"r/{n}", b"x", retain=True)
    picky = world.connect("picky", permissions=PICKY)
    picky.publish("secret", qos=1)
    assert picky.only(PubAck).reason == Reason.NOT_AUTHORIZED
    assert sorted(named(world), key=lambda one: one[0].name) == [
        (RefusalCause.NOT_PUBLISHED, "mallory", "picky", "secret", 1),
        (RefusalCause.NOT_RETAINED, "", "sender", "r/3", 2),
        (RefusalCause.QUEUE, "", "frost", "t", 2),
    ]
    assert "5 messages refused" in told(world, RefusedThing.MESSAGE).found


def test_two_clients_with_one_identifier_are_told_and_one_that_comes_back_is_not() -> None:
    world = World()
    for _ in range(TWINS):
        world.connect("frost")
        assert told(world, RefusedThing.CLIENT).verdict == "good"
    world.connect("frost")
    assert world.broker.counts["clients_taken_over"] == TWINS
    assert "one identifier" in told(world, RefusedThing.CLIENT).advice


async def not_let_in(packet: Connect, peer: object) -> Permissions | Reason:
    return Reason.BAD_USER_NAME_OR_PASSWORD


TALKS = {
    "HTTP": (b"GET / HTTP/1.1\r\nHost: x\r\n\r\n", RefusalCause.NO_MQTT),
    "TLS": (bytes.fromhex("16030100050100000100"), RefusalCause.NO_MQTT),
    "MQTT 3.1": (b"\x10\x0f\x00\x06MQIsdp\x03\x02\x00\x3c\x00\x01x", RefusalCause.OLD),
    "a wrong password": (b"\x10\x0d\x00\x04MQTT\x04\x02\x00\x3c\x00\x01x", RefusalCause.NOT_LET_IN),
}


@pytest.mark.parametrize("talk", TALKS)
async def test_what_is_let_in_nowhere_leaves_a_trace(talk: str, autojump_clock: MockClock) -> None:
    said, cause = TALKS[talk]
    async with running(authenticate=not_let_in) as gateway:
        client = await gateway.dial(V311)
        await client.stream.send_all(said)
        while await client.stream.receive_some():
            pass
        assert gateway.broker.refusals.totals == {cause: 1}


async def test_a_packet_that_is_larger_than_is_taken_leaves_a_trace(autojump_clock: MockClock) -> None:
    async with running(maximum_packet=1_000) as gateway:
        client = await gateway.connect("frost")
        await client.send(Publish("t", b"x" * 2_000))
        while await client.next() is not None:
            pass
        (one,) = gateway.broker.refusals.named(gateway.state.env.now())
        assert (one.cause, one.client_id) == (RefusalCause.TOO_LARGE, "frost")


def test_the_doctor_tells_of_the_last_minutes_and_of_what_was_most() -> None:
    found = refused(
        (RefusalCause.FULL, 0.0), (RefusalCause.FULL, 300.0), *[(RefusalCause.FORBIDDEN, 300.0)] * 2
    )
    first = refusals_found(found, 300.0)[0]
    assert first.found.startswith("4 subscriptions refused in 10 minutes: 2 because their client has as many")
    later = refusals_found(found, 60.0 * LATELY)[0]
    assert later.found.startswith("3 subscriptions refused in 10 minutes: 2 because their user may not")
    assert "subscribe" in later.advice
    assert refusals_found(found, 300.0 + 60.0 * LATELY)[0].verdict == "good"
    assert refusals_found(found, -60.0 * LATELY)[0].verdict == "good", "a clock that was set back"


def test_each_cause_has_a_way_out() -> None:
    assert set(_ADVICE) == set(RefusalCause)


def test_what_is_known_of_the_last_minutes_is_bounded() -> None:
    found = refused(*[(RefusalCause.FORBIDDEN, 60.0 * minute) for minute in range(1_000)])
    assert sum(found.lately(60.0 * 999).values()) == LATELY
    assert found.named(60.0 * 1_010) == []


def test_names_are_bounded_and_one_user_pushes_no_other_out() -> None:
    found = refused((RefusalCause.FORBIDDEN, 0.0))
    for n in range(2 * MAX_NAMED):
        found.note(RefusalCause.FULL, 1.0, "eve", f"e{n}", "x" * 5_000)
    known = found.named(1.0)
    assert len(known) == MAX_NAMED
    assert known[-1].user == "mallory"
    assert max(len(one.subject) for one in known) == 1_024
    assert not any(name in repr(known) for name in NAMES)


def test_the_log_tells_at_once_and_of_the_rest_in_ten_minutes(capsys: pytest.CaptureFixture[str]) -> None:
    configure_logs("info", False)
    lines, found = RefusalLog(), refused()
    lines.look(found.totals, 0.0)
    found.note(RefusalCause.FORBIDDEN, 0.0, "mallory", "frost", "secret")
    for second in range(int(TOLD_EVERY) + 1):
        lines.look(found.totals, float(second))
        found.note(RefusalCause.FULL_USER, 0.0, "mallory", "frost", "secret")
    for _ in range(TWINS - 1):
        found.note(RefusalCause.TAKEN_OVER, 0.0)
    lines.look(found.totals, TOLD_EVERY + 1)  # nothing: clients came back
    found.note(RefusalCause.OLD, 0.0)
    found.note(RefusalCause.QUEUE, 0.0, "mallory", "frost", "secret")
    lines.look(found.totals, TOLD_EVERY + 1)
    first, second, clients, messages = (text := capsys.readouterr().err).splitlines()
    assert "subscriptions were refused     forbidden=1 full=0 " in first
    assert f"subscriptions were refused     forbidden=0 full={int(TOLD_EVERY)} " in second
    assert f"taken_over={TWINS - 1} " in clients
    assert "unspoken=1" in clients
    assert "full=1" in messages
    assert not any(name in text for name in NAMES)


def test_a_house_does_not_meet_the_bounds() -> None:
    """Home Assistant: 3,000 entities, each with a filter of its own, 500 in a packet; as many retained."""
    world = World()
    sender, hass = world.connect("zigbee2mqtt"), world.connect("hass", V311)
    for n in range(3_000):
        sender.publish(f"homeassistant/sensor/{n}/config", b"x" * 1_000, 1, retain=True)
    granted = []
    for start in range(0, 3_000, 500):
        granted += hass.subscribe(*[f"z/{n}" for n in range(start, start + 500)], qos=0)
    assert set(granted) == {0}
    assert hass.subscribe("homeassistant/#", qos=1) == [1]
    assert len(hass.answer()) == 3_000
    for n in range(3_000):
        sender.publish(f"homeassistant/sensor/{n}/config", b"y" * 1_000, 1, retain=True)
    assert len(hass.answer()) == 3_000, "while it reads nothing all of them wait"
    assert not world.broker.refusals.totals
    assert MAX_ASKED >= 500
