"""Sessions: what waits, what is sent again, what is forgotten, under any loss of connections and crashes."""

from __future__ import annotations

import random

import pytest
from broker_world import Client, World, connack
from hypothesis import given, settings
from hypothesis import strategies as st

from hushcast_protocol.mqtt import mqtt_session as session_module
from hushcast_protocol.mqtt.limits import DAY, MAX_WINDOW, MqttLimits
from hushcast_protocol.mqtt.reason_codes import Reason
from hushcast_protocol.mqtt.topics.permissions import FullPermissions
from hushcast_protocol.mqtt.wire.packets import (
    V5,
    V311,
    ConnAck,
    PubAck,
    PubComp,
    Publish,
    PubRec,
    PubRel,
    Unsubscribe,
)


@pytest.mark.parametrize(
    ("asked", "told", "after", "is_present"),
    [
        (0, None, 0, False),
        (10, None, 9, True),
        (10, None, 10, False),
        (21 * DAY, None, 20 * DAY, True),
        (0xFFFFFFFF, 21 * DAY, 20 * DAY, True),
        (0xFFFFFFFF, 21 * DAY, 21 * DAY, False),
    ],
)
def test_session_expiry(asked: int, told: int | None, after: int, is_present: bool) -> None:
    world = World()
    first = world.arrive(expiry=asked)
    assert connack(first).properties.get("session_expiry_interval") == told
    first.lose()
    world.now += after
    world.pass_time(0)
    world.settle()
    assert connack(world.arrive(clean=False, expiry=10)).session_present is is_present


def test_in_3_1_1_sessions_that_are_not_clean_stay_21_days() -> None:
    world = World()
    assert not connack(world.arrive(version=V311, clean=False)).session_present
    world.now += 1
    again = world.arrive(version=V311, clean=False)
    assert connack(again).session_present
    again.lose()
    world.now += 21 * DAY
    world.pass_time(0)
    assert not connack(world.arrive(version=V311, clean=False)).session_present


def test_a_client_that_leaves_may_change_the_expiry_but_not_begin_one() -> None:
    world = World()
    world.connect(expiry=1).leave(session_expiry_interval=100)
    world.pass_time(50)
    assert connack(world.arrive(clean=False, expiry=100)).session_present
    world.connect(clean=False, expiry=100).leave(session_expiry_interval=0)
    assert world.disk == {}
    client = world.connect()
    client.leave(session_expiry_interval=5)
    assert client.end == Reason.PROTOCOL_ERROR


def test_users_with_the_same_client_id_have_sessions_apart() -> None:
    world = World()
    hers = world.connect("tv", permissions=FullPermissions("her"), expiry=100)
    hers.subscribe("t")
    his = world.arrive("tv", permissions=FullPermissions("him"), clean=False, expiry=100)
    assert not connack(his).session_present
    assert not hers.outlet.is_closed


def test_what_came_meanwhile_waits_in_order_and_qos_0_does_not() -> None:
    world = World()
    world.connect(expiry=100).subscribe("t")
    world.broker.gone(next(iter(world.broker._links)), world.now)
    sender = world.connect("sender")
    for n in range(6):
        sender.publish("t", b"%d" % n, qos=n % 3, packet_id=n + 1)
    back = world.connect(clean=False, expiry=100)
    assert back.answer() == [b"1", b"2", b"4", b"5"]
    assert world.kinds().keys() == {"mqtt-session", "mqtt-subscription"}
    assert world.broker.held_bytes == 0


def test_the_oldest_go_when_the_queue_is_full() -> None:
    world = World(limits=MqttLimits(queue=20, queue_bytes=10 * 1024))
    first = world.connect(expiry=100)
    first.subscribe("t")
    first.lose()
    sender = world.connect("sender")
    for n in range(25):
        sender.publish("t", b"%d" % n, qos=1)
    assert world.kinds()["mqtt-message"] == 20
    assert world.broker.counts["dropped_queue_full"] == 5
    sender.publish("t", b"x" * 8_000, qos=1)
    payloads = world.connect(clean=False, expiry=100).answer()
    assert payloads[-1] == b"x" * 8_000
    assert 5 < len(payloads) < 20


def test_all_sessions_together_hold_no_more_than_the_cap() -> None:
    world = World(limits=MqttLimits(held_bytes=25_000))
    for name in "ab":
        client = world.connect(name, expiry=100)
        client.subscribe("t")
        client.lose()
    sender = world.connect("sender")
    for _ in range(20):
        sender.publish("t", b"x" * 1_000, qos=1)
    assert 16_000 < world.broker.held_bytes <= 20_000
    assert world.broker.counts["dropped_all_full"] == 24
    assert len(world.connect("a", clean=False).answer()) == 8


