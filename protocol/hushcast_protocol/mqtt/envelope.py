"""Envelopes: what travels inside the seal of a message that is more than its payload.

An envelope is a PUBLISH packet of version 5 behind a mark: path, retain flag, properties and payload, checked
as strictly as what comes from a client. A message that has none of these but its payload travels as it is,
so that programs that know nothing of MQTT publish and read it, too.
"""

from __future__ import annotations

from typing import Literal, cast

import msgspec

from hushcast_protocol.mqtt.codec import Decoder, encode
from hushcast_protocol.mqtt.packets import NONE, V5, Properties, Publish
from hushcast_protocol.mqtt.reason_codes import PacketError, Reason

MARK = b"\x89MQTT\r\n\x01"
MAX_BESIDE = 4_096  # bytes of an envelope beside its payload: user properties are the largest part
TRAVELS = (
    "payload_format_indicator",
    "message_expiry_interval",
    "content_type",
    "response_topic",
    "correlation_data",
)
"""The properties that are known; user properties are what applications make of them."""

TravellingProperties = Literal["all", "known", "none"]


class OpenedEnvelope(msgspec.Struct, frozen=True):
    """What came out of an envelope, or a payload without one."""

    payload: bytes
    path: str = ""
    retain: bool = False
    properties: Properties = NONE

    def __repr__(self) -> str:
        """Show nothing of it."""
        return "OpenedEnvelope(...)"


def enclose(one: OpenedEnvelope) -> bytes:
    """Return what is sealed; raise `PacketError` where too much is beside the payload."""
    if not (one.path or one.retain or one.properties or one.payload.startswith(MARK)):
        return one.payload
    # The path stands behind a slash: a PUBLISH without any topic is none.
    packet = Publish(f"/{one.path}", one.payload, retain=one.retain, properties=one.properties)
    data = MARK + encode(packet, V5)
    if len(data) - len(one.payload) > MAX_BESIDE:
        raise PacketError(Reason.IMPLEMENTATION_SPECIFIC_ERROR, "topic and properties are too long to travel")
    return data


def disclose(data: bytes) -> OpenedEnvelope:
    """Return what was enclosed; bytes that are no envelope are a payload."""
    if not data.startswith(MARK):
        return OpenedEnvelope(data)
    decoder = Decoder(len(data))
    decoder.version = V5
    try:
        packets = decoder.feed(data[len(MARK) :])
    except PacketError:
        return OpenedEnvelope(data)
    if decoder.error is not None or len(packets) != 1 or not isinstance(packets[0], Publish):
        return OpenedEnvelope(data)
    packet = packets[0]
    if packet.qos or not packet.topic.startswith("/") or "topic_alias" in packet.properties:
        return OpenedEnvelope(data)
    return OpenedEnvelope(packet.payload, packet.topic[1:], packet.retain, packet.properties)


def travelling(properties: Properties, which: TravellingProperties) -> Properties:
    """Return the properties that leave the gateway."""
    if not properties or which == "none":
        return NONE
    names = (*TRAVELS, "user_property") if which == "all" else TRAVELS
    return cast(Properties, {name: properties[name] for name in names if name in properties})  # type: ignore[literal-required]
