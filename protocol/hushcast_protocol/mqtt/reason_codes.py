"""Reason codes of MQTT 5 (section 2.4), and the return codes of 3.1.1's CONNACK (section 3.2.2.3)."""

from __future__ import annotations

from enum import IntEnum

from hushcast_protocol.base.errors import HushcastError


class Reason(IntEnum):
    """Why a packet ends as it does; 0x80 and above are failures."""

    SUCCESS = 0x00
    GRANTED_QOS_1 = 0x01
    GRANTED_QOS_2 = 0x02
    DISCONNECT_WITH_WILL = 0x04
    NO_SUBSCRIPTION_EXISTED = 0x11
    CONTINUE_AUTHENTICATION = 0x18
    REAUTHENTICATE = 0x19
    UNSPECIFIED_ERROR = 0x80
    MALFORMED_PACKET = 0x81
    PROTOCOL_ERROR = 0x82
    IMPLEMENTATION_SPECIFIC_ERROR = 0x83
    UNSUPPORTED_PROTOCOL_VERSION = 0x84
    CLIENT_IDENTIFIER_NOT_VALID = 0x85
    BAD_USER_NAME_OR_PASSWORD = 0x86
    NOT_AUTHORIZED = 0x87
    SERVER_UNAVAILABLE = 0x88
    SERVER_BUSY = 0x89
    BANNED = 0x8A
    SERVER_SHUTTING_DOWN = 0x8B
    BAD_AUTHENTICATION_METHOD = 0x8C
    KEEP_ALIVE_TIMEOUT = 0x8D
    SESSION_TAKEN_OVER = 0x8E
    TOPIC_FILTER_INVALID = 0x8F
    TOPIC_NAME_INVALID = 0x90
    PACKET_IDENTIFIER_IN_USE = 0x91
    PACKET_IDENTIFIER_NOT_FOUND = 0x92
    RECEIVE_MAXIMUM_EXCEEDED = 0x93
    TOPIC_ALIAS_INVALID = 0x94
    PACKET_TOO_LARGE = 0x95
    MESSAGE_RATE_TOO_HIGH = 0x96
    QUOTA_EXCEEDED = 0x97
    ADMINISTRATIVE_ACTION = 0x98
    PAYLOAD_FORMAT_INVALID = 0x99
    RETAIN_NOT_SUPPORTED = 0x9A
    QOS_NOT_SUPPORTED = 0x9B
    USE_ANOTHER_SERVER = 0x9C
    SERVER_MOVED = 0x9D
    SHARED_SUBSCRIPTIONS_NOT_SUPPORTED = 0x9E
    CONNECTION_RATE_EXCEEDED = 0x9F
    MAXIMUM_CONNECT_TIME = 0xA0
    SUBSCRIPTION_IDENTIFIERS_NOT_SUPPORTED = 0xA1
    WILDCARD_SUBSCRIPTIONS_NOT_SUPPORTED = 0xA2


FAILURE = Reason.UNSPECIFIED_ERROR
"""The first of them."""


class ConnectReturn(IntEnum):
    """Return codes of 3.1.1's CONNACK."""

    ACCEPTED = 0
    UNACCEPTABLE_PROTOCOL_VERSION = 1
    IDENTIFIER_REJECTED = 2
    SERVER_UNAVAILABLE = 3
    BAD_USER_NAME_OR_PASSWORD = 4
    NOT_AUTHORIZED = 5


SUBSCRIPTION_FAILED = 0x80
"""The one failure that 3.1.1's SUBACK knows."""


class PacketError(HushcastError):
    """A peer broke the protocol: the connection ends, in version 5 with this reason."""

    def __init__(
        self, reason: Reason, what: str = "", *, form: int | None = None, silent: bool = False
    ) -> None:
        """`what` says it to operators and developers; it holds nothing that a client sent.

        `form`: the version in whose form a CONNACK tells a refused CONNECT the reason; None where nothing
        is told.
        `silent`: the connection is closed without a DISCONNECT, most often since the peer ended it itself.
        """
        super().__init__(what or reason.name.lower().replace("_", " "))
        self.reason = reason
        self.form = form
        self.silent = silent
