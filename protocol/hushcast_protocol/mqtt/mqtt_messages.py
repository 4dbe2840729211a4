"""A message on its way through a broker, and the PUBLISH packets that it becomes."""

from __future__ import annotations

import math
from typing import cast

from hushcast_protocol.mqtt.limits import MAX_TOPIC, MESSAGE_OVERHEAD
from hushcast_protocol.mqtt.topics.topic_filters import MAX_LEVELS
from hushcast_protocol.mqtt.wire.packets import NONE, V5, Properties, Publish

_FORWARDED = (
    "payload_format_indicator",
    "content_type",
    "response_topic",
    "correlation_data",
    "user_property",
)
"""Properties that go with a message unaltered (section 3.3.2.3); the message expiry is counted down."""


class MqttMessage:
    """What a client, a will or the network published; `expires` is a Unix time.

    Records on disk that need its body are its `records`; `number`
    names the record of the body, 0 where there is none.
    """

    __slots__ = (
        *("_size", "expires", "number", "payload", "properties"),
        *("qos", "records", "retain", "topic", "written_topic"),
    )

    def __init__(
        self,
        topic: str,
        payload: bytes,
        qos: int = 0,
        retain: bool = False,
        properties: Properties = NONE,
        expires: float | None = None,
    ) -> None:
        """`properties` are those that are forwarded, without an expiry."""
        self.topic = topic
        self.payload = payload
        self.qos = qos
        self.retain = retain
        self.properties = properties
        self.expires = expires
        self.number = 0
        self.records = 0
        self._size = 0  # not counted yet
        self.written_topic = b""
        """Its topic as packets have it, once that is known."""

    def under(self, topic: str) -> MqttMessage:
        """Return the same message under another topic."""
        return MqttMessage(topic, self.payload, self.qos, self.retain, self.properties, self.expires)

    @property
    def size(self) -> int:
        """Bytes that it counts against caps."""
        if not self._size:
            self._size = len(self.topic) + len(self.payload) + MESSAGE_OVERHEAD
            if self.properties:
                self._size += len(repr(self.properties))
        return self._size

    def is_expired(self, now: float) -> bool:
        """Tell whether nobody should be given it any more."""
        return self.expires is not None and self.expires <= now

    def properties_for(self, ids: tuple[int, ...], now: float) -> Properties:
        """Return the properties of its PUBLISH to subscriptions with these identifiers."""
        if not ids and self.expires is None:
            return self.properties
        properties = self.properties.copy()
        if ids:
            properties["subscription_identifier"] = list(ids)
        if self.expires is not None:
            properties["message_expiry_interval"] = max(0, math.ceil(self.expires - now))
        return properties

    def packet(
        self,
        qos: int,
        retain: bool,
        ids: tuple[int, ...],
        version: int,
        now: float,
        packet_id: int = 0,
        dup: bool = False,
    ) -> Publish:
        """Return its PUBLISH to subscriptions with these identifiers, of a client that speaks `version`."""
        properties = self.properties_for(ids, now) if version == V5 else NONE
        return Publish(self.topic, self.payload, qos, retain, dup, packet_id, properties)


def message_of(
    topic: str, payload: bytes, qos: int, retain: bool, properties: Properties, now: float
) -> MqttMessage:
    """Return the message that was published with these properties at a Unix time."""
    if not properties:
        return MqttMessage(topic, payload, qos, retain)
    kept = cast(Properties, {name: properties[name] for name in _FORWARDED if name in properties})  # type: ignore[literal-required]
    seconds = properties.get("message_expiry_interval")
    return MqttMessage(topic, payload, qos, retain, kept or NONE, None if seconds is None else now + seconds)


def may_be_published(topic: str) -> bool:
    """Tell whether clients may publish to a valid topic name : not the server's own, not too long."""
    return not topic.startswith("$") and topic.count("/") < MAX_LEVELS and len(topic) <= MAX_TOPIC


def brought_by(packet: Publish, topic: str, now: float) -> MqttMessage:
    """Return the message that a PUBLISH brought at a Unix time; its topic may have come by an alias."""
    return message_of(topic, packet.payload, packet.qos, packet.retain, packet.properties, now)
