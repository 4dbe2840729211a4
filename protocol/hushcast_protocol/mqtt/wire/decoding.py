"""What each control packet looks like as bytes, read: one function a type, for both versions (section 3).

Every function takes a reader of what follows the fixed header, the header's flags, the version and whether
a server sent it; it returns the packet or raises `PacketError`. Flags that never vary were checked before.
"""

from __future__ import annotations

from collections.abc import Callable, Sized

from hushcast_protocol.mqtt.limits import MAX_ASKED
from hushcast_protocol.mqtt.reason_codes import SUBSCRIPTION_FAILED, PacketError, Reason
from hushcast_protocol.mqtt.topics import topic_filters
from hushcast_protocol.mqtt.wire.fields import Reader, cut_short, malformed, text_of
from hushcast_protocol.mqtt.wire.packets import (
    NONE,
    V5,
    V311,
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
    RequestedSubscription,
    SubAck,
    Subscribe,
    UnsubAck,
    Unsubscribe,
    Will,
)
from hushcast_protocol.mqtt.wire.properties import PacketType, read_properties

Decode = Callable[[Reader, int, bool], Packet]

_BAD_FLAGS = frozenset(flags for flags in range(16) if flags & 6 == 6 or flags & 14 == 8)

CONNACK_REASONS = frozenset({0, *range(0x80, 0x8B), 0x8C, 0x90, 0x95, 0x97, *range(0x99, 0xA0)} - {0x9E})
_RECEIVED = frozenset({0, 0x10, 0x80, 0x83, 0x87, 0x90, 0x91, 0x97, 0x99})
_RELEASED = frozenset({0, 0x92})
SUBACK_REASONS = frozenset({0, 1, 2, 0x80, 0x83, 0x87, 0x8F, 0x91, 0x97, 0x9E, 0xA1, 0xA2})
_UNSUBACK_REASONS = frozenset({0, 0x11, 0x80, 0x83, 0x87, 0x8F, 0x91})
_CLIENT_ENDS = frozenset({0, 4, 0x80, 0x81, 0x82, 0x83, 0x90, *range(0x93, 0x9A)})
_SERVER_ENDS = frozenset(
    {0, *range(0x80, 0x84), 0x87, 0x89, *range(0x8B, 0x91), *range(0x93, 0xA3)},
)
_CLIENT_AUTH = frozenset({0x18, 0x19})
_SERVER_AUTH = frozenset({0, 0x18})


def _expected(reason: int, allowed: frozenset[int]) -> int:
    if reason not in allowed:
        raise PacketError(Reason.PROTOCOL_ERROR, "a reason code that this packet cannot have")
    return reason


def publish(data: bytes, at: int, end: int, flags: int, version: int, of_server: bool) -> Publish:
    """Read a PUBLISH between `at` and `end`: apart from the others and without a reader, for speed."""
    if flags in _BAD_FLAGS:
        raise malformed("PUBLISH has QoS 3, or is a duplicate of QoS 0")
    start = at + 2
    at = start + (data[at] << 8 | data[at + 1]) if start <= end else end + 1
    if at > end:
        raise cut_short()
    topic = text_of(data[start:at])
    if "+" in topic or "#" in topic or topic_filters.has_control(topic):
        raise malformed("this is no topic name")
    qos = flags >> 1 & 3
    packet_id = 0
    if qos:
        if at + 2 > end:
            raise cut_short()
        packet_id = data[at] << 8 | data[at + 1]
        at += 2
        if not packet_id:
            raise PacketError(Reason.PROTOCOL_ERROR, "a packet identifier is 0")
    properties = NONE
    if version == V5:
        if at < end and not data[at]:
            at += 1
        else:
            reader = Reader(data, at, end)
            properties = _properties_of_message(reader, of_server)
            at = end - reader.left
    if not topic and "topic_alias" not in properties:
        raise malformed("PUBLISH has neither topic nor alias")
    return Publish(topic, data[at:end], qos, flags & 1 == 1, flags & 8 == 8, packet_id, properties)


def _properties_of_message(reader: Reader, of_server: bool) -> Properties:
    """Read PUBLISH's properties; subscription identifiers that a client sends are ignored.

    The standard forbids clients to send them and names no answer; mosquitto's clients and tests do.
    """
    found = read_properties(reader, PacketType.PUBLISH, of_server)
    if not of_server:
        found.pop("subscription_identifier", None)
    return found or NONE


