"""The properties of version 5: which there are, where each may stand, and as bytes (section 2.2.2).

What is in a wrong place, twice or out of range is told after the block's end, so that a block that is cut
short is malformed in any case.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import IntEnum
from typing import Any, NamedTuple, cast

from hushcast_protocol.base.errors import unraised
from hushcast_protocol.mqtt.reason_codes import PacketError, Reason
from hushcast_protocol.mqtt.topics import topic_filters
from hushcast_protocol.mqtt.wire import fields
from hushcast_protocol.mqtt.wire.fields import Reader, malformed
from hushcast_protocol.mqtt.wire.packets import NONE, Properties

MAX_USER_PROPERTIES = 64  # in a block: real clients send a handful, and each is kept with its message
MAX_PROPERTIES = 8_192  # bytes of a block: they are kept in memory beside every payload


class PacketType(IntEnum):
    """The types of control packets, as in the fixed header (section 2.1.2)."""

    CONNECT = 1
    CONNACK = 2
    PUBLISH = 3
    PUBACK = 4
    PUBREC = 5
    PUBREL = 6
    PUBCOMP = 7
    SUBSCRIBE = 8
    SUBACK = 9
    UNSUBSCRIBE = 10
    UNSUBACK = 11
    PINGREQ = 12
    PINGRESP = 13
    DISCONNECT = 14
    AUTH = 15
    WILL = 16
    """No packet: the block of a will's properties inside CONNECT."""


class _Form(NamedTuple):
    """A data type: how a property's value is read and written."""

    read: Callable[[Reader], Any]
    write: Callable[[Any], bytes]


def _read_pair(reader: Reader) -> tuple[str, str]:
    return reader.text(), reader.text()


def _write_pair(pair: tuple[str, str]) -> bytes:
    return fields.text(pair[0]) + fields.text(pair[1])


_BYTE = _Form(Reader.byte, lambda value: value.to_bytes(1, "big"))
_TWO = _Form(Reader.two, fields.two)
_FOUR = _Form(Reader.four, lambda value: value.to_bytes(4, "big"))
_VARIABLE = _Form(Reader.variable, fields.variable)
_TEXT = _Form(Reader.text, fields.text)
_BINARY = _Form(Reader.binary, fields.binary)
_PAIR = _Form(_read_pair, _write_pair)


class _Property(NamedTuple):
    number: int
    name: str
    form: _Form
    places: frozenset[PacketType]
    check: Callable[[_Property, Any, PacketType], PacketError | None] | None = None


def _from(
    least: int, most: int, outside: Reason = Reason.PROTOCOL_ERROR
) -> Callable[..., PacketError | None]:
    """Return the check of a number's range."""

    def check(known: _Property, value: int, place: PacketType) -> PacketError | None:
        if least <= value <= most:
            return None
        reason = _MISPLACED.get(place, outside)
        return PacketError(reason, f"{known.name.replace('_', ' ')} is out of range")

    return check


def _is_name(known: _Property, value: str, place: PacketType) -> PacketError | None:
    if topic_filters.is_name(value):
        return None
    return PacketError(Reason.PROTOCOL_ERROR, "the response topic is not a topic name")


def _in(*places: PacketType) -> frozenset[PacketType]:
    return frozenset(places)


_BOOLEAN, _NOT_0 = _from(0, 1), _from(1, 2**32 - 1)
_ALIAS = _from(1, 2**16 - 1, Reason.TOPIC_ALIAS_INVALID)
_MESSAGE = _in(PacketType.PUBLISH, PacketType.WILL)
_ENDS = _in(PacketType.CONNECT, PacketType.CONNACK)
_CONNECT, _CONNACK = _in(PacketType.CONNECT), _in(PacketType.CONNACK)
_AUTH = _ENDS | _in(PacketType.AUTH)
_ACKS = _in(
    PacketType.PUBACK,
    PacketType.PUBREC,
    PacketType.PUBREL,
    PacketType.PUBCOMP,
    PacketType.SUBACK,
    PacketType.UNSUBACK,
)
_REASONS = _ACKS | _in(PacketType.CONNACK, PacketType.DISCONNECT, PacketType.AUTH)
_ALL = frozenset(PacketType) - {PacketType.PINGREQ, PacketType.PINGRESP}

