"""An MQTT user has thousands of subscriptions that match a topic, reservations that cover it, and publishes.

He wants all others to wait while it is decided for each of his subscriptions whether it may have the message:
most have the same purpose, and are decided alike.
"""

from __future__ import annotations

from itertools import islice, product
from random import Random
from typing import Literal

import pytest
from broker_world import World
from naming import joined
from steps import one_step

from hushcast_gateway.sections.purposes_section import PurposesSection
from hushcast_protocol.mqtt.limits import MAX_FILTERS_A_USER
from hushcast_protocol.mqtt.topics.access import Access, AccessPermissions
from hushcast_protocol.mqtt.wire.packets import Publish, RequestedSubscription, Subscribe

pytestmark = pytest.mark.slow

CLIENTS = 50
CLAUSES = 30
TOPIC = "m/a/b/c/d/e/f/g/h/i/j/k/l/m"
ALL = Access(("#",), ("#",))
OPERATIONS = {"user_property": [("ap", "operations")]}


def house(mode: Literal["publish", "subscribe", "hybrid"], store: Literal["tree", "cached"]) -> World:
    world, _ = joined({}, {}, PurposesSection(mode=mode, store=store), Random(1))
    choices = [(level, "+") for level in TOPIC.split("/")[1:]]
    filters = (f"m/{'/'.join(one)}" for one in product(*choices))
    for number in range(CLIENTS):
        client = world.connect(f"c{number}", permissions=AccessPermissions(ALL, "alice", f"c{number}"))
        some = [RequestedSubscription(one) for one in islice(filters, MAX_FILTERS_A_USER // 2 // CLIENTS)]
        client.send(Subscribe(1, some, OPERATIONS))  # type: ignore[arg-type]
    return world


@pytest.mark.parametrize(
    ("mode", "store"), [("publish", "cached"), ("subscribe", "cached"), ("hybrid", "tree")]
)
def test_a_message_is_decided_once_for_each_purpose(
    mode: Literal["publish", "subscribe", "hybrid"], store: Literal["tree", "cached"]
) -> None:
    world = house(mode, store)
    sender = world.connect("sender", permissions=AccessPermissions(ALL, "alice", "sender"))
    assert sender.link is not None
    for levels in range(CLAUSES):
        sender.publish(f"!RESERVE/m/{'PLUS/' * levels}HASH{{operations}}", qos=1)
    for terms in ([], [("aip", "operations")], [("aip", "marketing")]):
        packet = Publish(TOPIC, b"x", properties={"user_property": terms} if terms else {})  # type: ignore[typeddict-item]
        with one_step():
            world.broker.receive(sender.link, packet, world.now)
        world.settle()
    first = world.connect("first", permissions=AccessPermissions(ALL, "alice", "first"))
    first.send(Subscribe(1, [RequestedSubscription(TOPIC)], OPERATIONS))  # type: ignore[arg-type]
    for wanted, reached in (("{operations}", 1), ("{}", 0), ("{operations}", 1)):
        sender.publish(f"!RESERVE/{TOPIC}{wanted}", qos=1)
        sender.publish(TOPIC, b"x")
        assert len(first.payloads()) == reached, "what was decided does not outlast a change"
