"""Packets as bytes; of a message that many get, the topic is written once."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from hushcast_protocol.mqtt.reason_codes import SUBSCRIPTION_FAILED
from hushcast_protocol.mqtt.wire import fields
from hushcast_protocol.mqtt.wire.fields import two
from hushcast_protocol.mqtt.wire.packets import (
    V5,
    Auth,
    ConnAck,
    Connect,
    Disconnect,
    Packet,
    PingReq,
    PingResp,
    Properties,
    PubAck,
    PubComp,
    Publish,
    PubRec,
    PubRel,
    SubAck,
    Subscribe,
    UnsubAck,
    Unsubscribe,
)
from hushcast_protocol.mqtt.wire.properties import write_properties

PINGREQ, PINGRESP = b"\xc0\x00", b"\xd0\x00"


def encode(packet: Packet, version: int) -> bytes:
    """Return a packet's bytes in this version.

    Raises `ValueError` for a text or payload too long for any packet, `OverflowError` for such a number.

    What 3.1.1 does not know is left out; failures of its SUBACK are all 0x80, and AUTH is a `ValueError`.
    Properties stand in the order that they have in the packet.
    """
    return _ENCODE[type(packet)](packet, version)


def encode_publish(topic: bytes, payload: bytes, version: int, flags: int = 0, packet_id: int = 0) -> bytes:
    """Return the bytes of a PUBLISH without properties, for most messages.

    `topic` is as `fields.text` writes it, `flags` are those of the first byte: 8 for a duplicate, twice the
    QoS, 1 for retained. Errors as `encode`.
    """
    between = packet_id.to_bytes(2, "big") if packet_id else b""
    return _published(0x30 | flags, topic, between + b"\x00" if version == V5 else between, payload)


def encode_puback(packet_id: int) -> bytes:
    """Return the bytes of a PUBACK without a reason, for most of them."""
    return b"\x40\x02" + packet_id.to_bytes(2, "big")


def _published(first: int, topic: bytes, between: bytes, payload: bytes) -> bytes:
    length = len(topic) + len(between) + len(payload)
    if length < 0x80:
        return b"".join((bytes((first, length)), topic, between, payload))
    if length < 0x4000:
        return b"".join((bytes((first, length & 0x7F | 0x80, length >> 7)), topic, between, payload))
    return b"".join((bytes((first,)), fields.variable(length), topic, between, payload))


def _framed(first: int, body: bytes) -> bytes:
    return bytes((first,)) + fields.variable(len(body)) + body


def _block(properties: Properties, version: int) -> bytes:
    return write_properties(properties) if version == V5 else b""


def _tail(reason: int, properties: Properties, version: int) -> bytes:
    """Return reason and properties where they may be left out if there are none."""
    if version != V5 or (reason == 0 and not properties):
        return b""
    return bytes((reason,)) + (write_properties(properties) if properties else b"")


def _connect(packet: Connect, version: int) -> bytes:
    will = packet.will
    flags = packet.clean << 1 | (packet.username is not None) << 7 | (packet.password is not None) << 6
    if will is not None:
        flags |= 0x04 | will.qos << 3 | will.retain << 5
    body = b"\x00\x04MQTT" + bytes((packet.version, flags)) + two(packet.keep_alive)
    body += _block(packet.properties, packet.version) + fields.text(packet.client_id)
    if will is not None:
        body += _block(will.properties, packet.version) + fields.text(will.topic)
        body += fields.binary(will.payload)
    if packet.username is not None:
        body += fields.text(packet.username)
    if packet.password is not None:
        body += fields.binary(packet.password)
    return _framed(0x10, body)


def _connack(packet: ConnAck, version: int) -> bytes:
    head = bytes((packet.session_present, packet.reason))
    return _framed(0x20, head + _block(packet.properties, version))


def _publish(packet: Publish, version: int) -> bytes:
    between = packet.packet_id.to_bytes(2, "big") if packet.qos else b""
    if version == V5:
        between += write_properties(packet.properties) if packet.properties else b"\x00"
    first = 0x30 | packet.dup << 3 | packet.qos << 1 | packet.retain
    return _published(first, fields.text(packet.topic), between, packet.payload)


def _acknowledgement(first: int) -> Callable[[PubAck | PubRec | PubRel | PubComp, int], bytes]:
    plain = bytes((first, 2))

    def encode(packet: PubAck | PubRec | PubRel | PubComp, version: int) -> bytes:
        if not packet.reason and not packet.properties:
            return plain + two(packet.packet_id)
        return _framed(first, two(packet.packet_id) + _tail(packet.reason, packet.properties, version))

    return encode


def _subscribe(packet: Subscribe, version: int) -> bytes:
    body = two(packet.packet_id) + _block(packet.properties, version)
    for one in packet.subscriptions:
        options = one.qos
        if version == V5:
            options |= one.no_local << 2 | one.retain_as_published << 3 | one.retain_handling << 4
        body += fields.text(one.filter) + bytes((options,))
    return _framed(0x82, body)


def _suback(packet: SubAck, version: int) -> bytes:
    reasons = packet.reasons
    if version != V5:
        reasons = [SUBSCRIPTION_FAILED if reason >= SUBSCRIPTION_FAILED else reason for reason in reasons]
    return _framed(0x90, two(packet.packet_id) + _block(packet.properties, version) + bytes(reasons))


def _unsubscribe(packet: Unsubscribe, version: int) -> bytes:
    body = two(packet.packet_id) + _block(packet.properties, version)
    return _framed(0xA2, body + b"".join(map(fields.text, packet.filters)))


def _unsuback(packet: UnsubAck, version: int) -> bytes:
    reasons = bytes(packet.reasons) if version == V5 else b""
    return _framed(0xB0, two(packet.packet_id) + _block(packet.properties, version) + reasons)


def _disconnect(packet: Disconnect, version: int) -> bytes:
    return _framed(0xE0, _tail(packet.reason, packet.properties, version))


def _auth(packet: Auth, version: int) -> bytes:
    if version != V5:
        raise ValueError("AUTH is of version 5")
    if packet.reason == 0 and not packet.properties:
        return b"\xf0\x00"
    return _framed(0xF0, bytes((packet.reason,)) + write_properties(packet.properties))


_ENCODE: dict[type, Callable[[Any, int], bytes]] = {
    Connect: _connect,
    ConnAck: _connack,
    Publish: _publish,
    PubAck: _acknowledgement(0x40),
    PubRec: _acknowledgement(0x50),
    PubRel: _acknowledgement(0x62),
    PubComp: _acknowledgement(0x70),
    Subscribe: _subscribe,
    SubAck: _suback,
    Unsubscribe: _unsubscribe,
    UnsubAck: _unsuback,
    PingReq: lambda packet, version: PINGREQ,
    PingResp: lambda packet, version: PINGRESP,
    Disconnect: _disconnect,
    Auth: _auth,
}