_PROPERTIES = (
    _Property(0x01, "payload_format_indicator", _BYTE, _MESSAGE, _BOOLEAN),
    _Property(0x02, "message_expiry_interval", _FOUR, _MESSAGE),
    _Property(0x03, "content_type", _TEXT, _MESSAGE),
    _Property(0x08, "response_topic", _TEXT, _MESSAGE, _is_name),
    _Property(0x09, "correlation_data", _BINARY, _MESSAGE),
    _Property(
        0x0B, "subscription_identifier", _VARIABLE, _in(PacketType.PUBLISH, PacketType.SUBSCRIBE), _NOT_0
    ),
    _Property(0x11, "session_expiry_interval", _FOUR, _ENDS | {PacketType.DISCONNECT}),
    _Property(0x12, "assigned_client_identifier", _TEXT, _CONNACK),
    _Property(0x13, "server_keep_alive", _TWO, _CONNACK),
    _Property(0x15, "authentication_method", _TEXT, _AUTH),
    _Property(0x16, "authentication_data", _BINARY, _AUTH),
    _Property(0x17, "request_problem_information", _BYTE, _CONNECT, _BOOLEAN),
    _Property(0x18, "will_delay_interval", _FOUR, _in(PacketType.WILL)),
    _Property(0x19, "request_response_information", _BYTE, _CONNECT, _BOOLEAN),
    _Property(0x1A, "response_information", _TEXT, _CONNACK),
    _Property(0x1C, "server_reference", _TEXT, _in(PacketType.CONNACK, PacketType.DISCONNECT)),
    _Property(0x1F, "reason_string", _TEXT, _REASONS),
    _Property(0x21, "receive_maximum", _TWO, _ENDS, _NOT_0),
    _Property(0x22, "topic_alias_maximum", _TWO, _ENDS),
    _Property(0x23, "topic_alias", _TWO, _in(PacketType.PUBLISH), _ALIAS),
    _Property(0x24, "maximum_qos", _BYTE, _CONNACK, _BOOLEAN),
    _Property(0x25, "retain_available", _BYTE, _CONNACK, _BOOLEAN),
    _Property(0x26, "user_property", _PAIR, _ALL),
    _Property(0x27, "maximum_packet_size", _FOUR, _ENDS, _NOT_0),
    _Property(0x28, "wildcard_subscription_available", _BYTE, _CONNACK, _BOOLEAN),
    _Property(0x29, "subscription_identifier_available", _BYTE, _CONNACK, _BOOLEAN),
    _Property(0x2A, "shared_subscription_available", _BYTE, _CONNACK, _BOOLEAN),
)
_BY_NUMBER = {one.number: one for one in _PROPERTIES}
_BY_NAME = {one.name: one for one in _PROPERTIES}
_USER, _IDENTIFIER = "user_property", "subscription_identifier"
_LISTS = frozenset({_USER, _IDENTIFIER})
_MANY, _MANY_IDENTIFIERS = frozenset({_USER}), _LISTS  # a server's PUBLISH has one for each subscription
_MISPLACED = {  # the standard has it both ways: section 2.2.2.2, and "protocol error" of single properties
    PacketType.SUBSCRIBE: Reason.MALFORMED_PACKET,
    PacketType.UNSUBSCRIBE: Reason.MALFORMED_PACKET,
}


def read_properties(reader: Reader, place: PacketType, of_server: bool) -> Properties:
    """Read the length and the block of properties that stand at this place."""
    size = reader.variable()
    if not size:
        return NONE
    block = reader.part(size)
    if size > MAX_PROPERTIES:
        raise PacketError(Reason.QUOTA_EXCEEDED, f"more than {MAX_PROPERTIES} bytes of properties")
    found: dict[str, Any] = {}
    wrong: PacketError | None = None
    many = _MANY_IDENTIFIERS if of_server and place == PacketType.PUBLISH else _MANY
    while block.left:
        known = _BY_NUMBER.get(block.byte())  # all numbers are below 0x80, and so one byte long
        if known is None:
            raise malformed("there is no such property")
        name = known.name
        value = known.form.read(block)
        if place not in known.places or (name in found and name not in many):
            wrong = wrong or _misplaced(known, place)
        elif known.check is not None:
            wrong = wrong or known.check(known, value, place)
        if name not in _LISTS:
            found[name] = value
            continue
        values = found.setdefault(name, [])
        values.append(value)
        if len(values) > MAX_USER_PROPERTIES and name == _USER:
            raise PacketError(Reason.QUOTA_EXCEEDED, f"more than {MAX_USER_PROPERTIES} user properties")
    if wrong is None and "authentication_data" in found and "authentication_method" not in found:
        wrong = PacketError(Reason.PROTOCOL_ERROR, "authentication data without a method")
    if wrong is not None:
        raise unraised(wrong)
    return cast(Properties, found)


def _misplaced(known: _Property, place: PacketType) -> PacketError:
    if place in known.places:
        return PacketError(Reason.PROTOCOL_ERROR, "a property is there twice")
    return PacketError(_MISPLACED.get(place, Reason.PROTOCOL_ERROR), "a property is in the wrong packet")


def write_properties(properties: Properties) -> bytes:
    """Write the length and the block, in the order given; errors as of `encode`."""
    if not properties:
        return b"\x00"
    block = write_block(properties)
    return fields.variable(len(block)) + block


def write_block(properties: Properties) -> bytes:
    """Write properties without the length that stands before them."""
    found = bytearray()
    for name, value in properties.items():
        known = _BY_NAME[name]
        for one in cast("list[Any]", value) if name in _LISTS else (value,):
            found.append(known.number)
            found += known.form.write(one)
    return bytes(found)
