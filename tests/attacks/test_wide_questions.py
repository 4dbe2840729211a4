"""A user of a gateway reserves a few filters with wildcards of its own, and asks once what a wide one is for.

He wants the gateway to look at all sets of reservations that some topic could have, which are as many as two
to the power of their levels, and to answer nobody else meanwhile: by a question of 21 bytes, by a SUBSCRIBE
of many filters, or by a change after which all subscriptions are decided anew.
"""

from __future__ import annotations

from random import Random

import pytest
from broker_world import Client, World
from naming import answered, joined
from steps import one_step

from hushcast_gateway.purposes.command_execution import MAX_CLEARED
from hushcast_gateway.sections.purposes_section import PurposesSection
from hushcast_protocol.mqtt.limits import MAX_ASKED
from hushcast_protocol.mqtt.reason_codes import Reason
from hushcast_protocol.mqtt.topics.access import Access, AccessPermissions
from hushcast_protocol.mqtt.wire.packets import Properties, Publish, RequestedSubscription, SubAck, Subscribe
from hushcast_protocol.purposes.clauses import Clause
from hushcast_protocol.purposes.purpose_names import Purpose

OWN = Access(("m/#",), ("m/#", "!PBAC/#"))
FOR_MARKETING: Properties = {"user_property": [("ap", "marketing")]}
LEVELS = 20
PLUS = ["PLUS"] * LEVELS


def house(mode: str) -> tuple[World, Client]:
    """Return a gateway and a client whose reservations overlap in many ways."""
    world, _ = joined({}, {}, PurposesSection(mode=mode), Random(1))  # type: ignore[arg-type]
    eve = world.connect("eve", permissions=AccessPermissions(OWN, "eve", "eve"))
    overlap(eve)
    return world, eve


def overlap(eve: Client) -> None:
    """Reserve so that there are as many sets as two to the power of the levels."""
    said(eve, f"!RESERVE/m/{'/'.join(PLUS)}{{operations,marketing,research}}")
    for n in range(LEVELS):
        levels = [*PLUS[:n], f"x{n}", *PLUS[n + 1 :]]
        said(eve, f"!RESERVE/m/{'/'.join(levels)}{{{'marketing' if n % 2 else 'research'}}}")


def said(client: Client, topic: str) -> None:
    assert answered(client, Publish(topic, b"", 1, packet_id=1)) == Reason.SUCCESS


@pytest.mark.parametrize("question", ["!PBAC/ARES/m/HASH", f"!PBAC/CRES/m/{'/'.join(PLUS)}"])
async def test_a_question_has_one_budget_and_is_answered_openly(question: str) -> None:
    _, eve = house("publish")
    assert eve.subscribe("!PBAC/#", qos=0) == [0]
    with one_step():
        eve.publish(question)
    assert [(one.topic, one.payload) for one in eve.published()] == [(question, b"unknown")]


@pytest.mark.parametrize("mode", ["subscribe", "hybrid"])
async def test_a_packet_has_one_budget_for_all_of_its_filters(mode: str) -> None:
    _, eve = house(mode)
    filters = [RequestedSubscription("m/" + "+/" * n + "#") for n in range(LEVELS)]
    with one_step():
        eve.send(Subscribe(1, filters, FOR_MARKETING))
    (answer,) = [one for one in eve.got() if isinstance(one, SubAck)]
    if mode == "subscribe":
        assert set(answer.reasons) == {Reason.QUOTA_EXCEEDED}, "it is not known, and said so"
    else:
        assert set(answer.reasons) == {0}, "messages are decided one by one"


async def test_after_a_change_a_little_is_decided_at_once_and_nothing_wrong_is_handed_out() -> None:
    world, rules = joined({}, {}, PurposesSection(mode="subscribe"), Random(1))
    many = [world.connect(f"r{n}", permissions=AccessPermissions(OWN, "bob", f"r{n}")) for n in range(LEVELS)]
    for n, reader in enumerate(many):
        assert reader.subscribe("m/" + "+/" * n + "#", properties=FOR_MARKETING, qos=0) == [0]
    eve = world.connect("eve", permissions=AccessPermissions(OWN, "eve", "eve"))
    overlap(eve)
    said(eve, "!RESERVE/m/secret{research}")
    with one_step():
        eve.publish("m/" + "/".join(["x"] * LEVELS), b"for all")
    with one_step():
        eve.publish("m/secret", b"for research")
    assert [len(reader.payloads()) for reader in many] == [0] + [1] * (LEVELS - 1), (
        "the first may not have all"
    )
    for _ in range(100):
        with one_step():
            for _ in rules.tick():
                pass
    assert rules.resting == LEVELS, "of none can it be said that it may have all"


async def test_filters_that_a_client_may_not_have_cost_nothing() -> None:
    world, _ = house("subscribe")
    bob = world.connect("bob", permissions=AccessPermissions(Access((), ("b/#",)), "bob", "bob"))
    with one_step():
        bob.send(Subscribe(1, [RequestedSubscription("m/#")] * MAX_ASKED, FOR_MARKETING))
    (answer,) = [one for one in bob.got() if isinstance(one, SubAck)]
    assert set(answer.reasons) == {Reason.NOT_AUTHORIZED}


async def test_all_is_not_taken_away_in_one_step() -> None:
    world, rules = joined({}, {}, PurposesSection(), Random(1))
    eve = world.connect("eve", permissions=AccessPermissions(OWN, "eve", "eve"))
    for n in range(MAX_CLEARED + 1):
        rules.kept.reserve(Clause("eve", f"m/{n}" + "/x" * 29, frozenset([Purpose("research")]), frozenset()))
    world.settle()
    reasons = []
    while rules.reserved:
        with one_step():
            reasons.append(answered(eve, Publish("!PBAC/CLEAR", b"", 1, packet_id=1)))
    assert reasons == [Reason.QUOTA_EXCEEDED, Reason.SUCCESS]
