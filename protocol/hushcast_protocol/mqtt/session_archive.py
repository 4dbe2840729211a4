"""What a broker keeps on disk, as records: sessions, subscriptions, messages, retained ones.

A message's body is one record, however many sessions wait for it; records that need it name it, and it goes
with the last of them. Sessions that end with their connection leave nothing here.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated, TypeVar

import msgspec

from hushcast_protocol.base.errors import HushcastError
from hushcast_protocol.base.record_kinds import RecordKind, StateOwner
from hushcast_protocol.base.shares import User
from hushcast_protocol.mqtt.ledger import Ledger
from hushcast_protocol.mqtt.limits import (
    DAY,
    MAX_CONNECTIONS,
    MAX_FILTERS_A_USER,
    MAX_HELD_BYTES,
    MAX_INCOMING,
    MAX_QUEUE,
    MAX_RETAINED,
    MAX_RETAINED_BYTES,
    MAX_SESSION_SECONDS,
    MAX_SESSIONS,
)
from hushcast_protocol.mqtt.mqtt_messages import MqttMessage
from hushcast_protocol.mqtt.mqtt_session import (
    DeliveryState,
    GrantedSubscription,
    MqttSession,
    PendingMessage,
)
from hushcast_protocol.mqtt.packets import Properties, RequestedSubscription, Will

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
    lifetime="until none of `mqtt-queued` or `mqtt-retained` names it",
    bound=f"{MAX_HELD_BYTES // 2**20} MiB that wait, {MAX_RETAINED_BYTES // 2**20} MiB retained, unless set",
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


_encode = msgspec.msgpack.Encoder().encode


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


def _key(number: int) -> bytes:
    return number.to_bytes(8, "big")


class SessionArchive:
    """Writes into the ledger what durable sessions and retained messages are."""

    def __init__(self, ledger: Ledger) -> None:
        self.ledger = ledger
        self._last_number = 0

    def new_number(self) -> int:
        """Return a number that no session or message has or had."""
        self._last_number += 1
        return self._last_number

    def used(self, number: int) -> None:
        """Note a number that a record has."""
        self._last_number = max(self._last_number, number)

    def session(self, session: MqttSession) -> None:
        """Write a session itself, or of one that ends with its connection the will."""
        if not session.is_durable:
            self._will(session)
        else:
            record = SessionRecord(
                session.user,
                session.client_id,
                session.expiry,
                session.ends,
                session.will,
                session.will_due,
            )
            self.ledger.put(SESSION, _key(session.number), _encode(record))

    def _will(self, session: MqttSession) -> None:
        if session.will is not None:
            record = WillRecord(session.user, session.client_id, session.will)
            self.ledger.put(WILL, _key(session.number), _encode(record))
            session.has_will_record = True
        elif session.has_will_record:
            self.ledger.delete(WILL, _key(session.number))
            session.has_will_record = False

    def ended(self, session: MqttSession) -> None:
        """Delete a session and all that is its own; nothing of it is written from now on."""
        if not session.is_durable:
            return
        self.ledger.delete(SESSION, _key(session.number))
        for wanted in session.filters:
            self.unsubscribed(session, wanted)
        for packet_id in session.incoming:
            self.released(session, packet_id)
        for packet_id in session.tokens:
            self.handed_over(session, packet_id)
        for entry in [*session.inflight.values(), *session.queue]:
            self.done(session, entry)
        session.is_durable = False

    def subscribed(
        self, session: MqttSession, wanted: str, asked: RequestedSubscription, granted: GrantedSubscription
    ) -> None:
        """Write a subscription, by its filter as the client wrote it."""
        if session.is_durable:
            record = SubscriptionRecord(
                granted.share, asked, granted.qos, granted.identifier, granted.purpose
            )
            self.ledger.put(SUBSCRIPTION, _key(session.number) + wanted.encode(), _encode(record))

    def unsubscribed(self, session: MqttSession, wanted: str) -> None:
        """Delete a subscription."""
        if session.is_durable:
            self.ledger.delete(SUBSCRIPTION, _key(session.number) + wanted.encode())

    def incoming(self, session: MqttSession, packet_id: int) -> None:
        """Write that a message of QoS 2 was taken."""
        if session.is_durable:
            self.ledger.put(INCOMING, _key(session.number) + packet_id.to_bytes(2, "big"), b"")

    def released(self, session: MqttSession, packet_id: int) -> None:
        """Write that its exchange is over."""
        if session.is_durable:
            self.ledger.delete(INCOMING, _key(session.number) + packet_id.to_bytes(2, "big"))

    def handing_over(self, session: MqttSession, packet_id: int, token: bytes) -> None:
        """Write by which token the network knows a message of QoS 2, before it is asked to take it."""
        if session.is_durable:
            self.ledger.put(PENDING, _key(session.number) + packet_id.to_bytes(2, "big"), token)

    def handed_over(self, session: MqttSession, packet_id: int) -> None:
        """Write that it has answered."""
        if session.is_durable:
            self.ledger.delete(PENDING, _key(session.number) + packet_id.to_bytes(2, "big"))

    def queued(self, session: MqttSession, entry: PendingMessage, is_new: bool) -> None:
        """Write a message for a session as it stands; one that was released needs no body any more."""
        if not session.is_durable:
            return
        message = entry.message
        number = 0
        if message is not None:
            if is_new:
                self._keep(message)
            number = message.number
        record = QueuedRecord(
            number, entry.qos, entry.retain, entry.ids, entry.share, entry.packet_id, entry.state
        )
        self.ledger.put(QUEUED, _key(session.number) + _key(entry.order), _encode(record))

    def done(self, session: MqttSession, entry: PendingMessage) -> None:
        """Delete a message of a session."""
        if session.is_durable:
            self.ledger.delete(QUEUED, _key(session.number) + _key(entry.order))
            if entry.message is not None:
                self._drop(entry.message)

    def let_go(self, session: MqttSession, entry: PendingMessage) -> None:
        """Forget the body of a message that its client has; the entry's record is written next."""
        if session.is_durable and entry.message is not None:
            self._drop(entry.message)

    def retained(self, message: MqttMessage, user: User) -> None:
        """Write a message that is retained for its topic, in a user's share."""
        self._keep(message)
        self.ledger.put(RETAINED, message.topic.encode(), _encode(RetainedRecord(message.number, user)))

    def replaced(self, message: MqttMessage) -> None:
        """Forget the body of one that another replaces in the same change."""
        self._drop(message)

    def unretained(self, message: MqttMessage) -> None:
        """Delete a retained message."""
        self.ledger.delete(RETAINED, message.topic.encode())
        self._drop(message)

    def delayed(self, key: int, message: MqttMessage, sender: MqttSession, due: float, token: bytes) -> None:
        """Write a message that waits to be published."""
        self._keep(message)
        record = DelayedRecord(message.number, due, sender.user, sender.client_id, token)
        self.ledger.put(DELAYED, _key(key), _encode(record))

    def undelayed(self, key: int, message: MqttMessage) -> None:
        """Delete one that waits no longer."""
        self.ledger.delete(DELAYED, _key(key))
        self._drop(message)

    def delete_message(self, number: int) -> None:
        """Delete a body that nothing needs."""
        self.ledger.delete(MESSAGE, _key(number))

    def delete_left(self, left: Iterable[tuple[RecordKind, bytes]]) -> None:
        """Delete records of sessions and messages that are no more, by kind and key."""
        for kind, key in left:
            self.ledger.delete(kind, key)

    def _keep(self, message: MqttMessage) -> None:
        if not message.records:
            message.number = self.new_number()
            record = MessageRecord(
                message.topic,
                message.payload,
                message.qos,
                message.retain,
                message.properties,
                message.expires,
            )
            self.ledger.put(MESSAGE, _key(message.number), _encode(record))
        message.records += 1

    def _drop(self, message: MqttMessage) -> None:
        message.records -= 1
        if not message.records:
            self.ledger.delete(MESSAGE, _key(message.number))
            message.number = 0