def test_who_holds_the_most_gives_way_to_who_holds_little() -> None:
    world = World(limits=MqttLimits(held_bytes=62_500))
    for name in ("greedy", "modest"):
        client = world.connect(name, expiry=100)
        client.subscribe(name)
        client.lose()
    sender = world.connect("sender")
    for topic, count in (("greedy", 100), ("modest", 5)):
        for n in range(count):
            sender.publish(topic, b"%d" % n + b"x" * 1_000, qos=1)
    assert world.broker.held_bytes <= 50_000
    assert len(world.connect("modest", clean=False).answer()) == 5
    world.kill()
    assert world.broker.held_bytes <= 50_000
    assert 30 < len(world.connect("greedy", clean=False).answer()) < 50


def test_bytes_under_way_are_bounded_and_one_message_always_goes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(session_module, "MAX_WINDOW_BYTES", 3_000)
    world = World()
    client = world.connect()
    client.subscribe("t")
    sender = world.connect("sender")
    for n in range(6):
        sender.publish("t", b"x" * 1_000, qos=2, packet_id=n + 1)
    first, *others = client.published()
    assert len(others) == 2
    client.send(PubRec(first.packet_id))
    assert len(client.got()) == 1
    client.send(PubComp(first.packet_id))
    assert len(client.published()) == 1
    other = world.connect("other")
    other.subscribe("t")
    sender.publish("t", b"x" * 9_000, qos=1)
    assert other.payloads() == [b"x" * 9_000]


def test_more_sessions_than_the_cap_are_refused_and_brief_ones_are_not() -> None:
    world = World(limits=MqttLimits(sessions=2))
    for name in "ab":
        world.connect(name, expiry=10).lose()
    refused = world.arrive("c", expiry=10)
    assert refused.link is None
    assert connack(refused).reason == Reason.QUOTA_EXCEEDED
    assert connack(world.arrive("c", version=V311, clean=False)).reason == 3
    assert connack(world.arrive("c")).reason == 0
    assert connack(world.arrive("a", expiry=10)).reason == 0


def test_the_window_is_the_clients_and_no_wider_than_ours() -> None:
    world = World()
    narrow = world.connect("narrow", properties={"receive_maximum": 2})
    wide = world.connect("wide", properties={"receive_maximum": 65_535})
    for client in (narrow, wide):
        client.subscribe("t")
    sender = world.connect("sender")
    for n in range(MAX_WINDOW + 10):
        sender.publish("t", b"%d" % n, qos=2, packet_id=n + 1)
        sender.send(PubRel(n + 1))
    assert len(wide.published()) == MAX_WINDOW
    packets = narrow.published()
    assert len(packets) == 2
    narrow.send(PubRec(packets[0].packet_id))
    assert isinstance(narrow.only(PubRel), PubRel)  # the window opens with the end of the exchange
    narrow.send(PubComp(packets[0].packet_id))
    assert narrow.payloads() == [b"2"]
    narrow.send(PubRec(packets[1].packet_id, Reason.QUOTA_EXCEEDED))  # or with a refusal
    assert narrow.payloads() == [b"3"]


def test_the_unacknowledged_comes_again_as_it_was_and_marked() -> None:
    world = World()
    first = world.connect(expiry=100)
    first.subscribe("t", properties={"subscription_identifier": [7]})
    sender = world.connect("sender")
    for n, qos in enumerate([1, 2, 2, 1]):
        sender.publish("t", b"%d" % n, qos=qos, packet_id=n + 1)
    one, two, three, four = first.published()
    first.send(PubRec(three.packet_id))
    first.lose()
    back = world.connect(clean=False, expiry=100, properties={"receive_maximum": 2})
    again = back.got()
    assert [type(packet) for packet in again] == [Publish, Publish, PubRel]
    for packet, before in zip(again[:2], (one, two), strict=True):
        assert isinstance(packet, Publish)
        assert packet.dup
        assert (packet.packet_id, packet.payload) == (before.packet_id, before.payload)
        assert packet.properties["subscription_identifier"] == [7]
    back.send(PubComp(three.packet_id), PubAck(one.packet_id))
    assert [packet.packet_id for packet in back.published()] == [four.packet_id]


