"""An MQTT user sends what takes the broker longest, each as large as may be, and wants all others to wait."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator

import pytest
from broker_world import Client, World
from memory_gateway import running
from steps import one_step

from hushcast_gateway.clients.client_stream import READ
from hushcast_protocol.mqtt.limits import MAX_ASKED, MAX_FILTERS, MAX_FILTERS_A_USER, MAX_QUEUE, MAX_SHARED
from hushcast_protocol.mqtt.reason_codes import PacketError, Reason
from hushcast_protocol.mqtt.topics.permissions import FullPermissions
from hushcast_protocol.mqtt.wire.codec import Decoder, encode
from hushcast_protocol.mqtt.wire.packets import (
    V5,
    ConnAck,
    Connect,
    Disconnect,
    Packet,
    PingReq,
    PingResp,
    Publish,
    RequestedSubscription,
    Subscribe,
    Unsubscribe,
)

pytestmark = pytest.mark.slow

CLIENTS = 400
TOPIC = "m/a/b/c/d/e/f/g/h/i/j/k/l/n"


def measured(world: World, client: Client, packet: Packet) -> None:
    """Have the broker take a packet, and do what it leaves for later, each in one short step."""
    assert client.link is not None
    with one_step():
        world.broker.receive(client.link, packet, world.now)
    while world.broker.has_more:
        with one_step():
            world.broker.go_on(world.now)
    world.settle()


def filters() -> list[str]:
    """Return as many filters as a client may have, all of which match `TOPIC`."""
    choices = [(level, "+") for level in TOPIC.split("/")[1:]]
    return [f"m/{'/'.join(each)}" for each in itertools.islice(itertools.product(*choices), MAX_FILTERS)]


def subscribed(
    qos: int, share: Callable[[int], str], all_of: list[str], clients: int
) -> tuple[World, Client]:
    """Return a broker with subscribers, and a client that publishes."""
    world = World()
    mallory = FullPermissions("mallory")
    for number in range(clients):
        client = world.connect(f"c{number}", permissions=mallory, expiry=100)
        for wanted in all_of:
            client.send(Subscribe(1, [RequestedSubscription(share(number) + wanted, qos)]))
        if number % 2:
            client.lose()
    return world, world.connect("sender", permissions=mallory)


@pytest.mark.parametrize("qos", [0, 1])
def test_a_message_for_many_clients(qos: int) -> None:
    world, sender = subscribed(qos, lambda number: "", filters()[:2], CLIENTS)
    measured(world, sender, Publish(TOPIC, b"x", qos, packet_id=qos))


def test_a_message_for_all_filters_of_a_user() -> None:
    world, sender = subscribed(1, lambda number: "", filters(), MAX_FILTERS_A_USER // MAX_FILTERS)
    assert world.broker.subscriptions == MAX_FILTERS_A_USER
    measured(world, sender, Publish(TOPIC, b"x", 1, packet_id=1))


def test_a_message_for_as_many_groups_as_a_user_may_have() -> None:
    world, sender = subscribed(1, lambda number: f"$share/g{number}/", filters()[:100], MAX_SHARED // 100)
    assert world.broker.subscriptions == MAX_SHARED * 4 // 5
    measured(world, sender, Publish(TOPIC, b"x", 1, packet_id=1))


def test_a_message_for_a_large_group_whose_members_are_away() -> None:
    world, sender = subscribed(1, lambda number: "$share/g/", filters()[:1], CLIENTS)
    measured(world, sender, Publish(TOPIC, b"x", 1, packet_id=1))


def test_subscribing_and_unsubscribing_in_large_packets() -> None:
    world = World()
    client = world.connect()
    many = [f"m/{number}/" + "+/" * 28 + "x" for number in range(MAX_ASKED)]
    measured(world, client, Subscribe(1, [RequestedSubscription(one) for one in many]))
    assert world.broker.subscriptions == MAX_ASKED
    measured(world, client, Unsubscribe(2, many))
    assert world.broker.subscriptions == 0


@pytest.mark.parametrize("more", [0, 1])
def test_filters_of_a_packet_are_bounded(more: int) -> None:
    asked = [RequestedSubscription("t") for _ in range(MAX_ASKED + more)]
    for packet in (Subscribe(1, asked), Unsubscribe(1, ["t"] * (MAX_ASKED + more))):
        decoder = Decoder(2**28)
        decoder.feed(encode(Connect(V5, ""), V5))
        if more:
            with pytest.raises(PacketError) as refused:
                decoder.feed(encode(packet, V5))
            assert refused.value.reason == Reason.QUOTA_EXCEEDED
        else:
            assert decoder.feed(encode(packet, V5)) == [packet]


def with_a_full_session(world: World, share: str = "") -> None:
    client = world.connect("c", expiry=100)
    client.subscribe(f"{share}{TOPIC}", qos=1)
    for start in range(1, MAX_FILTERS, MAX_ASKED):
        client.subscribe(*filters()[start : start + MAX_ASKED], qos=1)
    client.lose()
    sender = world.connect("sender")
    for number in range(MAX_QUEUE):
        sender.publish(TOPIC, b"%d" % number, 1)


@pytest.mark.parametrize("is_anew", [False, True])
def test_a_client_whose_session_is_full_comes_back(is_anew: bool) -> None:
    world = World()
    with_a_full_session(world)
    client = Client(world, V5)
    with one_step():
        accepted = world.broker.connect(
            client.outlet, Connect(V5, "c", is_anew), FullPermissions(""), world.now
        )
    assert accepted is not None
    while world.broker.has_more:
        with one_step():
            world.broker.go_on(world.now)


def test_a_session_ends_whose_messages_go_to_others_of_its_group() -> None:
    world = World()
    with_a_full_session(world, "$share/g/")
    for number in range(CLIENTS):
        member = world.connect(f"m{number}", expiry=1_000)
        member.subscribe(f"$share/g/{TOPIC}", qos=1)
        member.lose()
    in_short_steps(world.broker.tick(world.now + 200))
    assert world.broker.held_bytes > 0


def test_many_sessions_end_at_once() -> None:
    world, _ = subscribed(1, lambda number: "", filters()[:4], CLIENTS)
    in_short_steps(world.broker.tick(world.now + 200))
    assert world.broker.sessions == CLIENTS // 2 + 1


def in_short_steps(pieces: Iterator[None]) -> None:
    is_left = True
    while is_left:
        with one_step():
            is_left = next(pieces, True) is None


async def test_a_read_is_full_of_the_smallest_packets() -> None:
    """Under the measure of all steps here."""
    async with running() as gateway:
        client, alice = await gateway.dial(), await gateway.connect("alice")
        pings = encode(PingReq(), V5) * (READ // len(encode(PingReq(), V5)))
        await client.stream.send_all(encode(Connect(V5, "c"), V5) + pings)
        assert isinstance(await client.next(), ConnAck)
        await client.stream.send_all(pings)
        await alice.send(PingReq())
        assert isinstance(await alice.next(), PingResp)
        await client.send(Disconnect())
        while await client.next() is not None:
            pass
