"""A user of a gateway has lists that deny a house's topics, and speaks of them by another name or spelling.

He wants to open the lock that he may not, and to read what is kept from him or reserved by others. A message
has two names where a map leads to an alias, and its letters may be composed or not.
"""

from __future__ import annotations

from random import Random

import pytest
from broker_world import Client, World
from naming import answered, joined

from hushcast_gateway.sections.purposes_section import PurposesSection
from hushcast_protocol.mqtt.reason_codes import Reason
from hushcast_protocol.mqtt.topics.access import Access, AccessPermissions
from hushcast_protocol.mqtt.wire.packets import Publish, Will

BY_MAP, BY_ALIAS = "zigbee2mqtt/lock/set", "hush/home/zigbee2mqtt/lock/set"
GUEST = Access(("hush/home/#",), ("hush/home/#",), ("zigbee2mqtt/#",), ("zigbee2mqtt/#",))
MEMBER = Access(("zigbee2mqtt/#",), ("zigbee2mqtt/#",))
NFC, NFD = "hush/open/caf\u00e9", "hush/open/cafe\u0301"


def house(mode: str = "publish") -> World:
    section = PurposesSection(mode=mode)  # type: ignore[arg-type]  # one of those that there are
    world, _ = joined({"home": "operations"}, {"zigbee2mqtt/#": "home"}, section, Random(1))
    return world


def connected(world: World, user: str, access: Access, **fields: object) -> Client:
    return world.connect(user, permissions=AccessPermissions(access, user, user), **fields)  # type: ignore[arg-type]


def reserved(world: World, wanted: str) -> None:
    owner = connected(world, "alice", Access(("#",)))
    spelled = wanted.replace("#", "HASH").replace("+", "PLUS")
    assert answered(owner, Publish(f"!RESERVE/{spelled}{{}}", b"", 1, packet_id=1)) == Reason.SUCCESS


@pytest.mark.parametrize("topic", [BY_MAP, BY_ALIAS])
@pytest.mark.parametrize("retain", [False, True])
async def test_what_is_denied_by_one_name_is_published_by_none(topic: str, retain: bool) -> None:
    world = house()
    lock = connected(world, "lock", MEMBER)
    lock.subscribe("zigbee2mqtt/#")
    guest = connected(world, "guest", GUEST)
    packet = Publish(topic, b"UNLOCK", 1, retain, packet_id=1)
    assert answered(guest, packet) == Reason.NOT_AUTHORIZED
    guest.publish(topic, b"UNLOCK", retain=retain)
    assert lock.payloads() == []
    assert world.broker.retained_at(BY_MAP) is world.broker.retained_at(BY_ALIAS) is None


async def test_a_will_is_published_by_none_either() -> None:
    world = house()
    guest = world.arrive(
        "guest", permissions=AccessPermissions(GUEST, "guest", "guest"), will=Will(BY_ALIAS, b"UNLOCK")
    )
    assert guest.link is None


@pytest.mark.parametrize("qos", [0, 1])
@pytest.mark.parametrize("group", ["", "$share/g/"])
async def test_what_is_denied_by_one_name_is_shown_by_none(qos: int, group: str) -> None:
    world = house()
    guest = connected(world, "guest", GUEST)
    assert guest.subscribe(f"{group}hush/home/#", qos=qos) == [qos]
    member = connected(world, "member", MEMBER)
    member.publish("zigbee2mqtt/alarm/code", b"4711", qos)
    world.broker.arrived("hush/home/zigbee2mqtt/alarm/code", b"4712", 1, True, {}, world.now)
    assert guest.subscribe(f"{group}hush/home/+/alarm/#", qos=qos) == [qos]
    assert guest.payloads() == []
    assert guest.subscribe("hush/home/zigbee2mqtt/#") == [Reason.NOT_AUTHORIZED], "it is all denied"


async def test_who_is_allowed_one_name_speaks_by_that() -> None:
    world = house()
    member, guest = (
        connected(world, "member", MEMBER),
        connected(world, "guest", Access((), ("hush/home/#",))),
    )
    assert member.subscribe("zigbee2mqtt/#") == [1]
    assert guest.subscribe("hush/home/#") == [1]
    assert answered(member, Publish(BY_MAP, b"1", 1, packet_id=1)) == Reason.SUCCESS
    assert answered(member, Publish(BY_ALIAS, b"2", 1, packet_id=2)) == Reason.NOT_AUTHORIZED
    assert [one.topic for one in member.published()] == [BY_MAP]
    assert [one.topic for one in guest.published()] == [BY_ALIAS]


@pytest.mark.parametrize(("denied", "written"), [(NFC, NFD), (NFD, NFC), (NFC, NFC), (NFD, NFD)])
async def test_a_spelling_is_no_way_around(denied: str, written: str) -> None:
    world = house()
    talker = connected(world, "talker", Access(("hush/open/#",), ("hush/open/#",), (denied,), (denied,)))
    assert answered(talker, Publish(written, b"x", 1, packet_id=1)) == Reason.NOT_AUTHORIZED
    talker.subscribe(NFC)
    world.broker.arrived(NFC, b"x", 1, False, {}, world.now)
    assert talker.payloads() == []


@pytest.mark.parametrize("mode", ["publish", "subscribe", "hybrid"])
@pytest.mark.parametrize(
    "wanted", ["zigbee2mqtt/#", "hush/home/#", "hush/home/zigbee2mqtt/+/set", "+/lock/set"]
)
async def test_a_reservation_holds_for_all_names(mode: str, wanted: str) -> None:
    world = house(mode)
    spies = [connected(world, f"spy{n}", Access(("#",), ("#", "hush/#"))) for n in range(2)]
    spies[0].subscribe("zigbee2mqtt/#")
    spies[1].subscribe("hush/home/#")
    reserved(world, wanted)
    member = connected(world, "member", MEMBER)
    assert answered(member, Publish(BY_MAP, b"1", 1, True, packet_id=1)) != Reason.SUCCESS
    mortal = world.connect(
        "mortal", permissions=AccessPermissions(MEMBER, "m", "m"), will=Will(BY_MAP, b"2", 1, True)
    )
    mortal.lose()
    for name in (BY_MAP, BY_ALIAS):
        world.broker.arrived(name, b"3", 1, True, {}, world.now)
    late = connected(world, "late", Access((), ("#", "hush/#")))
    for one in (BY_MAP, BY_ALIAS, "#", "hush/home/#"):
        late.subscribe(one)
    assert [one.payloads() for one in (*spies, late)] == [[], [], []]


@pytest.mark.parametrize(("by", "written"), [(NFC, NFD), (NFD, NFC)])
async def test_a_reservation_holds_for_all_spellings(by: str, written: str) -> None:
    world = house()
    reserved(world, by)
    reader = connected(world, "reader", Access((), (NFC,)))
    reader.subscribe(NFC)
    writer = connected(world, "writer", Access(("hush/open/#",)))
    assert answered(writer, Publish(written, b"x", 1, packet_id=1)) == Reason.NOT_AUTHORIZED
    world.broker.arrived(NFC, b"x", 1, False, {}, world.now)
    assert reader.payloads() == []
