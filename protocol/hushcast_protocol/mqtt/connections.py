"""A link: one client's connection as the broker sees it, with what may not be sent before the disk has it."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Protocol

from hushcast_protocol.mqtt.kept.ledger import Ledger
from hushcast_protocol.mqtt.limits import MAX_HELD_BACK, MAX_TOPIC, TOPIC_ALIASES_IN
from hushcast_protocol.mqtt.reason_codes import PacketError, Reason
from hushcast_protocol.mqtt.topics.permissions import AddedProperty, Permissions
from hushcast_protocol.mqtt.wire.codec import encode
from hushcast_protocol.mqtt.wire.packets import V5, Disconnect, Packet, Publish

if TYPE_CHECKING:
    from hushcast_protocol.mqtt.mqtt_session import MqttSession


class Outlet(Protocol):
    """The way to one client."""

    def send(self, data: bytes) -> None:
        """Send encoded packets, in order, soon."""

    def has_room(self) -> bool:
        """Tell whether more messages may be sent; after a no, `MqttBroker.drained` says when."""

    def close(self, last: bytes) -> None:
        """Send the last packet, if there is one, and close. What the client sends from now on is ignored."""


class HeldPacket:
    """A packet that waits for its bytes, or for the disk."""

    __slots__ = ("data", "mark", "owed")

    def __init__(self, data: bytes | None, mark: int, owed: bool) -> None:
        """`mark` is of the ledger; `owed` is whether it acknowledges a PUBLISH of QoS 1."""
        self.data = data
        self.mark = mark
        self.owed = owed


class MqttConnection:
    """A connection whose CONNECT was accepted."""

    __slots__ = (
        *(
            "added",
            "aliases_in",
            "aliases_out",
            "is_closed",
            "ledger",
            "max_aliases_out",
            "max_packet",
            "open_ids",
        ),
        *("outlet", "owed", "permissions", "session", "version", "_answers", "_greeted", "_held"),
        *("_held_bytes", "_holding", "_was_full"),
    )

    def __init__(self, outlet: Outlet, ledger: Ledger, holding: set[MqttConnection]) -> None:
        """`holding` are all links with something that waits."""
        self.outlet = outlet
        self.ledger = ledger
        self.permissions: Permissions
        self.session: MqttSession
        self.version = V5
        self.max_packet: int | None = None
        self.max_aliases_out = 0
        self.added: AddedProperty | None = None
        """What its messages get besides; `None` for nothing."""
        self.aliases_in: dict[int, str] = {}
        self.aliases_out: dict[str, int] = {}
        self.is_closed = False
        self.owed = 0
        """Messages of QoS 1 that it sent and we did not acknowledge yet."""
        self.open_ids: set[int] = set()
        """Packet identifiers of QoS 2 exchanges that it began on this connection."""
        self._held: deque[HeldPacket] = deque()
        self._held_bytes = 0
        self._was_full = False
        self._answers: deque[HeldPacket] = deque()
        self._holding = holding
        self._greeted = False

    def send(self, data: bytes) -> None:
        """Send a packet whose place among the others does not matter, but behind the CONNACK."""
        if self._greeted:
            self._pass(data, False)
        else:
            self._hold(self._held, HeldPacket(data, 0, False))

    def send_in_order(self, packet: Packet, mark: int = 0) -> None:
        """Send a packet behind those before it, the CONNACK first, once the ledger is durable up to `mark`.

        One larger than the client takes ends the connection: it would wait for its answer for ever.
        """
        data = encode(packet, self.version)
        if self.max_packet is not None and len(data) > self.max_packet:
            self.close(Reason.PACKET_TOO_LARGE)
        else:
            self.send_bytes_in_order(data, mark)

    def send_bytes_in_order(self, data: bytes, mark: int) -> None:
        """Do so with an encoded one."""
        if self._held or mark > self.ledger.durable:
            self._hold(self._held, HeldPacket(data, mark, False))
        else:
            self._pass(data, False)

    def answer(self, data: bytes, owed: bool, mark: int, held: HeldPacket | None = None) -> None:
        """Answer a PUBLISH by an encoded packet, behind the other answers and in nobody else's way.

        `owed` is whether it is of QoS 1; `mark` is as `send_in_order` has it, `held` the place that was kept.
        """
        if held is not None:
            held.data, held.mark = data, mark
            self.release()
        elif not self._greeted or self._answers or mark > self.ledger.durable:
            self._hold(self._answers, HeldPacket(data, mark, owed))
        else:
            self._pass(data, owed)

    def reserve(self, owed: bool) -> HeldPacket:
        """Keep the place of an answer that is not known yet."""
        held = HeldPacket(None, 0, owed)
        self._hold(self._answers, held)
        return held

    def has_room(self) -> bool:
        """Tell whether messages may be sent; after a no, `MqttBroker.drained` or `stored` goes on."""
        if self._held_bytes >= MAX_HELD_BACK:
            self._was_full = True
            return False
        return self.outlet.has_room()

    def release(self) -> bool:
        """Send what need not wait any longer; return whether messages had no room for it and have now."""
        durable = self.ledger.durable
        for lane in (self._held, self._answers):
            if lane is self._answers and not self._greeted:
                break
            while lane and (data := lane[0].data) is not None and lane[0].mark <= durable:
                if lane is self._held:
                    self._held_bytes -= len(data)
                self._pass(data, lane.popleft().owed)
        if not self._held and not self._answers:
            self._holding.discard(self)
        if not self._was_full or self._held_bytes >= MAX_HELD_BACK:
            return False
        self._was_full = False
        return True

    @property
    def is_simple(self) -> bool:
        """Whether a PUBLISH of QoS 0 goes to the outlet as it is: no aliases, no narrow end."""
        return self._greeted and not self.max_aliases_out and self.max_packet is None and not self.is_closed

    def abandon(self) -> None:
        """Forget what waits: the connection has ended."""
        self.is_closed = True
        self._held.clear()
        self._held_bytes = 0
        self._answers.clear()
        self._holding.discard(self)

    def close(self, reason: int | None) -> None:
        """End the connection; a client of version 5 is told the reason, unless it is `None`.

        Before its CONNACK a client hears nothing (MQTT-3.14.0-1).
        """
        if self.is_closed:
            return
        self.abandon()
        told = reason is not None and self.version == V5 and self._greeted
        self.outlet.close(encode(Disconnect(reason or 0), V5) if told else b"")

    def topic_of(self, packet: Publish) -> str:
        """Return the topic of a PUBLISH, by its alias if it has one; raises `PacketError`."""
        alias = packet.properties.get("topic_alias")
        if alias is None:
            if not packet.topic:
                raise PacketError(Reason.PROTOCOL_ERROR, "a PUBLISH without topic and alias")
            return packet.topic
        if not 0 < alias <= TOPIC_ALIASES_IN:
            raise PacketError(Reason.TOPIC_ALIAS_INVALID)
        if packet.topic:
            if len(packet.topic) <= MAX_TOPIC:  # longer ones are refused
                self.aliases_in[alias] = packet.topic
            return packet.topic
        try:
            return self.aliases_in[alias]
        except KeyError:
            raise PacketError(Reason.TOPIC_ALIAS_INVALID, "an alias that was not set") from None

    def publish(self, packet: Publish, mark: int = 0, data: bytes = b"", in_order: bool = True) -> bool:
        """Send a PUBLISH, under an alias where the client takes them; return whether it fits the client.

        `data` are its bytes where they are known; without `in_order` it overtakes what waits.
        """
        if self.max_aliases_out:
            return self._publish_aliased(packet, mark)
        return self.publish_bytes(data or encode(packet, self.version), mark, in_order)

    def publish_bytes(self, data: bytes, mark: int, in_order: bool = True) -> bool:
        """Do so with an encoded one, which has no alias."""
        if self.max_packet is not None and len(data) > self.max_packet:
            return False
        if in_order:
            self.send_bytes_in_order(data, mark)
        else:
            self.send(data)
        return True

    def _publish_aliased(self, packet: Publish, mark: int) -> bool:
        """Send all of them in order, lest a topic's alias come before the topic."""
        topic = packet.topic
        alias = self.aliases_out.get(topic)
        is_new = alias is None and len(self.aliases_out) < self.max_aliases_out
        if is_new:
            alias = len(self.aliases_out) + 1
        if alias is not None:
            properties = packet.properties.copy()
            properties["topic_alias"] = alias
            sent = Publish(
                topic if is_new else "",
                packet.payload,
                packet.qos,
                packet.retain,
                packet.dup,
                packet.packet_id,
                properties,
            )
        else:
            sent = packet
        data = encode(sent, self.version)
        if self.max_packet is not None and len(data) > self.max_packet:
            return False
        if is_new and alias is not None:
            self.aliases_out[topic] = alias
        self.send_bytes_in_order(data, mark)
        return True

    def _hold(self, lane: deque[HeldPacket], held: HeldPacket) -> None:
        if not self.is_closed:
            lane.append(held)
            if lane is self._held and held.data is not None:
                self._held_bytes += len(held.data)
            self._holding.add(self)

    def _pass(self, data: bytes, owed: bool) -> None:
        self._greeted = True
        if owed:
            self.owed -= 1
        if not self.is_closed:
            self.outlet.send(data)