def _connect(reader: Reader, version: int, of_server: bool) -> Connect:
    """Read CONNECT, the only packet that tells its version; `version` is 0 here."""
    name = reader.binary()
    level = reader.byte()
    if name not in (b"MQTT", b"MQIsdp"):
        raise PacketError(Reason.UNSUPPORTED_PROTOCOL_VERSION, "this is not MQTT")
    if name != b"MQTT" or level not in (V311, V5):
        # Who asks for a later version knows 5; a bridge sets the highest bit of 3.1.1's.
        form = V5 if V5 < level < 0x80 else V311
        raise PacketError(
            Reason.UNSUPPORTED_PROTOCOL_VERSION, "MQTT is spoken in versions 3.1.1 and 5", form=form
        )
    try:
        return _connect_behind(reader, level, of_server)
    except PacketError as error:
        error.form = V5 if level == V5 else None  # 3.1.1 has no reason for it
        raise


def _connect_behind(reader: Reader, level: int, of_server: bool) -> Connect:
    """Read what is behind the version of CONNECT."""
    flags = reader.byte()
    has_will, qos = flags & 0x04, flags >> 3 & 3
    if flags & 0x01:
        raise malformed("CONNECT has its reserved flag set")
    if qos == 3 or (not has_will and flags & 0x38):
        raise malformed("CONNECT's flags of a will make no sense")
    if level == V311 and flags & 0xC0 == 0x40:
        raise malformed("CONNECT has a password without a user name")
    keep_alive = reader.two()
    properties = read_properties(reader, PacketType.CONNECT, of_server) if level == V5 else NONE
    client_id = reader.name()
    will = _will(reader, level, qos, flags & 0x20 == 0x20) if has_will else None
    username = reader.name() if flags & 0x80 else None
    password = reader.binary() if flags & 0x40 else None
    reader.finish()
    return Connect(level, client_id, flags & 2 == 2, keep_alive, will, username, password, properties)


def _will(reader: Reader, version: int, qos: int, retain: bool) -> Will:
    properties = read_properties(reader, PacketType.WILL, of_server=False) if version == V5 else NONE
    topic = reader.name()
    if not topic_filters.is_name(topic):
        raise malformed("the will's topic is no topic name")
    return Will(topic, reader.binary(), qos, retain, properties)


def _connack(reader: Reader, version: int, of_server: bool) -> ConnAck:
    flags = reader.byte()
    if flags > 1:
        raise malformed("CONNACK has reserved flags set")
    reason = _expected(reader.byte(), CONNACK_REASONS if version == V5 else frozenset(range(6)))
    if reason and flags:
        raise PacketError(Reason.PROTOCOL_ERROR, "CONNACK refuses and has a session")
    properties = read_properties(reader, PacketType.CONNACK, of_server) if version == V5 else NONE
    reader.finish()
    return ConnAck(flags == 1, reason, properties)


def _acknowledgement(
    kind: PacketType, make: Callable[[int, int, Properties], Packet], allowed: frozenset[int]
) -> Decode:
    """Return the decoder of an acknowledgement: reason and properties may be left out where they are none."""

    def decode(reader: Reader, version: int, of_server: bool) -> Packet:
        packet_id = reader.packet_id()
        if version != V5 or not reader.left:
            reader.finish()
            return make(packet_id, 0, NONE)
        reason = _expected(reader.byte(), allowed)
        properties = read_properties(reader, kind, of_server) if reader.left else NONE
        reader.finish()
        return make(packet_id, reason, properties)

    return decode


def _filter(reader: Reader) -> str:
    found = reader.name()
    if not topic_filters.is_filter(found):
        if topic_filters.split_share(found) is not None:
            raise PacketError(Reason.PROTOCOL_ERROR, "a shared subscription without a group or a filter")
        raise malformed("this is no topic filter")
    return found


def _subscribe(reader: Reader, version: int, of_server: bool) -> Subscribe:
    packet_id = reader.packet_id()
    properties = read_properties(reader, PacketType.SUBSCRIBE, of_server) if version == V5 else NONE
    found = [_subscription(reader, version)]
    while reader.left:
        _check_count(found)
        found.append(_subscription(reader, version))
    return Subscribe(packet_id, found, properties)


def _check_count(found: Sized) -> None:
    if len(found) >= MAX_ASKED:
        raise PacketError(Reason.QUOTA_EXCEEDED, f"more than {MAX_ASKED} filters in a packet")


