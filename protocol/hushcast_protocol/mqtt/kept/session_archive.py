"""What a broker keeps on disk, as records: sessions, subscriptions, messages, retained ones.

A message's body is one record, however many sessions wait for it; records that need it name it, and it goes
with the last of them. Sessions that end with their connection leave nothing here.
"""

from __future__ import annotations

from collections.abc import Iterable

from hushcast_protocol.base.record_kinds import RecordKind
from hushcast_protocol.base.shares import User
from hushcast_protocol.mqtt.kept.ledger import Ledger
from hushcast_protocol.mqtt.kept.mqtt_records import (
    DELAYED,
    HISTORY,
    INCOMING,
    MESSAGE,
    PENDING,
    QUEUED,
    RETAINED,
    SESSION,
    SUBSCRIPTION,
    WILL,
    DelayedRecord,
    HistoryRecord,
    MessageRecord,
    QueuedRecord,
    RetainedRecord,
    SessionRecord,
    SubscriptionRecord,
    WillRecord,
    encode,
    key_of,
)
from hushcast_protocol.mqtt.mqtt_messages import MqttMessage
from hushcast_protocol.mqtt.mqtt_session import GrantedSubscription, MqttSession, PendingMessage
from hushcast_protocol.mqtt.wire.packets import RequestedSubscription


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
            self.ledger.put(SESSION, key_of(session.number), encode(record))

    def _will(self, session: MqttSession) -> None:
        if session.will is not None:
            record = WillRecord(session.user, session.client_id, session.will)
            self.ledger.put(WILL, key_of(session.number), encode(record))
            session.has_will_record = True
        elif session.has_will_record:
            self.ledger.delete(WILL, key_of(session.number))
            session.has_will_record = False

    def ended(self, session: MqttSession) -> None:
        """Delete a session and all that is its own; nothing of it is written from now on."""
        if not session.is_durable:
            return
        self.ledger.delete(SESSION, key_of(session.number))
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
            self.ledger.put(SUBSCRIPTION, key_of(session.number) + wanted.encode(), encode(record))

    def unsubscribed(self, session: MqttSession, wanted: str) -> None:
        """Delete a subscription."""
        if session.is_durable:
            self.ledger.delete(SUBSCRIPTION, key_of(session.number) + wanted.encode())

    def incoming(self, session: MqttSession, packet_id: int) -> None:
        """Write that a message of QoS 2 was taken."""
        if session.is_durable:
            self.ledger.put(INCOMING, key_of(session.number) + packet_id.to_bytes(2, "big"), b"")

    def released(self, session: MqttSession, packet_id: int) -> None:
        """Write that its exchange is over."""
        if session.is_durable:
            self.ledger.delete(INCOMING, key_of(session.number) + packet_id.to_bytes(2, "big"))

    def handing_over(self, session: MqttSession, packet_id: int, token: bytes) -> None:
        """Write by which token the network knows a message of QoS 2, before it is asked to take it."""
        if session.is_durable:
            self.ledger.put(PENDING, key_of(session.number) + packet_id.to_bytes(2, "big"), token)

    def handed_over(self, session: MqttSession, packet_id: int) -> None:
        """Write that it has answered."""
        if session.is_durable:
            self.ledger.delete(PENDING, key_of(session.number) + packet_id.to_bytes(2, "big"))

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
        self.ledger.put(QUEUED, key_of(session.number) + key_of(entry.order), encode(record))

    def done(self, session: MqttSession, entry: PendingMessage) -> None:
        """Delete a message of a session."""
        if session.is_durable:
            self.ledger.delete(QUEUED, key_of(session.number) + key_of(entry.order))
            if entry.message is not None:
                self._drop(entry.message)

    def let_go(self, session: MqttSession, entry: PendingMessage) -> None:
        """Forget the body of a message that its client has; the entry's record is written next."""
        if session.is_durable and entry.message is not None:
            self._drop(entry.message)

    def retained(self, message: MqttMessage, user: User) -> None:
        """Write a message that is retained for its topic, in a user's share."""
        self._keep(message)
        self.ledger.put(RETAINED, message.topic.encode(), encode(RetainedRecord(message.number, user)))

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
        self.ledger.put(DELAYED, key_of(key), encode(record))

    def undelayed(self, key: int, message: MqttMessage) -> None:
        """Delete one that waits no longer."""
        self.ledger.delete(DELAYED, key_of(key))
        self._drop(message)

    def kept(self, order: int, message: MqttMessage, user: User, time: int) -> None:
        """Write a message of a history, in a user's share; `time` is a Unix time."""
        self._keep(message)
        self.ledger.put(HISTORY, key_of(order), encode(HistoryRecord(message.number, time, user)))

    def unkept(self, order: int, message: MqttMessage) -> None:
        """Delete a message of a history."""
        self.ledger.delete(HISTORY, key_of(order))
        self._drop(message)

    def delete_message(self, number: int) -> None:
        """Delete a body that nothing needs."""
        self.ledger.delete(MESSAGE, key_of(number))

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
            self.ledger.put(MESSAGE, key_of(message.number), encode(record))
        message.records += 1

    def _drop(self, message: MqttMessage) -> None:
        message.records -= 1
        if not message.records:
            self.ledger.delete(MESSAGE, key_of(message.number))
            message.number = 0