def test_acknowledging_before_it_comes_again_is_enough() -> None:
    world = World()
    first = world.connect(expiry=100, properties={"receive_maximum": 2})
    first.subscribe("t", qos=1)
    sender = world.connect("sender")
    for n in range(4):
        sender.publish("t", b"%d" % n, qos=1)
    one, two = first.published()
    first.lose()
    back = world.connect(clean=False, expiry=100, properties={"receive_maximum": 1})
    back.got()
    back.send(PubAck(two.packet_id), PubAck(one.packet_id))
    assert back.answer() == [b"2", b"3"]


@pytest.mark.parametrize(
    ("qos", "packet"), [(1, PubRec(1)), (1, PubComp(1)), (2, PubAck(1)), (2, PubComp(1))]
)
def test_the_wrong_acknowledgement_is_an_error(qos: int, packet: PubAck) -> None:
    world = World()
    client = world.connect()
    client.subscribe("t")
    world.connect("sender").publish("t", qos=qos)
    client.got()
    client.send(packet)
    assert client.end == Reason.PROTOCOL_ERROR


@pytest.mark.parametrize(
    ("packet", "answer"),
    [
        (PubAck(5), []),
        (PubComp(5), []),
        (PubRec(5), [PubRel(5)]),
        (PubRec(5, 0x80), []),
        (PubRel(5), [PubComp(5)]),
        (PubRel(5, 0x92), [PubComp(5)]),
    ],
)
def test_acknowledgements_of_what_is_unknown(packet: PubAck, answer: list[PubRel]) -> None:
    client = World().connect()
    client.got()
    client.send(packet)
    assert client.got() == answer


def test_expiry_is_counted_down_and_what_is_too_old_is_not_sent() -> None:
    world = World()
    first = world.connect(expiry=1_000)
    first.subscribe("t")
    first.lose()
    sender = world.connect("sender")
    for seconds in (10, 100):
        sender.publish("t", b"%d" % seconds, 1, properties={"message_expiry_interval": seconds})
    world.pass_time(20)
    (packet,) = world.connect(clean=False, expiry=1_000).published()
    assert (packet.payload, packet.properties["message_expiry_interval"]) == (b"100", 80)


def test_a_session_that_goes_on_without_expiry_leaves_the_disk() -> None:
    world = World()
    first = world.connect(expiry=100)
    first.subscribe("t")
    first.lose()
    world.connect("sender").publish("t", qos=1)
    second = world.connect(clean=False)
    assert [packet.payload for packet in second.published()] == [b"x"]
    assert world.disk == {}
    second.lose()
    assert world.broker.held_bytes == 0
    assert not connack(world.arrive(clean=False)).session_present


def test_a_body_is_on_disk_once_however_many_wait_for_it() -> None:
    world = World()
    for name in "abc":
        client = world.connect(name, expiry=100)
        client.subscribe("t")
        client.lose()
    world.connect("sender").publish("t", qos=1, retain=True)
    assert world.kinds()["mqtt-message"] == 1
    for name in "abc":
        world.connect(name, clean=False, expiry=100).answer()
    assert world.kinds()["mqtt-message"] == 1  # it is retained, too
    world.connect("sender").publish("t", b"", retain=True)
    assert "mqtt-message" not in world.kinds()
    for name in "abc":
        world.connect(name)
    assert world.disk == {}


def test_a_crash_loses_nothing_that_was_acknowledged() -> None:
    world = World()
    first = world.connect(expiry=100)
    first.subscribe("t/#", "$share/g/s", "u")
    first.send(Unsubscribe(1, ["u"]))
    sender = world.connect("sender", expiry=100)
    for n, qos in enumerate([1, 2, 1, 2]):
        sender.publish("t/x", b"%d" % n, qos=qos, packet_id=n + 1, retain=n == 3)
    packets = first.published()
    first.send(PubAck(packets[0].packet_id), PubRec(packets[1].packet_id))
    world.kill()
    assert (world.broker.subscriptions, world.broker.retained, world.broker.sessions) == (2, 1, 2)
    again = world.connect(clean=False, expiry=100).got()
    assert [packet.packet_id for packet in again] == [one.packet_id for one in packets[1:]]  # type: ignore[union-attr]
    assert isinstance(again[0], PubRel)
    resender = world.connect("sender", clean=False, expiry=100)
    resender.got()
    resender.publish("t/x", b"1", qos=2, packet_id=2, dup=True)
    assert resender.only(PubRec).packet_id == 2
    resender.send(PubRel(2))
    world.kill()
    resender = world.connect("sender", clean=False, expiry=100)
    resender.publish("t/x", b"new", qos=2, packet_id=2)
    assert world.connect(clean=False, expiry=100).answer()[-1] == b"new"


