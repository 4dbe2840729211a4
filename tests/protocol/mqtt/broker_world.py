"""A broker with clients and a disk, all in memory: packets in and out, kill and restart, time by hand."""

from __future__ import annotations

import random
from collections.abc import Iterator
from functools import partial
from typing import Any, TypeVar

from hushcast_protocol.mqtt.connections import MqttConnection
from hushcast_protocol.mqtt.interfaces import NoNetwork, OuterNetwork, UsageRules, has_way
from hushcast_protocol.mqtt.kept.mqtt_records import KINDS
from hushcast_protocol.mqtt.limits import MqttLimits
from hushcast_protocol.mqtt.mqtt_broker import MqttBroker
from hushcast_protocol.mqtt.mqtt_settings import MqttSettings
from hushcast_protocol.mqtt.network_publication import NetworkPublication
from hushcast_protocol.mqtt.restored_state import RestoredState
from hushcast_protocol.mqtt.topics.permissions import FullPermissions, Permissions, PermissionsOf
from hushcast_protocol.mqtt.wire.codec import Decoder, encode
from hushcast_protocol.mqtt.wire.packets import (
    V5,
    ConnAck,
    Connect,
    Disconnect,
    Packet,
    PubAck,
    PubComp,
    Publish,
    PubRec,
    PubRel,
    RequestedSubscription,
    SubAck,
    Subscribe,
)

P = TypeVar("P", bound=Packet)


class Outlet:
    """What a client would read: CONNACK first and once, nothing behind DISCONNECT, no texts of the server."""

    def __init__(self, version: int = V5) -> None:
        self.data = b""
        self.is_closed = False
        self.room = True
        self.sent = 0
        self.largest: int | None = None
        """Bytes of the largest packet that the client said it takes."""
        self._decoder = Decoder(2**28, of_server=True)
        self._decoder.version = version
        self._has_ended = False

    def send(self, data: bytes) -> None:
        assert not self.is_closed
        assert self.largest is None or len(data) <= self.largest
        for packet in self._decoder.feed(data):
            assert not self._has_ended
            assert isinstance(packet, ConnAck) == (self.sent == 0)
            properties = getattr(packet, "properties", {})
            assert not properties.keys() & {"reason_string", "response_information"}
            assert isinstance(packet, Publish) or "user_property" not in properties
            self._has_ended = isinstance(packet, Disconnect)
            self.sent += 1
        self.data += data

    def has_room(self) -> bool:
        return self.room

    def close(self, last: bytes) -> None:
        self.send(last)
        self.is_closed = True


class Client:
    """A client's end of one connection."""

    def __init__(self, world: World, version: int) -> None:
        self.world = world
        self.version = version
        self.outlet = Outlet(version)
        self.link: MqttConnection | None = None
        self._decoder = Decoder(2**28, of_server=True)
        self._decoder.version = version

    def send(self, *packets: Packet) -> Client:
        """Send packets as they would be on the wire."""
        assert self.link is not None, "it was refused"
        decoder = Decoder(2**28)
        decoder.feed(encode(Connect(self.version, ""), self.version))
        for packet in packets:
            for decoded in decoder.feed(encode(packet, self.version)):
                self.world.broker.receive(self.link, decoded, self.world.now)
        self.world.settle()
        return self

    def got(self) -> list[Packet]:
        """Return what came since."""
        data, self.outlet.data = self.outlet.data, b""
        return self._decoder.feed(data)

    def only(self, kind: type[P]) -> P:
        """Return the one packet that came since."""
        (packet,) = self.got()
        assert isinstance(packet, kind)
        return packet

    def payloads(self) -> list[bytes]:
        """Return the payloads of what came since, all of it PUBLISH."""
        return [packet.payload for packet in self.published()]

    def published(self) -> list[Publish]:
        """Return the messages that came since."""
        return [packet for packet in self.got() if isinstance(packet, Publish)]

    def subscribe(self, *filters: str, qos: int = 2, **options: Any) -> list[int]:
        """Subscribe, and return the reasons."""
        properties = options.pop("properties", {})
        self.got()
        self.send(Subscribe(9, [RequestedSubscription(one, qos, **options) for one in filters], properties))
        return next(packet for packet in self.got_keeping() if isinstance(packet, SubAck)).reasons

    def got_keeping(self) -> list[Packet]:
        """Return what came since, and leave all but CONNACK and SUBACK to be seen again."""
        packets = self.got()
        kept = [packet for packet in packets if not isinstance(packet, ConnAck | SubAck)]
        self.outlet.data = b"".join(encode(packet, self.version) for packet in kept)
        return packets

    def publish(
        self, topic: str, payload: bytes = b"x", qos: int = 0, packet_id: int = 7, **more: Any
    ) -> None:
        """Publish, without waiting for answers."""
        self.send(Publish(topic, payload, qos, packet_id=packet_id if qos else 0, **more))

    def answer(self) -> list[bytes]:
        """Acknowledge all that came, until nothing more comes; return the payloads."""
        payloads = []
        while packets := self.got():
            for packet in packets:
                if isinstance(packet, Publish):
                    payloads.append(packet.payload)
                    if packet.qos == 1:
                        self.send(PubAck(packet.packet_id))
                    elif packet.qos == 2:
                        self.send(PubRec(packet.packet_id))
                elif isinstance(packet, PubRel):
                    self.send(PubComp(packet.packet_id))
        return payloads

    def leave(self, reason: int = 0, **properties: Any) -> None:
        """Disconnect."""
        self.send(Disconnect(reason, properties))  # type: ignore[arg-type]
        self.lose()

    def lose(self) -> None:
        """Let the connection end."""
        if self.link is not None:
            self.world.broker.gone(self.link, self.world.now)
        self.world.settle()

    @property
    def end(self) -> int | None:
        """The reason of the DISCONNECT that came last; `None` if there was none, or no end."""
        packets = self.got()
        assert self.outlet.is_closed
        return packets[-1].reason if packets and isinstance(packets[-1], Disconnect) else None


