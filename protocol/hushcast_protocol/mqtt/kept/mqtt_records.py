"""The records of which a broker's state on disk is made: their kinds, what each holds, and their keys."""

from __future__ import annotations

from typing import Annotated, TypeVar

import msgspec

from hushcast_protocol.base.errors import HushcastError
from hushcast_protocol.base.record_kinds import RecordKind, StateOwner
from hushcast_protocol.base.shares import User
from hushcast_protocol.mqtt.limits import (
    DAY,
    MAX_CONNECTIONS,
    MAX_DELAYED_BYTES,
    MAX_FILTERS_A_USER,
    MAX_HELD_BYTES,
    MAX_HISTORY,
    MAX_HISTORY_BYTES,
    MAX_INCOMING,
    MAX_QUEUE,
    MAX_RETAINED,
    MAX_RETAINED_BYTES,
    MAX_SESSION_SECONDS,
    MAX_SESSIONS,
)
from hushcast_protocol.mqtt.mqtt_session import DeliveryState
from hushcast_protocol.mqtt.wire.packets import Properties, RequestedSubscription, Will

SESSION = RecordKind(
    "mqtt-session",
    StateOwner.GATEWAY,
    holds="sessions that outlive their connection",
    lifetime=f"until they end, {MAX_SESSION_SECONDS // DAY} days after their client left at the latest",
    bound=f"{MAX_SESSIONS:,} unless set",
)
WILL = RecordKind(
    "mqtt-will",
    StateOwner.GATEWAY,
    holds="wills of clients whose sessions end with their connection",
    lifetime="as long as the connection; a start publishes those that are left",
    bound=f"{MAX_CONNECTIONS:,} unless set",
)
SUBSCRIPTION = RecordKind(
    "mqtt-subscription",
    StateOwner.GATEWAY,
    holds="subscriptions of these sessions",
    lifetime="as long as the session, or until unsubscribed",
    bound=f"{MAX_FILTERS_A_USER:,} of one user unless set",
)
MESSAGE = RecordKind(
    "mqtt-message",
    StateOwner.GATEWAY,
    holds="messages that wait, once",
    lifetime="until none of `mqtt-queued`, `mqtt-retained`, `mqtt-delayed` or `mqtt-history` names it",
    bound=f"{MAX_HELD_BYTES // 2**20} MiB that wait, {MAX_RETAINED_BYTES // 2**20} MiB retained, "
    f"{MAX_DELAYED_BYTES // 2**20} MiB delayed, {MAX_HISTORY_BYTES // 2**20} MiB of histories, unless set",
)
QUEUED = RecordKind(
    "mqtt-queued",
    StateOwner.GATEWAY,
    holds="which session a message waits for, and how far its delivery is",
    lifetime="until delivered, expired or over the bound",
    bound=f"{MAX_QUEUE:,} of one session unless set",
)
INCOMING = RecordKind(
    "mqtt-incoming",
    StateOwner.GATEWAY,
    holds="packets of QoS 2 whose exchange is open",
    lifetime="until released",
    bound=f"{MAX_INCOMING:,} of one client",
)
PENDING = RecordKind(
    "mqtt-pending",
    StateOwner.GATEWAY,
    holds="tokens of packets of QoS 2 that the daemon is still to take",
    lifetime="until it has taken them",
    bound=f"{MAX_INCOMING:,} of one client with the open ones",
)
RETAINED = RecordKind(
    "mqtt-retained",
    StateOwner.GATEWAY,
    holds="which message a topic retains",
    lifetime="until replaced, cleared or expired",
    bound=f"{MAX_RETAINED:,} unless set",
)
DELAYED = RecordKind(
    "mqtt-delayed",
    StateOwner.GATEWAY,
    holds="which message is published when, by which user and client",
    lifetime="until then; of what travels, until the daemon has it",
    bound="`limits.delayed`: none unless set",
)
HISTORY = RecordKind(
    "mqtt-history",
    StateOwner.GATEWAY,
    holds="which messages the topics with a history have had, and when",
    lifetime="as long as `history.hours` says, or until over the bound",
    bound=f"{MAX_HISTORY:,} unless set",
)
KINDS = (
    SESSION,
    WILL,
    SUBSCRIPTION,
    MESSAGE,
    QUEUED,
    INCOMING,
    PENDING,
    RETAINED,
    DELAYED,
    HISTORY,
)  # in the order in which they are read back

T = TypeVar("T")

_ABOVE = 2**48  # of numbers, which begin with 1 and grow by 1


PacketId = Annotated[int, msgspec.Meta(ge=0, le=65_535)]
"""0: none yet."""
QoS = Annotated[int, msgspec.Meta(ge=0, le=2)]


class DamagedRecord(HushcastError):
    """A record cannot be read."""


class _Record(msgspec.Struct, frozen=True, array_like=True):
    pass


class SessionRecord(_Record, frozen=True):
    """Of the session with the key's number; `ends` and `will_due` are Unix times while its client is away."""

    user: str
    client_id: str
    expiry: int
    ends: float | None
    will: Will | None
    will_due: float | None


class WillRecord(_Record, frozen=True):
    """Of a session that ends with its connection; the key is its number."""

    user: str
    client_id: str
    will: Will


class SubscriptionRecord(_Record, frozen=True):
    """Of the session with the number that the key begins with, and the filter that follows it."""

    share: str
    asked: RequestedSubscription
    qos: QoS
    identifier: int
    purpose: str = ""


class MessageRecord(_Record, frozen=True):
    """A body; the key is its number."""

    topic: str
    payload: bytes
    qos: QoS
    retain: bool
    properties: Properties
    expires: float | None


class QueuedRecord(_Record, frozen=True):
    """A message for a session; the key is the session's number and the order among its messages."""

    number: int
    qos: QoS
    retain: bool
    ids: tuple[int, ...]
    share: str
    packet_id: PacketId
    state: DeliveryState


class RetainedRecord(_Record, frozen=True):
    """The message retained for the topic that is the key, and whose share it is part of."""

    number: int
    user: User = None


class DelayedRecord(_Record, frozen=True):
    """A message that waits to be published; the key is its own number, `number` its body's."""

    number: int
    due: float
    user: str
    client_id: str
    token: bytes


class HistoryRecord(_Record, frozen=True):
    """A message that is kept, when it came, and whose share it is part of; the key is its order."""

    number: int
    time: int
    user: User = None


encode = msgspec.msgpack.Encoder().encode
"""Write a record."""


def decode(kind: type[T], data: bytes) -> T:
    """Read a record; raises `DamagedRecord`."""
    try:
        return msgspec.msgpack.decode(data, type=kind)
    except (msgspec.MsgspecError, ValueError, RecursionError):
        raise DamagedRecord("a record of the gateway is damaged") from None


def number_of(key: bytes) -> int:
    """Read the number that a key begins with; raises `DamagedRecord`."""
    number = int.from_bytes(key[:8], "big")
    if len(key) < 8 or number >= _ABOVE:
        raise DamagedRecord("a record of the gateway has the key of none")
    return number


def key_of(number: int) -> bytes:
    """Write the key of a number."""
    return number.to_bytes(8, "big")
