"""Target: a whole MQTT broker, moved by three hostile clients, a slow disk, kills, and time.

Beside them two honest ones, who lose their connections, too: what one had acknowledged, the other gets, of
QoS 2 once. Caps are set low, so that they are reached, and nobody is beyond one at any moment.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from random import Random
from unittest import mock

import mqtt_examples as examples
from broker_world import Client, World
from fuzzing import Script, Target, scripts
from mutating import mutate_bytes
from test_any_packets import behave
from test_any_packets import packet as any_packet
from test_sessions import Peer

from hushcast_protocol.mqtt import (
    delivery,
    ingress,
    queues,
)
from hushcast_protocol.mqtt.limits import MAX_WINDOW, MqttLimits
from hushcast_protocol.mqtt.mqtt_session import MqttSession
from hushcast_protocol.mqtt.reason_codes import PacketError
from hushcast_protocol.mqtt.refusals import RefusalCause
from hushcast_protocol.mqtt.topics.permissions import FullPermissions
from hushcast_protocol.mqtt.wire.codec import Decoder, encode
from hushcast_protocol.mqtt.wire.packets import V5, V311, Connect, Packet, Properties, Will

LARGEST = 2048  # bytes of a packet
MOST = 240  # bytes of a script: some hundred moves
DAY = 900  # seconds that pass at most: the honest clients' sessions last longer
UNDER_WAY = 15  # messages that the honest sender begins before earlier ones are done, for both

FILTERS, QUEUE, QUEUE_BYTES, INCOMING, OFFERED, SESSIONS, RETAINED, RETAINED_BYTES = (
    *(5, 20, 8_000, 24, 3, 5, 4, 3_000),
)


LIMITS = MqttLimits(
    filters=FILTERS,
    queue=QUEUE,
    queue_bytes=QUEUE_BYTES,
    sessions=SESSIONS,
    retained=RETAINED,
    retained_bytes=RETAINED_BYTES,
)


@contextmanager
def _low_caps() -> Iterator[None]:
    with (
        mock.patch.object(delivery, "MAX_OFFERED", OFFERED),
        mock.patch.object(ingress, "MAX_INCOMING", INCOMING),
    ):
        yield


@contextmanager
def _overflows(dropped: list[str]) -> Iterator[None]:
    """Note whose queue was full: what a sender repeats is new in QoS 1, and may fill one by itself."""
    drop = queues.Queues._drop_oldest

    def noted(self: queues.Queues, session: MqttSession, cause: RefusalCause, now: float) -> int:
        dropped.append(session.client_id)
        return drop(self, session, cause, now)

    with mock.patch.object(queues.Queues, "_drop_oldest", noted):
        yield


class _AllBut(FullPermissions):
    """A hostile client may do everything but speak for the honest ones."""

    def may_publish(self, topic: str) -> bool:
        return topic != "t"


@cache
def _real(version: int) -> list[bytes]:
    return [encode(packet, version) for packet in examples.all_packets(version, of_server=False)]


class _Hostile:
    """A client that sends bytes, of which few are what they should be."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.client: Client | None = None
        self.decoder = Decoder(LARGEST)

    def send(self, data: bytes) -> None:
        """Do what the server does with a client's bytes."""
        try:
            packets = self.decoder.feed(data)
        except PacketError:
            packets = []
        for packet in packets:
            self._take(packet)
        error = self.decoder.error
        if error is not None:
            if self.client is not None and self.client.link is not None:
                self.client.link.close(None if error.silent else error.reason)
            self.go()
        self.world.settle()

    def _take(self, packet: Packet) -> None:
        if self.client is not None:
            if self.client.link is not None:
                self.world.broker.receive(self.client.link, packet, self.world.now)
            return
        assert isinstance(packet, Connect)
        client = self.client = Client(self.world, packet.version)
        client.outlet.largest = packet.properties.get("maximum_packet_size")
        permissions = _AllBut("hostile")
        accepted = self.world.broker.connect(client.outlet, packet, permissions, self.world.now)
        client.link = accepted[0] if accepted else None

    @property
    def is_here(self) -> bool:
        return self.client is not None and self.client.link is not None and not self.client.outlet.is_closed

    def go(self) -> None:
        if self.client is not None:
            self.client.lose()
        self.forget()

    def forget(self) -> None:
        self.client = None
        self.decoder = Decoder(LARGEST)


def _connect(script: Script) -> Connect:
    version = script.choose((V5, V5, V311))
    given = Properties()
    if version == V5:
        given["session_expiry_interval"] = script.choose((0, 3, 50, 2**32 - 1))
        if script.number() & 1:
            given["receive_maximum"] = script.choose((1, 2, 65_535))
            given["topic_alias_maximum"] = script.choose((0, 1, 65_535))
            given["maximum_packet_size"] = script.choose((1, 25, 60, 1_000, 2**32 - 1))
    will = (
        Will(script.choose(("a", "t", "b")), b"", script.number() % 3) if script.number() % 3 == 0 else None
    )
    return Connect(
        version, script.choose(("x", "y", "z", "w")), bool(script.number() & 1), 0, will, None, None, given
    )


