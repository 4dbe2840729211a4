"""CONNECT and CONNACK: what a client asks for, and what it gets or why not (section 3.1 and 3.2)."""

from __future__ import annotations

from typing import NamedTuple

from hushcast_protocol.base.crypto.secrets import Randomness
from hushcast_protocol.mqtt.connections import Outlet
from hushcast_protocol.mqtt.limits import (
    MAX_CLIENT_ID,
    MAX_SESSION_SECONDS,
    RECEIVE_MAXIMUM,
    TOPIC_ALIASES_IN,
    TOPIC_ALIASES_OUT,
    MqttLimits,
)
from hushcast_protocol.mqtt.reason_codes import ConnectReturn, Reason
from hushcast_protocol.mqtt.wire.codec import encode
from hushcast_protocol.mqtt.wire.packets import V5, ConnAck, Connect, Properties

_RETURNS = {
    Reason.UNSUPPORTED_PROTOCOL_VERSION: ConnectReturn.UNACCEPTABLE_PROTOCOL_VERSION,
    Reason.CLIENT_IDENTIFIER_NOT_VALID: ConnectReturn.IDENTIFIER_REJECTED,
    Reason.BAD_USER_NAME_OR_PASSWORD: ConnectReturn.BAD_USER_NAME_OR_PASSWORD,
    Reason.NOT_AUTHORIZED: ConnectReturn.NOT_AUTHORIZED,
    Reason.BANNED: ConnectReturn.NOT_AUTHORIZED,
    Reason.BAD_AUTHENTICATION_METHOD: ConnectReturn.NOT_AUTHORIZED,
}
"""What 3.1.1 says for a reason; for all others that the server is unavailable."""


class Greeting(NamedTuple):
    """What a client asked for, as far as it is granted."""

    key: tuple[str, str]
    is_assigned: bool
    """Whether the client identifier is ours."""
    asked_expiry: int
    expiry: int
    window: int
    """Messages of QoS 1 and 2 that may be under way to it."""
    aliases: int
    """Topic aliases that we may set."""
    keep_alive: int
    """Seconds; 0 for none."""
    is_imposed: bool
    """Whether the keep alive is ours."""
    version: int

    def acknowledgement(self, is_present: bool, maximum_packet: int | None) -> ConnAck:
        """Return the CONNACK; in it is only what a client would not know otherwise."""
        if self.version != V5:
            return ConnAck(is_present)
        properties = Properties(topic_alias_maximum=TOPIC_ALIASES_IN)
        if maximum_packet is not None:
            properties["maximum_packet_size"] = maximum_packet
        properties["receive_maximum"] = RECEIVE_MAXIMUM
        if self.is_assigned:
            properties["assigned_client_identifier"] = self.key[1]
        if self.expiry != self.asked_expiry:
            properties["session_expiry_interval"] = self.expiry
        if self.is_imposed:
            properties["server_keep_alive"] = self.keep_alive
        return ConnAck(is_present, Reason.SUCCESS, properties)


def greet(packet: Connect, user: str, randomness: Randomness, limits: MqttLimits) -> Greeting | Reason:
    """Return what a client is granted, or why it is refused."""
    given, is_v5 = packet.properties, packet.version == V5
    if "authentication_method" in given:
        return Reason.BAD_AUTHENTICATION_METHOD
    client_id = packet.client_id
    if len(client_id.encode()) > MAX_CLIENT_ID or (not client_id and not is_v5 and not packet.clean):
        return Reason.CLIENT_IDENTIFIER_NOT_VALID
    if is_v5:
        asked = given.get("session_expiry_interval", 0)
        keep_alive = min(packet.keep_alive or limits.keep_alive, limits.keep_alive)
    else:
        asked = 0 if packet.clean else MAX_SESSION_SECONDS
        keep_alive = packet.keep_alive
    return Greeting(
        (user, client_id or randomness(16).hex()),
        not client_id,
        asked,
        min(asked, MAX_SESSION_SECONDS),
        min(given.get("receive_maximum", limits.inflight), limits.inflight),
        min(given.get("topic_alias_maximum", 0), TOPIC_ALIASES_OUT),
        keep_alive,
        keep_alive != packet.keep_alive,
        packet.version,
    )


def refusal(version: int, reason: int) -> bytes:
    """Return the CONNACK that refuses a client."""
    if version != V5:
        reason = _RETURNS.get(Reason(reason), ConnectReturn.SERVER_UNAVAILABLE)
    return encode(ConnAck(False, reason), version)


def refuse(outlet: Outlet, packet: Connect, reason: int) -> None:
    """Tell a client that it is refused, and why, if it takes that much, and close."""
    told = refusal(packet.version, reason)
    outlet.close(told if len(told) <= packet.properties.get("maximum_packet_size", len(told)) else b"")
