"""Envelopes: what travels inside the seal of a message that is more than its payload.

An envelope is a PUBLISH packet of version 5 behind a mark and a place: path, QoS, retain flag, properties and
payload, checked as strictly as what comes from a client. The place says behind which messages of its gateway
and topic it comes. A payload without a mark is one that a program published, or that is to be read by
programs which know nothing of MQTT.
"""

from __future__ import annotations

import struct
from typing import Literal, NamedTuple, cast

import msgspec

from hushcast_protocol.mqtt.reason_codes import PacketError, Reason
from hushcast_protocol.mqtt.wire.codec import Decoder, encode
from hushcast_protocol.mqtt.wire.packets import NONE, V5, Properties, Publish

MARK = b"\x89MQTT\r\n\x02"
SOURCE = 8  # bytes
_PLACE = struct.Struct(f">{SOURCE}sIQB")
_HEAD = len(MARK) + _PLACE.size
_NOWHERE = bytes(_PLACE.size)
_WITHOUT_QOS = 1
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


class Place(NamedTuple):
    """Where a message stands among those of a topic from one gateway; epoch and number are above 0."""

    source: bytes
    """Eight bytes that stand for the gateway and the topic together."""
    epoch: int
    """Grows whenever the gateway may have forgotten numbers; 32 bits."""
    number: int
    """Grows by 1 with each message of the topic; 64 bits."""
    is_alone: bool
    """Whether the one before it went out at least a minute before, or there is none."""

    def __repr__(self) -> str:
        """Show nothing of it."""
        return "Place(...)"


class OpenedEnvelope(msgspec.Struct, frozen=True):
    """What came out of an envelope, or a payload without one."""

    payload: bytes
    path: str = ""
    retain: bool = False
    properties: Properties = NONE
    qos: int = _WITHOUT_QOS
    """As it was published, 0 to 2; 1 where there is no envelope."""
    place: Place | None = None
    """`None` where its order does not matter, or is nobody's to know."""

    def __repr__(self) -> str:
        """Show nothing of it."""
        return "OpenedEnvelope(...)"


def enclose(one: OpenedEnvelope, always: bool = True) -> bytes:
    """Return what is sealed; raise `PacketError` where too much is beside the payload.

    Not `always`: a payload that has neither path, retain flag nor properties travels as it is, and loses its
    QoS and its place.
    """
    if not (always or one.path or one.retain or one.properties or one.payload.startswith(MARK)):
        return one.payload
    # The path stands behind a slash: a PUBLISH without any topic is none.
    packet = Publish(
        f"/{one.path}",
        one.payload,
        one.qos,
        one.retain,
        packet_id=1 if one.qos else 0,
        properties=one.properties,
    )
    place = _NOWHERE if one.place is None else _PLACE.pack(*one.place)
    data = MARK + place + encode(packet, V5)
    if len(data) - len(one.payload) > MAX_BESIDE:
        raise PacketError(Reason.IMPLEMENTATION_SPECIFIC_ERROR, "topic and properties are too long to travel")
    return data


def placed(data: bytes, place: Place | None) -> bytes:
    """Return what `enclose` gave with another place, and a payload without an envelope as it is."""
    if place is None or not data.startswith(MARK):
        return data
    return MARK + _PLACE.pack(*place) + data[_HEAD:]


def disclose(data: bytes) -> OpenedEnvelope:
    """Return what was enclosed; bytes that are no envelope are a payload."""
    if not data.startswith(MARK) or len(data) < _HEAD:
        return OpenedEnvelope(data)
    source, epoch, number, flag = _PLACE.unpack_from(data, len(MARK))
    is_placed = data[len(MARK) : _HEAD] != _NOWHERE
    if is_placed and (not (epoch and number) or flag > 1):
        return OpenedEnvelope(data)
    decoder = Decoder(len(data))
    decoder.version = V5
    try:
        packets = decoder.feed(data[_HEAD:])
    except PacketError:
        return OpenedEnvelope(data)
    if decoder.error is not None or len(packets) != 1 or not isinstance(packets[0], Publish):
        return OpenedEnvelope(data)
    packet = packets[0]
    is_ours = packet.topic.startswith("/") and packet.packet_id == (1 if packet.qos else 0) and not packet.dup
    if not is_ours or "topic_alias" in packet.properties:
        return OpenedEnvelope(data)
    return OpenedEnvelope(
        packet.payload,
        packet.topic[1:],
        packet.retain,
        packet.properties,
        packet.qos,
        Place(source, epoch, number, flag == 1) if is_placed else None,
    )


def travelling(properties: Properties, which: TravellingProperties) -> Properties:
    """Return the properties that leave the gateway."""
    if not properties or which == "none":
        return NONE
    names = (*TRAVELS, "user_property") if which == "all" else TRAVELS
    return cast(Properties, {name: properties[name] for name in names if name in properties})  # type: ignore[literal-required]
