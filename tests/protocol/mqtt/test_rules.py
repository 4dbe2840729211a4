"""Rules about what messages may be used for: asked wherever a message could be handed out."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

import pytest
from broker_world import Client, World

from hushcast_protocol.base.budget import Budget
from hushcast_protocol.mqtt.interfaces import ResolvedFilter
from hushcast_protocol.mqtt.mqtt_messages import MqttMessage
from hushcast_protocol.mqtt.mqtt_session import GrantedSubscription, MqttSession
from hushcast_protocol.mqtt.reason_codes import Reason
from hushcast_protocol.mqtt.topics.permissions import AddedProperty, Permissions
from hushcast_protocol.mqtt.topics.topic_filters import matches, normal
from hushcast_protocol.mqtt.wire.packets import (
    V5,
    V311,
    Properties,
    PubAck,
    Publish,
    PubRec,
    RequestedSubscription,
    SubAck,
    Subscribe,
    UnsubAck,
    Unsubscribe,
    Will,
)

NOT_FOR, COMMAND = "not for", "!do/"


class Given:
    """Rules by hand: which purposes a topic is for, `@p/FILTER` subscribes for p, `!do/` is a command."""

    def __init__(self, remembers: bool = True) -> None:
        self.remembers = remembers
        self.allowed: dict[str, set[str]] = {}
        self.commands: list[str] = []
        self.answer = 0
        self.known: list[tuple[str, str]] = []
        self.asked = 0
        self.additions: AddedProperty | None = None

    def is_command(self, topic: str) -> bool:
        return topic.startswith(COMMAND)

    def meant(
        self, permissions: Permissions, client_id: str, wanted: str, given: Properties
    ) -> ResolvedFilter | int:
        purpose = dict(given.get("user_property", [])).get("ap", "")
        if wanted.startswith("@"):
            purpose = wanted[1:].partition("/")[0]
        return (
            Reason.NOT_AUTHORIZED
            if purpose == "forbidden"
            else ResolvedFilter(self.filter_of(wanted), purpose)
        )

    def budget(self) -> Budget:
        return Budget(1)

    def refuses(self, permissions: Permissions, client_id: str, meant: ResolvedFilter, budget: Budget) -> int:
        return 0

    def filter_of(self, wanted: str) -> str:
        return wanted.partition("/")[2] if wanted.startswith("@") else wanted

    def published(self, permissions: Permissions, client_id: str, topic: str, packet: Publish) -> int | None:
        if not self.is_command(topic):
            return None
        self.commands.append(topic)
        return self.answer

    def owned(self, user: str, topic: str, properties: Properties) -> Properties:
        return properties

    def added(self, permissions: Permissions) -> AddedProperty | None:
        return self.additions

    def has_terms(self, properties: Properties) -> bool:
        return "user_property" in properties

    def may_have(
        self, session: MqttSession, granted: GrantedSubscription | None, message: MqttMessage
    ) -> bool:
        self.asked += 1
        purpose = "" if granted is None else granted.purpose
        if (NOT_FOR, purpose) in message.properties.get("user_property", []):
            return False
        return message.topic not in self.allowed or purpose in self.allowed[message.topic]

    def subscribed(self, session: MqttSession, granted: GrantedSubscription) -> None:
        self.known.append((granted.wanted, granted.purpose))

    def unsubscribed(self, session: MqttSession, granted: GrantedSubscription) -> None:
        self.known.remove((granted.wanted, granted.purpose))


def world_of(remembers: bool = True, **allowed: Iterable[str]) -> tuple[World, Given]:
    rules = Given(remembers)
    rules.allowed = {topic: set(purposes) for topic, purposes in allowed.items()}
    return World(rules=rules), rules


def withdraw(world: World, rules: Given, topic: str) -> None:
    rules.allowed[topic] = set()
    world.broker.rules_changed(topic)


def reader(world: World, wanted: str, client_id: str = "reader", qos: int = 1, expiry: int = 100) -> Client:
    client = world.connect(client_id, expiry=expiry)
    assert client.subscribe(wanted, qos=qos) == [qos]
    return client


@pytest.mark.parametrize("remembers", [True, False])
@pytest.mark.parametrize("qos", [0, 1, 2])
def test_a_message_goes_to_those_subscriptions_that_may_have_it(qos: int, remembers: bool) -> None:
    world, _ = world_of(remembers, t="b")
    clients = [reader(world, wanted, wanted, 2) for wanted in ("t", "@a/t", "@b/t", "@b/#")]
    sender = world.connect("sender")
    for n in range(2):
        sender.publish("t", qos=qos, packet_id=n + 1)
    assert [len(client.payloads()) for client in clients] == [0, 0, 2, 2]
    sender.publish("open")
    assert [len(client.payloads()) for client in clients] == [0, 0, 0, 1]
    assert world.broker.counts["withheld"] == 4


@pytest.mark.parametrize("qos", [0, 1])
def test_of_overlapping_subscriptions_those_that_may_count(qos: int) -> None:
    world, rules = world_of(t="b")
    client = world.connect("a", expiry=100)
    for number, wanted in enumerate(("#", "@b/t", "@a/+"), 1):
        client.subscribe(wanted, qos=qos, properties={"subscription_identifier": [number]})
    world.connect("sender").publish("t", qos=qos)
    assert [one.properties["subscription_identifier"] for one in client.published()] == [[2]]
    withdraw(world, rules, "t")
    world.connect("sender").publish("t", qos=qos)
    assert client.published() == []


@pytest.mark.parametrize("qos", [0, 1, 2])
def test_what_a_client_asked_for_once_is_added_to_its_messages(qos: int) -> None:
    world, rules = world_of()
    client = reader(world, "#", qos=2)
    sender, other = world.connect("sender"), world.connect("other")
    rules.additions = AddedProperty({"t/#": ("for", "x"), "+/u": ("for", "y")}, frozenset({"says"}))
    sender.publish("!do/it", qos=1)
    sender.publish("t", b"1", qos=qos, packet_id=2)
    sender.publish("t/u", b"2", qos=qos, packet_id=3, properties={"user_property": [("a", "b")]})
    sender.publish("t/u", b"3", qos=qos, packet_id=4, properties={"user_property": [("says", "b")]})
    sender.publish("v", b"4", qos=qos, packet_id=5)
    other.publish("t", b"5", qos=qos, packet_id=6)
    found = {one.payload: one.properties.get("user_property", []) for one in client.published()}
    assert found == {
        b"1": [("for", "x")],
        b"2": [("a", "b"), ("for", "x"), ("for", "y")],
        b"3": [("says", "b")],
        b"4": [],
        b"5": [],
    }
    rules.additions = None
    sender.publish("!do/it", qos=1, packet_id=7)
    sender.publish("t", b"6", qos=qos, packet_id=8)
    assert [one.properties.get("user_property") for one in client.published()] == [None]


def test_answers_are_asked_for_once_a_topic_and_again_when_the_rules_change_there() -> None:
    world, rules = world_of()
    client = reader(world, "#", qos=0)
    sender = world.connect("sender")
    for topic in "ttuu":
        sender.publish(topic)
    assert rules.asked == 2
    world.broker.rules_changed("t")
    for topic in "tu":
        sender.publish(topic)
    assert rules.asked == 3
    world.broker.rules_changed(None)
    for topic in "tu":
        sender.publish(topic)
    assert rules.asked == 5
    assert len(client.payloads()) == 8


@pytest.mark.parametrize(
    "others", [(), ("caf\u00e9/x", "cafe\u0301/x", "\u00e9")], ids=["ascii", "other letters"]
)
@pytest.mark.parametrize(
    "wanted", ["#", "+", "a/#", "a/+", "a/b", "ab", "none/#", "caf\u00e9/+", "cafe\u0301/#"]
)
def test_a_change_asks_again_about_those_topics_that_its_filter_matches(
    wanted: str, others: tuple[str, ...]
) -> None:
    world, rules = world_of()
    client = reader(world, "#", qos=0)
    sender = world.connect("sender")
    topics = ("a", "ab", "a/b", "a/c", "a/b/c", "b/a", *others)
    for topic in topics:
        sender.publish(topic)
    world.broker.rules_changed(wanted)
    before = rules.asked
    for topic in topics:
        sender.publish(topic)
    matched = [one for one in topics if matches(normal(wanted), normal(one))]
    assert rules.asked - before == len(matched)
    assert len(client.published()) == 2 * len(topics)


def test_a_message_may_have_terms_of_its_own() -> None:
    world, _ = world_of()
    one, other = reader(world, "@a/t", "one"), reader(world, "@b/t", "other")
    sender = world.connect("sender")
    sender.publish("t", b"1", properties={"user_property": [(NOT_FOR, "a")]})
    sender.publish("t", b"2")
    assert one.payloads() == [b"2"]
    assert other.payloads() == [b"1", b"2"]


# Withdrawn while messages wait: none is handed out afterwards.


@pytest.mark.parametrize("restarts", [False, True])
@pytest.mark.parametrize("qos", [1, 2])
def test_withdrawn_while_a_client_is_away(qos: int, restarts: bool) -> None:
    world, rules = world_of(t="b")
    client = reader(world, "@b/t", qos=qos)
    client.lose()
    sender = world.connect("sender")
    sender.publish("t", b"1", qos)
    sender.publish("u", b"2", qos)
    withdraw(world, rules, "t")
    if restarts:
        world.kill()
    back = world.connect("reader", clean=False, expiry=100)
    assert back.answer() == []
    assert world.broker.counts["withheld"] == 1
    assert "mqtt-queued" not in world.kinds()
    assert world.broker.held_bytes == 0


def test_withdrawn_while_a_window_is_full() -> None:
    world, rules = world_of(t="b")
    client = world.connect("reader", properties={"receive_maximum": 1})
    client.subscribe("@b/t", qos=1)
    sender = world.connect("sender")
    sender.publish("t", b"1", 1)
    sender.publish("t", b"2", 1)
    withdraw(world, rules, "t")
    assert client.answer() == [b"1"]


def test_withdrawn_before_it_is_sent_again() -> None:
    world, rules = world_of(t="b")
    client = reader(world, "@b/t")
    world.connect("sender").publish("t", b"1", 1)
    assert client.payloads() == [b"1"]
    client.lose()
    withdraw(world, rules, "t")
    back = world.connect("reader", clean=False, expiry=100)
    assert back.answer() == []
    assert "mqtt-queued" not in world.kinds()


# Deleted, whoever may have it.


def delete(world: World, payload: bytes) -> dict[str, int]:
    found: Counter[str] = Counter()
    for _ in world.broker.withdraw(lambda message: message.payload == payload, found):
        pass
    return dict(found)


@pytest.mark.parametrize("restarts", [False, True])
@pytest.mark.parametrize("qos", [1, 2])
def test_what_waits_is_to_be_sent_again_or_is_retained_is_deleted(qos: int, restarts: bool) -> None:
    world, _ = world_of()
    sent, waits = reader(world, "t", "sent", qos), reader(world, "t", "waits", qos)
    waits.lose()
    sender = world.connect("sender")
    for number, payload in enumerate((b"1", b"2", b"1"), 1):
        sender.publish("t", payload, qos, retain=True, packet_id=number)
        sender.answer()
    sent.lose()
    if restarts:
        world.kill()
    assert world.broker.retained == 1
    assert delete(world, b"1") == {"t": 5}
    assert (world.broker.retained, world.broker.counts["withdrawn"]) == (0, 4)
    for name in ("sent", "waits"):
        assert world.connect(name, clean=False, expiry=100).answer() == [b"2"]
    assert world.broker.held_bytes == 0
    assert "mqtt-queued" not in world.kinds()
    assert "mqtt-retained" not in world.kinds()


def test_what_a_client_that_is_here_was_sent_is_not_called_back() -> None:
    world, _ = world_of()
    client = world.connect("reader", properties={"receive_maximum": 1})
    client.subscribe("t", qos=1)
    sender = world.connect("sender")
    for payload in (b"1", b"1", b"2"):
        sender.publish("t", payload, 1)
    assert delete(world, b"1") == {"t": 1}
    assert client.answer() == [b"1", b"2"]


def test_withdrawn_while_retained() -> None:
    world, rules = world_of(t="b")
    world.connect("sender").publish("t", b"1", 1, retain=True)
    assert reader(world, "@b/t", "early").answer() == [b"1"]
    assert reader(world, "t", "without").answer() == []
    withdraw(world, rules, "t")
    assert reader(world, "@b/t", "late").answer() == []


def test_withdrawn_while_a_new_subscription_still_gets_what_is_retained() -> None:
    world, rules = world_of()
    sender = world.connect("sender")
    for topic in "tu":
        sender.publish(topic, topic.encode(), 1, retain=True)
    client = world.connect("reader", properties={"receive_maximum": 1})
    client.subscribe("@b/#", qos=1)
    first, second = [b"t", b"u"] if b"t" in client.outlet.data else [b"u", b"t"]
    withdraw(world, rules, second.decode())
    assert client.answer() == [first]


def test_withdrawn_while_owed_to_a_shared_group() -> None:
    world, rules = world_of(t="b")
    client = reader(world, "@b/$share/g/t")
    client.lose()
    world.connect("sender").publish("t", b"1", 1)
    withdraw(world, rules, "t")
    back = world.connect("reader", clean=False, expiry=100)
    assert back.answer() == []
    assert world.broker.counts["withheld"] == 1


def test_after_unsubscribing_only_what_nobody_reserved_comes() -> None:
    world, _ = world_of(t="b")
    client = world.connect("reader", properties={"receive_maximum": 1})
    client.subscribe("@b/t", "@b/u", qos=1)
    sender = world.connect("sender")
    for topic in "uut":
        sender.publish(topic, topic.encode(), 1)
    client.send(Unsubscribe(3, ["t", "u"]))
    assert client.answer() == [b"u", b"u"]


def test_a_queued_message_keeps_the_identifiers_of_those_that_may() -> None:
    world, rules = world_of(t="ab")
    client = world.connect("reader", expiry=100)
    for number, wanted in enumerate(("@a/t", "@b/+"), 1):
        client.subscribe(wanted, qos=1, properties={"subscription_identifier": [number]})
    client.lose()
    world.connect("sender").publish("t", qos=1)
    rules.allowed["t"] = {"b"}
    world.broker.rules_changed("t")
    back = world.connect("reader", clean=False, expiry=100)
    assert [one.properties["subscription_identifier"] for one in back.published()] == [[2]]


# Shared subscriptions


@pytest.mark.parametrize("qos", [0, 1])
def test_members_that_may_not_starve_nobody(qos: int) -> None:
    world, _ = world_of(t="b")
    wrong = [reader(world, "@a/$share/g/t", f"wrong{n}") for n in range(3)]
    right = [reader(world, "@b/$share/g/t", f"right{n}") for n in range(2)]
    sender = world.connect("sender")
    for n in range(10):
        sender.publish("t", b"%d" % n, qos, n + 1)
    assert [len(client.payloads()) for client in wrong] == [0, 0, 0]
    assert all(client.payloads() for client in right)


def test_a_member_away_that_may_not_keeps_nothing_from_one_that_may() -> None:
    world, _ = world_of(t="b")
    wrong, right = reader(world, "@a/$share/g/t", "wrong"), reader(world, "@b/$share/g/t", "right")
    wrong.lose()
    right.lose()
    sender = world.connect("sender")
    for n in range(4):
        sender.publish("t", b"%d" % n, 1, n + 1)
    assert world.connect("wrong", clean=False, expiry=100).answer() == []
    assert len(world.connect("right", clean=False, expiry=100).answer()) == 4


def test_what_a_member_may_not_have_any_more_goes_to_one_that_may() -> None:
    world, rules = world_of(t="ab")
    first = reader(world, "@a/$share/g/t", "first")
    first.lose()
    world.connect("sender").publish("t", b"1", 1)
    second = reader(world, "@b/$share/g/t", "second")
    rules.allowed["t"] = {"b"}
    world.broker.rules_changed("t")
    assert world.connect("first", clean=False, expiry=100).answer() == []
    assert second.answer() == [b"1"]


# Commands


@pytest.mark.parametrize("version", [V311, V5])
@pytest.mark.parametrize("qos", [0, 1, 2])
def test_a_command_is_answered_and_never_delivered(qos: int, version: int) -> None:
    world, rules = world_of()
    rules.answer = Reason.NOT_AUTHORIZED
    clients = [reader(world, wanted, wanted) for wanted in ("#", "+/+", "!do/it", "$share/g/#")]
    sender = world.connect("sender", version)
    sender.publish("!do/it", b"now", qos, retain=True)
    told = Reason.NOT_AUTHORIZED if version == V5 else 0
    if qos:
        assert sender.got() == [PubAck(7, told) if qos == 1 else PubRec(7, told)]
    assert rules.commands == ["!do/it"]
    assert [client.payloads() for client in clients] == [[], [], [], []]
    assert world.broker.retained == 0


def test_a_command_under_an_alias_is_one() -> None:
    world, rules = world_of()
    client, sender = reader(world, "#"), world.connect("sender")
    sender.send(Publish("!do/it", b"", properties={"topic_alias": 1}))
    sender.send(Publish("", b"", properties={"topic_alias": 1}))
    assert rules.commands == ["!do/it"] * 2
    assert client.payloads() == []


def test_a_will_and_the_network_give_no_commands_and_deliver_none() -> None:
    world, rules = world_of()
    client = reader(world, "#")
    world.connect("sender", will=Will("!do/it", b"gone", retain=True)).lose()
    world.broker.arrived("!do/it", b"from afar", 1, True, {}, world.now)
    assert client.payloads() == []
    assert rules.commands == []
    assert world.broker.retained == 0
    assert world.broker.counts["dropped_forbidden"] == 2


def test_a_will_and_what_the_network_brings_follow_the_rules() -> None:
    world, _ = world_of(t="b")
    clients = [reader(world, wanted, wanted) for wanted in ("t", "@b/t")]
    world.connect("sender", will=Will("t", b"gone", 1)).lose()
    world.broker.arrived("t", b"from afar", 1, False, {}, world.now)
    world.settle()
    assert [client.payloads() for client in clients] == [[], [b"gone", b"from afar"]]


# SUBSCRIBE


def test_a_filter_means_what_the_rules_say() -> None:
    world, rules = world_of()
    client = world.connect("a", expiry=100)
    given: Properties = {"user_property": [("ap", "p")]}
    client.send(
        Subscribe(3, [RequestedSubscription("@forbidden/t", 1), RequestedSubscription("t", 1)], given)
    )
    assert client.only(SubAck).reasons == [Reason.NOT_AUTHORIZED, 1]
    assert rules.known == [("t", "p")]
    assert client.subscribe("@q/t", qos=1) == [1]
    assert rules.known == [("t", "q")]
    world.kill()
    assert rules.known == [("t", "q")] * 2  # it hears of what is on disk
    assert world.broker.subscriptions == 1
    back = world.connect("a", clean=False, expiry=100)
    rules.known = [("t", "q")]
    back.send(Unsubscribe(4, ["@r/t"]))
    assert back.only(UnsubAck).reasons == [0]
    assert rules.known == []


def test_a_refused_filter_of_3_1_1_hears_that_it_failed() -> None:
    world, _ = world_of()
    assert world.connect("a", V311).subscribe("@forbidden/t") == [Reason.UNSPECIFIED_ERROR]


def test_subscriptions_of_a_session_that_ends_are_heard_of() -> None:
    world, rules = world_of()
    client = reader(world, "@b/t", expiry=0)
    client.lose()
    assert rules.known == []