class World:
    """One broker after the other, on one disk."""

    def __init__(
        self,
        beyond: OuterNetwork | None = None,
        settings: MqttSettings | None = None,
        rules: UsageRules | None = None,
        limits: MqttLimits | None = None,
    ) -> None:
        self.now = 1_000_000.0
        self.disk: dict[tuple[str, bytes], bytes] = {}
        self.commits = True
        self.permissions_of: PermissionsOf = lambda user, client_id: FullPermissions(user)
        self._beyond = beyond
        self._settings = settings if limits is None else MqttSettings(limits=limits)
        self._rules = rules
        self._chance = random.Random(1)
        self.broker = self._start()

    def _start(self) -> MqttBroker:
        broker = MqttBroker(self._chance.randbytes, self.now, self._beyond, self._settings, self._rules)
        records = RestoredState(self.permissions_of, partial(has_way, self._beyond or NoNetwork()))
        for kind in KINDS:
            for (its, key), value in sorted(self.disk.items()):
                if its == kind:
                    records.feed(kind, key, value)
        for _ in broker.restore(records, self.now):
            pass
        return broker

    def connect(
        self,
        client_id: str = "a",
        version: int = V5,
        clean: bool = True,
        permissions: Permissions | None = None,
        **fields: Any,
    ) -> Client:
        """Connect a client; its CONNACK is read."""
        client = self.arrive(client_id, version, clean, permissions, **fields)
        assert isinstance(client.got_keeping()[0], ConnAck)
        return client

    def arrive(
        self,
        client_id: str = "a",
        version: int = V5,
        clean: bool = True,
        permissions: Permissions | None = None,
        **fields: Any,
    ) -> Client:
        """Send a CONNECT."""
        client = Client(self, version)
        expiry = fields.pop("expiry", None)
        properties = fields.pop("properties", {})
        if expiry is not None:
            properties = properties | {"session_expiry_interval": expiry}
        client.outlet.largest = properties.get("maximum_packet_size")
        packet = Connect(version, client_id, clean, properties=properties, **fields)
        accepted = self.broker.connect(client.outlet, packet, permissions or FullPermissions(), self.now)
        client.link = accepted[0] if accepted else None
        self.settle()
        return client

    def answer(self, publication: NetworkPublication, reason: int) -> None:
        """Let the network beyond answer to a message that it was handed."""
        self.broker.answered(publication, reason, self.now)

    def settle(self) -> None:
        """Do all that is left to do, and commit, unless the disk is to be slow."""
        self.go_on()
        if self.commits:
            self.commit()

    def go_on(self) -> None:
        """Let all clients have their turns."""
        while self.broker.has_more:
            self.broker.go_on(self.now)

    def commit(self) -> None:
        """Write what the broker wants written, and say so."""
        mark = self.broker.ledger.made
        for kind, key, value in self.broker.ledger.take():
            if value is None:
                self.disk.pop((kind, key), None)
            else:
                self.disk[kind, key] = value
        self.broker.stored(mark, self.now)
        self.go_on()

    def kill(self) -> None:
        """Kill the broker and start it again from what is on disk."""
        self.broker = self._start()
        self.settle()

    def pass_time(self, seconds: float) -> None:
        """Let time pass, second by second."""
        for moment in _seconds(self.now, self.now + seconds):
            self.now = moment
            for _ in self.broker.tick(moment):
                pass
        self.settle()

    def kinds(self) -> dict[str, int]:
        """Return how many records of each kind there are on disk."""
        found: dict[str, int] = {}
        for kind, _ in self.disk:
            found[kind] = found.get(kind, 0) + 1
        return found


def _seconds(start: float, end: float) -> Iterator[float]:
    while start + 1 < end:
        start += 1
        yield start
    yield end


def connack(client: Client) -> ConnAck:
    packet = client.got()[0]
    assert isinstance(packet, ConnAck)
    return packet
