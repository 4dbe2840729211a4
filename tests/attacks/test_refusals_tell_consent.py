"""A user of a gateway may read nothing of a topic, and subscribes to it for one purpose after the other.

He wants to learn from the answers what its owner allows and what not.
"""

from __future__ import annotations

from random import Random

import pytest
from naming import answered, joined

from hushcast_gateway.sections.purposes_section import PurposesSection
from hushcast_protocol.mqtt.reason_codes import Reason
from hushcast_protocol.mqtt.topics.access import Access, AccessPermissions
from hushcast_protocol.mqtt.wire.packets import Publish

PURPOSES = ("", "operations", "marketing", "marketing/individualized", "research", "unheard-of")


@pytest.mark.parametrize("mode", ["publish", "subscribe", "hybrid"])
@pytest.mark.parametrize("strict", [False, True])
@pytest.mark.parametrize("group", ["", "$share/g/"])
async def test_who_may_not_read_a_topic_hears_one_answer(mode: str, strict: bool, group: str) -> None:
    section = PurposesSection(mode=mode, strict=strict)  # type: ignore[arg-type]  # one of those that there are
    world, _ = joined({"home": ""}, {"cars/#": "home"}, section, Random(1))
    owner = world.connect("alice", permissions=AccessPermissions(Access(("#",)), "alice", "alice"))
    command = "!RESERVE/cars/7/HASH{operations,marketing|marketing/individualized}"
    assert answered(owner, Publish(command, b"", 1, packet_id=1)) == Reason.SUCCESS
    lists = Access((), ("eve/#", "hush/#"), (), ("cars/#",))
    eve = world.connect("eve", permissions=AccessPermissions(lists, "eve", "eve"))
    reasons = set()
    for topic in (
        "cars/7/position",
        "cars/7/#",
        "cars/8/position",
        "hush/home/cars/7/#",
        "hush/home/cars/8/x",
    ):
        for purpose in PURPOSES:
            given = {"user_property": [("ap", purpose)]} if purpose else {}
            reasons |= set(eve.subscribe(group + topic, properties=given))
    assert reasons == {Reason.NOT_AUTHORIZED}


@pytest.mark.parametrize(
    "asked", ["cars/7/position", "cars/HASH", "hush/home/cars/7/position", "hush/home/HASH"]
)
async def test_who_may_not_read_all_of_it_is_told_nothing_of_what_it_is_for(asked: str) -> None:
    world, rules = joined({"home": ""}, {"cars/#": "home"}, PurposesSection(), Random(1))
    lists = Access((), ("#", "hush/#"), (), ("cars/7/#",))
    mallory = world.connect("mallory", permissions=AccessPermissions(lists, "mallory", "mallory"))
    mallory.subscribe("#")
    mallory.publish(f"!PBAC/ARES/{asked}")
    assert mallory.payloads() == []
    assert rules.counters["purpose_commands_refused"] == 1
