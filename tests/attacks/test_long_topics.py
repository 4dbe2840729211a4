"""An MQTT user that may do nothing publishes to topics of 65,000 characters, and leaves wills there, each of
them another; who writes to an alias's topic sends such names from elsewhere.

He wants the gateway to remember them all: what it looks up for a topic, it keeps for the next message.
"""

from __future__ import annotations

import tracemalloc
from collections.abc import Iterator
from contextlib import contextmanager
from random import Random

import pytest
from broker_world import World
from naming import joined

from hushcast_gateway.sections.purposes_section import PurposesSection
from hushcast_protocol.mqtt.limits import MAX_TOPIC
from hushcast_protocol.mqtt.reason_codes import Reason
from hushcast_protocol.mqtt.topics import topic_names
from hushcast_protocol.mqtt.topics.access import Access, AccessPermissions
from hushcast_protocol.mqtt.wire.packets import ConnAck, Publish, Will

TOPICS = 100
NOTHING = Access()


@contextmanager
def little_kept() -> Iterator[None]:
    """Hold what the block keeps to less than 5 of its topics."""
    topic_names.alone.cache_clear()
    tracemalloc.start()
    try:
        yield
        assert tracemalloc.get_traced_memory()[0] < 5 * 4 * 65_000
    finally:
        tracemalloc.stop()


def long_topic(number: int) -> str:
    """One character outside of the first plane makes each of the others take four bytes in memory."""
    return f"\U0001f600{number}".ljust(65_000, "x")


def world(has_network: bool) -> World:
    return joined({"home": ""}, {"z/#": "home"}, PurposesSection(), Random(1))[0] if has_network else World()


@pytest.mark.parametrize("has_network", [False, True])
@pytest.mark.parametrize("kind", ["short way", "retained", "acknowledged", "registered"])
def test_what_may_not_be_published_is_not_remembered(kind: str, has_network: bool) -> None:
    here = world(has_network)
    mallory = here.connect("m", permissions=AccessPermissions(NOTHING, "alice", "m"))
    assert mallory.link is not None
    if kind == "registered":
        given = {"user_property": [("DAP-MP", "operations:#")]}
        mallory.send(Publish("$DAP/purpose_management", b"", properties=given))  # type: ignore[arg-type]
    with little_kept():
        for number in range(TOPICS):
            packet = Publish(
                long_topic(number), b"", int(kind == "acknowledged"), kind == "retained", packet_id=1
            )
            here.broker.receive(mallory.link, packet, here.now)
            here.settle()


@pytest.mark.parametrize("has_network", [False, True])
def test_nor_is_a_will(has_network: bool) -> None:
    here = world(has_network)
    with little_kept():
        for number in range(TOPICS):
            client = here.arrive(
                "m",
                permissions=AccessPermissions(NOTHING, "alice", "m"),
                will=Will(long_topic(number), b""),
            )
            (answer,) = client.got()
            assert isinstance(answer, ConnAck)
            assert answer.reason == Reason.TOPIC_NAME_INVALID


@pytest.mark.parametrize("topic", ["x" * MAX_TOPIC, "$SYS/broker/connection/NAME/state"])
def test_wills_that_lead_somewhere_or_nowhere_keep_nobody_out(topic: str) -> None:
    assert World().connect("a", will=Will(topic, b"")).link is not None