class Peer:
    """A client by the book, which loses its connection at any moment and goes on where it was."""

    def __init__(self, world: World, name: str, version: int) -> None:
        self.world, self.name, self.version = world, name, version
        self.received: list[bytes] = []
        self.known: set[int] = set()
        self.outbox: dict[int, Publish | PubRel] = {}
        self.next_id = 1
        self.client: Client | None = None
        self.has_begun = False

    def come(self) -> None:
        self.has_begun = False
        fields = {"expiry": 1_000} if self.version == V5 else {}
        self.client = self.world.arrive(self.name, self.version, clean=False, **fields)

    def go(self) -> None:
        if self.client is not None:
            self.client.lose()
            self.client = None

    def crashed(self) -> None:
        self.client = None

    def begin(self) -> None:
        """Send again what is not done, in order, after the CONNACK."""
        assert self.client is not None
        self.has_begun = True
        for packet in list(self.outbox.values()):
            if isinstance(packet, Publish):
                packet = Publish(
                    packet.topic, packet.payload, packet.qos, dup=True, packet_id=packet.packet_id
                )
            self.client.send(packet)

    def publish(self, payload: bytes, qos: int) -> None:
        packet = Publish("t", payload, qos, packet_id=self.next_id)
        self.outbox[self.next_id] = packet
        self.next_id += 1
        if self.client is not None and self.has_begun:
            self.client.send(packet)

    def read(self, chance: random.Random) -> None:
        """Take all that came; lose the connection in the middle now and then."""
        if self.client is None:
            return
        for packet in self.client.got():
            if self.client is None or chance.random() < 0.05:
                self.go()
                return
            self._take(packet)

    def _take(self, packet: object) -> None:
        client = self.client
        assert client is not None
        if isinstance(packet, ConnAck):
            self.begin()
        elif isinstance(packet, Publish):
            if packet.qos == 1:
                self.received.append(packet.payload)
                client.send(PubAck(packet.packet_id))
            else:
                if packet.packet_id not in self.known:
                    self.received.append(packet.payload)
                self.known.add(packet.packet_id)
                client.send(PubRec(packet.packet_id))
        elif isinstance(packet, PubRel):
            self.known.discard(packet.packet_id)
            client.send(PubComp(packet.packet_id))
        elif isinstance(packet, PubRec):
            self.outbox[packet.packet_id] = PubRel(packet.packet_id)
            client.send(PubRel(packet.packet_id))
        elif isinstance(packet, PubAck | PubComp):
            self.outbox.pop(packet.packet_id, None)


@pytest.mark.slow
@settings(max_examples=150, deadline=None)
@given(
    st.integers(0, 2**32),
    st.sampled_from([1, 2]),
    st.sampled_from([(V5, V5), (V311, V5), (V5, V311)]),
)
def test_whatever_is_lost_qos_1_loses_nothing_and_qos_2_comes_once(
    seed: int, qos: int, versions: tuple[int, int]
) -> None:
    chance = random.Random(seed)
    world = World()
    sender, receiver = Peer(world, "sender", versions[0]), Peer(world, "receiver", versions[1])
    receiver.come()
    assert receiver.client is not None
    receiver.client.subscribe("t", qos=qos)
    peers = [sender, receiver]
    count = 0
    for _ in range(250):
        world.commits = chance.random() < 0.3
        move = chance.random()
        if move < 0.3 and len(sender.outbox) < 15:
            sender.publish(b"%d" % count, qos)
            count += 1
        elif move < 0.4:
            chance.choice(peers).go()
        elif move < 0.6:
            peer = chance.choice(peers)
            if peer.client is None or peer.client.outlet.is_closed:
                peer.come()
        elif move < 0.66:
            world.kill()
            for peer in peers:
                peer.crashed()
        else:
            chance.choice(peers).read(chance)
    world.commits = True
    world.settle()
    steady = random.Random(0)
    steady.random = lambda: 1.0  # type: ignore[method-assign]
    for peer in peers:
        peer.go()
        peer.come()
    for _ in range(200):
        for peer in peers:
            peer.read(steady)
    sent = [b"%d" % n for n in range(count)]
    assert sender.outbox == {}
    if qos == 2:
        assert receiver.received == sent
    else:
        firsts = list(dict.fromkeys(receiver.received))
        assert firsts == sent
    assert world.broker.held_bytes == 0
    assert "mqtt-message" not in world.kinds()