def _subscription(reader: Reader, version: int) -> RequestedSubscription:
    wanted = _filter(reader)
    options = reader.byte()
    qos, handling, no_local = options & 3, options >> 4 & 3, options & 4 == 4
    if qos == 3 or handling == 3 or options & (0xC0 if version == V5 else 0xFC):
        raise malformed("a subscription has reserved options")
    if no_local and topic_filters.split_share(wanted) is not None:
        raise PacketError(Reason.PROTOCOL_ERROR, "a shared subscription with No Local")
    return RequestedSubscription(wanted, qos, no_local, options & 8 == 8, handling)


def _suback(reader: Reader, version: int, of_server: bool) -> SubAck:
    packet_id = reader.packet_id()
    properties = read_properties(reader, PacketType.SUBACK, of_server) if version == V5 else NONE
    allowed = SUBACK_REASONS if version == V5 else frozenset({0, 1, 2, SUBSCRIPTION_FAILED})
    return SubAck(packet_id, _reasons(reader, allowed), properties)


def _reasons(reader: Reader, allowed: frozenset[int]) -> list[int]:
    if not reader.left:
        raise malformed("an acknowledgement without reasons")
    return [_expected(reason, allowed) for reason in reader.rest()]


def _unsubscribe(reader: Reader, version: int, of_server: bool) -> Unsubscribe:
    packet_id = reader.packet_id()
    properties = read_properties(reader, PacketType.UNSUBSCRIBE, of_server) if version == V5 else NONE
    found = [_filter(reader)]
    while reader.left:
        _check_count(found)
        found.append(_filter(reader))
    return Unsubscribe(packet_id, found, properties)


def _unsuback(reader: Reader, version: int, of_server: bool) -> UnsubAck:
    packet_id = reader.packet_id()
    if version != V5:
        reader.finish()
        return UnsubAck(packet_id)
    properties = read_properties(reader, PacketType.UNSUBACK, of_server)
    return UnsubAck(packet_id, _reasons(reader, _UNSUBACK_REASONS), properties)


def _pingreq(reader: Reader, version: int, of_server: bool) -> PingReq:
    reader.finish()
    return PingReq()


def _pingresp(reader: Reader, version: int, of_server: bool) -> PingResp:
    reader.finish()
    return PingResp()


def _disconnect(reader: Reader, version: int, of_server: bool) -> Disconnect:
    if version != V5 or not reader.left:
        reader.finish()
        return Disconnect()
    reason = reader.byte()
    properties = read_properties(reader, PacketType.DISCONNECT, of_server) if reader.left else NONE
    reader.finish()
    if reason not in (_SERVER_ENDS if of_server else _CLIENT_ENDS):
        raise PacketError(Reason.PROTOCOL_ERROR, "a reason code that DISCONNECT cannot have", silent=True)
    if ("session_expiry_interval" if of_server else "server_reference") in properties:
        raise PacketError(Reason.PROTOCOL_ERROR, "a property that the other side sends", silent=True)
    return Disconnect(reason, properties)


def _auth(reader: Reader, version: int, of_server: bool) -> Auth:
    if version != V5:
        raise PacketError(Reason.PROTOCOL_ERROR, "AUTH is of version 5")
    if not reader.left and of_server:
        return Auth()
    reason = _expected(
        reader.byte() if reader.left else Reason.SUCCESS, _SERVER_AUTH if of_server else _CLIENT_AUTH
    )
    properties = read_properties(reader, PacketType.AUTH, of_server)
    reader.finish()
    if "authentication_method" not in properties:
        raise PacketError(Reason.PROTOCOL_ERROR, "AUTH without a method")
    return Auth(reason, properties)


DECODE: dict[int, Decode] = {
    PacketType.CONNECT: _connect,
    PacketType.CONNACK: _connack,
    PacketType.PUBACK: _acknowledgement(PacketType.PUBACK, PubAck, _RECEIVED),
    PacketType.PUBREC: _acknowledgement(PacketType.PUBREC, PubRec, _RECEIVED),
    PacketType.PUBREL: _acknowledgement(PacketType.PUBREL, PubRel, _RELEASED),
    PacketType.PUBCOMP: _acknowledgement(PacketType.PUBCOMP, PubComp, _RELEASED),
    PacketType.SUBSCRIBE: _subscribe,
    PacketType.SUBACK: _suback,
    PacketType.UNSUBSCRIBE: _unsubscribe,
    PacketType.UNSUBACK: _unsuback,
    PacketType.PINGREQ: _pingreq,
    PacketType.PINGRESP: _pingresp,
    PacketType.DISCONNECT: _disconnect,
    PacketType.AUTH: _auth,
}
