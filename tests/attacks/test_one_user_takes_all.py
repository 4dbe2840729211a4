"""One MQTT user takes as many of all that users share as it is given, by as many clients as it likes, and
wants nothing left for the others; a client of 3.1.1 is to believe that what has no room is kept.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
import trio
from broker_world import Client, World
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from hushcast_gateway.counters import GatewayCounters
from hushcast_gateway.network import network_publisher, network_reader
from hushcast_gateway.network.daemon_link import DaemonLink
from hushcast_gateway.network.network_publisher import NetworkPublisher
from hushcast_gateway.network.network_reader import NetworkReader
from hushcast_protocol.base.shares import TIMES_FREE, Shares
from hushcast_protocol.mqtt.limits import MqttLimits
from hushcast_protocol.mqtt.mqtt_messages import MqttMessage
from hushcast_protocol.mqtt.network_publication import NetworkPublication
from hushcast_protocol.mqtt.reason_codes import Reason
from hushcast_protocol.mqtt.topics.permissions import FullPermissions
from hushcast_protocol.mqtt.topics.ways import Way
from hushcast_protocol.mqtt.wire.packets import V311, PubAck
from hushcast_runtime.environment import simulated_environment

WHOLE = 50  # places, of which one user gets 40, another one 8 of the other 10
MESSAGE = 1_000  # bytes of a payload

Take = Callable[[str, int], bool]
"""Has a user take one more; returns whether it was given."""


def test_a_lone_user_has_four_fifths_and_the_next_one_most_of_the_rest() -> None:
    shares = Shares(WHOLE)
    assert take_all(lambda user, n: take(shares, user), "mallory") == WHOLE * 4 // 5
    assert take_all(lambda user, n: take(shares, user), "alice") == WHOLE * 4 // 25


@settings(max_examples=50)
@given(st.lists(st.tuples(st.integers(0, 9), st.integers(-3, 30)), max_size=60))
def test_whoever_takes_what_it_may_leaves_a_quarter_of_it_free(moves: list[tuple[int, int]]) -> None:
    shares = Shares(1_000)
    for number, amount in moves:
        user = f"u{number}"
        if amount < 0:
            shares.give_back(user, min(-amount, shares.of(user)))
        elif shares.may_take(user, amount):
            shares.take(user, amount)
            assert shares.of(user) <= TIMES_FREE * (1_000 - shares.taken)
    assert shares.taken == sum(shares.of(f"u{number}") for number in range(10))
    assert shares.may_take("alice")


def take(shares: Shares, user: str) -> bool:
    may = shares.may_take(user)
    if may:
        shares.take(user)
    return may


def take_all(take_one: Take, user: str) -> int:
    """Return how many a user gets that takes all it can."""
    for number in range(2 * WHOLE):
        if not take_one(user, number):
            return number
    raise AssertionError("there is no end to it")


def connections(world: World) -> Take:
    return lambda user, n: world.arrive(f"{user}{n}", permissions=FullPermissions(user)).link is not None


def sessions_that_stay(world: World) -> Take:
    def take_one(user: str, n: int) -> bool:
        client = world.arrive(f"{user}{n}", permissions=FullPermissions(user), expiry=100)
        client.lose()
        return client.link is not None

    return take_one


def senders(world: World) -> Callable[[str], Client]:
    found: dict[str, Client] = {}

    def sender(user: str) -> Client:
        if user not in found:
            found[user] = world.connect("sender", permissions=FullPermissions(user))
        return found[user]

    return sender


def messages_retained(world: World) -> Take:
    sender = senders(world)

    def take_one(user: str, n: int) -> bool:
        sender(user).publish(f"{user}/{n}", b"x" * MESSAGE, 1, retain=True)
        return sender(user).only(PubAck).reason != Reason.QUOTA_EXCEEDED

    return take_one


def messages_that_wait(world: World) -> Take:
    """Each in a session of its own: of one session the oldest goes."""
    sender = senders(world)

    def take_one(user: str, n: int) -> bool:
        reader = world.connect(f"{user}{n}", permissions=FullPermissions(user), expiry=100)
        reader.subscribe(f"{user}/{n}")
        reader.lose()
        before = world.broker.held_bytes
        sender(user).publish(f"{user}/{n}", b"x" * MESSAGE, 1)
        return world.broker.held_bytes > before

    return take_one


def shared_subscriptions(world: World) -> Take:
    sender = senders(world)
    return lambda user, n: sender(user).subscribe(f"$share/g{n}/t") == [2]


def messages_for_the_daemon(world: World) -> Take:
    out = NetworkPublisher(DaemonLink(Path("none")), None, None, None, False, GatewayCounters())  # type: ignore[arg-type]

    def take_one(user: str, n: int) -> bool:
        publication = NetworkPublication(MqttMessage("t", b""), user)
        publication.content = b"x" * MESSAGE
        return out.put(publication, trio.Event()) is None

    return take_one


def topics_of_the_network(world: World) -> Take:
    env = simulated_environment("gateway")
    read = NetworkReader(DaemonLink(Path("none")), lambda way: None, None, env, GatewayCounters())  # type: ignore[arg-type]

    def take_one(user: str, n: int) -> bool:
        way = Way(f"{user}{n}", True)
        if not read.has_room_for(way, user):
            return False
        read.want(way, user)
        return True

    return take_one


COUNTED = WHOLE
WEIGHED = WHOLE * (MESSAGE + 250)

SHARED = {
    "connections": (MqttLimits(clients=COUNTED), connections),
    "sessions": (MqttLimits(sessions=COUNTED), sessions_that_stay),
    "retained messages": (MqttLimits(retained=COUNTED), messages_retained),
    "bytes of retained messages": (MqttLimits(retained_bytes=WEIGHED), messages_retained),
    "bytes that wait": (MqttLimits(held_bytes=WEIGHED), messages_that_wait),
    "shared subscriptions": (MqttLimits(shared_filters=COUNTED), shared_subscriptions),
}
OF_THE_NETWORK = {
    "messages for the daemon": (network_publisher, "MAX_WAITING", COUNTED, messages_for_the_daemon),
    "bytes for the daemon": (network_publisher, "MAX_WAITING_SIZE", WEIGHED, messages_for_the_daemon),
    "topics of the network": (network_reader, "MAX_WAYS", COUNTED, topics_of_the_network),
}


def is_shared(take_one: Take) -> None:
    first, second = take_all(take_one, "mallory"), take_all(take_one, "alice")
    assert WHOLE * 3 // 4 <= first <= WHOLE
    assert WHOLE // 10 <= second < first


@pytest.mark.parametrize("what", SHARED)
async def test_one_user_takes_all_it_gets_and_another_is_served(what: str) -> None:
    limits, kind = SHARED[what]
    is_shared(kind(World(limits=limits)))


@pytest.mark.parametrize("what", OF_THE_NETWORK)
async def test_one_user_takes_all_it_gets_of_the_network(what: str, monkeypatch: pytest.MonkeyPatch) -> None:
    module, name, whole, kind = OF_THE_NETWORK[what]
    monkeypatch.setattr(module, name, whole)
    is_shared(kind(World()))


@pytest.mark.parametrize("kind", [sessions_that_stay, messages_retained, messages_that_wait])
def test_a_restart_gives_nobody_more(kind: Callable[[World], Take]) -> None:
    limits = MqttLimits(sessions=WHOLE, retained=WHOLE)
    if kind is messages_that_wait:
        limits = replace(limits, held_bytes=WHOLE // 2 * MESSAGE)
    world = World(limits=limits)
    first = take_all(kind(world), "mallory")
    world.kill()
    take_one = kind(world)
    assert not take_one("mallory", first + 1)
    assert take_one("alice", 0)


def test_3_1_1_hears_of_nothing_that_is_not_kept() -> None:
    world = World(limits=MqttLimits(retained=WHOLE))
    old = world.connect("old", V311, permissions=FullPermissions("mallory"))
    answers = 0
    for number in range(WHOLE):
        if old.outlet.is_closed:
            break
        old.publish(f"m/{number}", b"x", 1, retain=True)
        answers += len([one for one in old.got() if isinstance(one, PubAck)])
    assert old.outlet.is_closed
    assert answers == world.broker.retained == WHOLE * 4 // 5


def test_who_may_retain_no_more_may_change_what_it_has() -> None:
    """A house whose share shrank when others came does not stop telling how its devices are."""
    world = World(limits=MqttLimits(retained=WHOLE))
    take_one = messages_retained(world)
    take_all(take_one, "mallory")
    take_all(take_one, "alice")
    assert take_one("mallory", 0)
    assert take_one("alice", 0)


def test_who_has_more_than_its_share_since_others_came_loses_no_more_than_it_gets() -> None:
    world = World(limits=MqttLimits(held_bytes=WEIGHED))
    take_one = messages_that_wait(world)
    for user in ("mallory", "alice", "bob"):
        take_all(take_one, user)
    before = world.broker.held_bytes
    house = world.connect("house", permissions=FullPermissions("mallory"), expiry=100)
    house.subscribe("mallory/#")
    house.lose()
    sender = world.connect("sender", permissions=FullPermissions("mallory"))
    for _ in range(5):
        sender.publish("mallory/0", b"x" * MESSAGE, 1)
    assert before - 2 * MESSAGE <= world.broker.held_bytes <= before
