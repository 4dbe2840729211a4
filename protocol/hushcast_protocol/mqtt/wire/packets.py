"""The control packets of MQTT 3.1.1 and 5 (OASIS MQTT 5.0, section 3), one type for both versions.

What only one version knows is at its default in the other: properties are empty and reasons are `SUCCESS`
in 3.1.1. Texts are valid UTF-8 without U+0000; packet identifiers are 1 to 65,535, and 0 where there is none.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import IntEnum
from typing import TypedDict

import msgspec

from hushcast_protocol.mqtt.reason_codes import Reason

V311, V5 = 4, 5  # protocol levels, as CONNECT has them


class QoS(IntEnum):
    """How often a message is delivered: at most, at least, exactly once (section 4.3)."""

    AT_MOST_ONCE = 0
    AT_LEAST_ONCE = 1
    EXACTLY_ONCE = 2


class Properties(TypedDict, total=False):
    """The properties of version 5 by name (section 2.2.2.2); the codec knows which packet may carry which."""

    payload_format_indicator: int
    message_expiry_interval: int
    content_type: str
    response_topic: str
    correlation_data: bytes
    subscription_identifier: list[int]
    session_expiry_interval: int
    assigned_client_identifier: str
    server_keep_alive: int
    authentication_method: str
    authentication_data: bytes
    request_problem_information: int
    will_delay_interval: int
    request_response_information: int
    response_information: str
    server_reference: str
    reason_string: str
    receive_maximum: int
    topic_alias_maximum: int
    topic_alias: int
    maximum_qos: int
    retain_available: int
    user_property: list[tuple[str, str]]
    maximum_packet_size: int
    wildcard_subscription_available: int
    subscription_identifier_available: int
    shared_subscription_available: int


NONE: Properties = {}
"""No properties; shared, so nobody may add to it."""


def with_user_properties(properties: Properties, given: Iterable[tuple[str, str]]) -> Properties:
    """Return properties with other user properties, and without any where none are given."""
    found: Properties = {**properties, "user_property": list(given)}
    if not found["user_property"]:
        del found["user_property"]
    return found


class _Packet(msgspec.Struct, frozen=True):
    pass


class Will(_Packet, frozen=True):
    """The message that a server publishes when a client is gone (section 3.1.2.5)."""

    topic: str
    payload: bytes
    qos: int = 0
    retain: bool = False
    properties: Properties = NONE

    def __repr__(self) -> str:
        """Show neither topic nor payload."""
        return f"Will(qos={self.qos})"


class Connect(_Packet, frozen=True):
    """CONNECT: the first packet of a client; `version` is `V311` or `V5`, `keep_alive` seconds or 0."""

    version: int
    client_id: str
    clean: bool = True
    """Clean Session of 3.1.1, Clean Start of 5."""
    keep_alive: int = 0
    will: Will | None = None
    username: str | None = None
    password: bytes | None = None
    properties: Properties = NONE

    def __repr__(self) -> str:
        """Show no identity and no secret."""
        return f"Connect(version={self.version})"


class ConnAck(_Packet, frozen=True):
    """CONNACK; `reason` is a return code of 0 to 5 in 3.1.1."""

    session_present: bool = False
    reason: int = Reason.SUCCESS
    properties: Properties = NONE


class Publish(_Packet, frozen=True):
    """PUBLISH; the topic is empty where an alias stands for it."""

    topic: str
    payload: bytes
    qos: int = 0
    retain: bool = False
    dup: bool = False
    packet_id: int = 0
    properties: Properties = NONE

    def __repr__(self) -> str:
        """Show neither topic nor payload."""
        return f"Publish(qos={self.qos}, packet_id={self.packet_id})"


class _Acknowledgement(_Packet, frozen=True):
    packet_id: int
    reason: int = Reason.SUCCESS
    properties: Properties = NONE


class PubAck(_Acknowledgement, frozen=True):
    """PUBACK: the answer to a PUBLISH of QoS 1."""


class PubRec(_Acknowledgement, frozen=True):
    """PUBREC: the answer to a PUBLISH of QoS 2."""


class PubRel(_Acknowledgement, frozen=True):
    """PUBREL: the answer to a PUBREC."""


class PubComp(_Acknowledgement, frozen=True):
    """PUBCOMP: the answer to a PUBREL."""


class RequestedSubscription(_Packet, frozen=True):
    """One filter of a SUBSCRIBE with its options (section 3.8.3.1)."""

    filter: str
    qos: int = 0
    no_local: bool = False
    retain_as_published: bool = False
    retain_handling: int = 0

    def __repr__(self) -> str:
        """Show no filter."""
        return f"RequestedSubscription(qos={self.qos})"


class Subscribe(_Packet, frozen=True):
    """SUBSCRIBE, with at least one subscription."""

    packet_id: int
    subscriptions: list[RequestedSubscription]
    properties: Properties = NONE


class SubAck(_Packet, frozen=True):
    """SUBACK, with one reason for each subscription; 3.1.1 knows 0, 1, 2 and 0x80."""

    packet_id: int
    reasons: list[int]
    properties: Properties = NONE


class Unsubscribe(_Packet, frozen=True):
    """UNSUBSCRIBE, with at least one filter."""

    packet_id: int
    filters: list[str]
    properties: Properties = NONE

    def __repr__(self) -> str:
        """Show no filter."""
        return f"Unsubscribe(packet_id={self.packet_id})"


class UnsubAck(_Packet, frozen=True):
    """UNSUBACK, with one reason for each filter; 3.1.1 sends none."""

    packet_id: int
    reasons: list[int] = []
    properties: Properties = NONE


class PingReq(_Packet, frozen=True):
    """PINGREQ."""


class PingResp(_Packet, frozen=True):
    """PINGRESP."""


class Disconnect(_Packet, frozen=True):
    """DISCONNECT; a server may send it in version 5 only."""

    reason: int = Reason.SUCCESS
    properties: Properties = NONE


class Auth(_Packet, frozen=True):
    """AUTH, of version 5."""

    reason: int = Reason.SUCCESS
    properties: Properties = NONE


Packet = (
    Connect
    | ConnAck
    | Publish
    | PubAck
    | PubRec
    | PubRel
    | PubComp
    | Subscribe
    | SubAck
    | Unsubscribe
    | UnsubAck
    | PingReq
    | PingResp
    | Disconnect
    | Auth
)