def _bytes(script: Script, version: int) -> bytes:
    """Return packets: valid ones, real ones, or what is left of them after some damage."""
    chance = Random(script.number(2))
    data = encode(any_packet(chance, version), version)
    how = script.number()
    if how % 4 == 1:
        data = chance.choice(_real(version))
    elif how % 4 == 2:
        data = mutate_bytes(chance, [data, *_real(version)])
    return data[: 2 * LARGEST]


def _check(world: World) -> None:
    """Nobody is beyond a cap, and what is held is counted to the byte."""
    held = 0
    known = world.broker._sessions._sessions.values()
    assert sum(session.is_durable for session in known) <= SESSIONS
    for session in known:
        assert len(session.filters) <= FILTERS
        assert len(session.queue) <= QUEUE
        assert len(session.queue) <= 1 or session.queue_bytes <= QUEUE_BYTES
        assert len(session.incoming) <= INCOMING
        assert len(session.offered) <= max(OFFERED, 2 * FILTERS)
        # What an earlier connection released is under way whatever the window of this one is.
        assert len(session.inflight) <= MAX_WINDOW
        assert session.flying <= max(session.window, len(session.inflight)) or session.link is None
        waiting = [entry.message for entry in session.queue]
        assert session.queue_bytes == sum(message.size for message in waiting if message)
        held += session.queue_bytes
    assert world.broker.held_bytes == held
    assert not world.broker.has_more
    assert world.broker.retained <= RETAINED
    assert world.broker._retained.size <= RETAINED_BYTES


def _broker(data: bytes) -> object:
    script = Script(data, MOST)
    chance = Random(script.number(2))
    qos = script.number() % 2 + 1
    dropped: list[str] = []
    with _low_caps(), _overflows(dropped):
        world = World(limits=LIMITS)
        began = world.now
        sender, receiver = (Peer(world, name, script.choose((V5, V311))) for name in ("sender", "receiver"))
        for peer in (sender, receiver):
            peer.come()
        assert receiver.client is not None
        receiver.client.subscribe("t", qos=qos)
        hostile = [_Hostile(world) for _ in range(3)]
        count = 0
        while script:
            one = script.choose(hostile)
            match script.number() % 16:
                case 0:
                    one.go()
                case 1:
                    world.commits = bool(script.number() & 1)
                case 2:
                    world.commit()
                case 3 if world.now < began + DAY:
                    world.pass_time(script.choose((0.5, 2, 10)))
                case 4 if script.number() % 4 == 0:
                    world.kill()
                    for lost in (*hostile, sender, receiver):
                        lost.crashed() if isinstance(lost, Peer) else lost.forget()
                case 5 | 6 if max(count - len(set(receiver.received)), len(sender.outbox)) < UNDER_WAY:
                    sender.publish(b"%d" % count, qos)
                    count += 1
                case 7 | 8:
                    peer = script.choose((sender, receiver))
                    if peer.client is None or peer.client.outlet.is_closed:
                        peer.come()
                    peer.read(chance)
                case 9 if one.is_here:
                    assert one.client is not None
                    one.client.outlet.room = bool(script.number() & 1)
                    if one.client.outlet.room and one.client.link is not None:
                        world.broker.drained(one.client.link, world.now)
                case 10 if one.is_here:
                    assert one.client is not None
                    behave(one.client, chance)
                case _ if one.client is None:
                    made = _connect(script)
                    sent = encode(made, made.version)
                    one.send(mutate_bytes(chance, [sent]) if script.number() % 8 == 0 else sent)
                case _:
                    if not one.is_here:
                        one.go()
                    else:
                        assert one.client is not None
                        one.send(_bytes(script, one.client.version))
            _check(world)
        _end(world, hostile, sender, receiver)
        sent = [b"%d" % n for n in range(count)]
        if qos == 2:
            assert receiver.received == sent
        elif "receiver" not in dropped:
            assert list(dict.fromkeys(receiver.received)) == sent
    return count


def _end(world: World, hostile: list[_Hostile], sender: Peer, receiver: Peer) -> None:
    """Let all be settled, and see that nothing is left of the hostile."""
    world.commits = True
    world.settle()
    for one in hostile:
        one.go()
    steady = Random(0)
    steady.random = lambda: 1.0  # type: ignore[method-assign]
    for peer in (sender, receiver):
        peer.go()
        peer.come()
    while any(peer.client is not None and peer.client.outlet.data for peer in (sender, receiver)):
        for peer in (sender, receiver):
            peer.read(steady)
    assert sender.outbox == {}
    for user, client_id in list(world.broker._sessions._sessions):
        if user == "hostile":
            world.connect(client_id, permissions=_AllBut("hostile")).lose()
    world.pass_time(1)
    assert (world.broker.sessions, world.broker.subscriptions, world.broker.held_bytes) == (2, 1, 0)
    kinds = world.kinds()
    assert kinds.get("mqtt-message", 0) == kinds.get("mqtt-retained", 0) == world.broker.retained


TARGETS = [Target("mqtt-broker", _broker, lambda: scripts(40, MOST), weight=5)]
