"""What an earlier run of a broker left on disk, read back."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from hushcast_protocol.base.record_kinds import RecordKind
from hushcast_protocol.base.shares import User
from hushcast_protocol.mqtt.delivery import MessageDelivery
from hushcast_protocol.mqtt.kept import mqtt_records as kinds
from hushcast_protocol.mqtt.kept.delayed_messages import DelayedMessage, DelayedMessages
from hushcast_protocol.mqtt.kept.message_history import KeptMessage
from hushcast_protocol.mqtt.kept.mqtt_records import (
    DamagedRecord,
    DelayedRecord,
    HistoryRecord,
    MessageRecord,
    QueuedRecord,
    RetainedRecord,
    SessionRecord,
    SubscriptionRecord,
    WillRecord,
    decode,
    number_of,
)
from hushcast_protocol.mqtt.kept.retained_messages import RetainedMessages
from hushcast_protocol.mqtt.kept.session_archive import SessionArchive
from hushcast_protocol.mqtt.limits import PIECE
from hushcast_protocol.mqtt.mqtt_messages import MqttMessage
from hushcast_protocol.mqtt.mqtt_session import (
    DeliveryState,
    GrantedSubscription,
    MqttSession,
    PendingMessage,
)
from hushcast_protocol.mqtt.topics.permissions import PermissionsOf
from hushcast_protocol.mqtt.topics.topic_filters import is_filter, is_name


class RestoredState:
    """Sessions and messages from records; feed it all of them, then give it to a broker.

    Records that lead nowhere, as a damaged disk has them, are deleted: their numbers are given to others.
    Messages without a way stay on disk and are handed out to nobody: their other names, by which they may be
    denied or reserved, are not known any more.
    """

    def __init__(
        self, permissions_of: PermissionsOf, has_way: Callable[[str], bool] = lambda topic: True
    ) -> None:
        """`permissions_of` tells what the owners of sessions may do now.

        `has_way` tells whether a topic is this broker's own, or travels as the network is configured now.
        """
        self._permissions_of = permissions_of
        self._has_way = has_way
        self._without_way: set[int] = set()
        self._unsent: list[
            tuple[MqttSession, PendingMessage]
        ] = []  # of these, those that an earlier run had sent
        self._sessions: dict[int, MqttSession] = {}
        self._messages: dict[int, MqttMessage] = {}
        self._retained: list[tuple[MqttMessage, User]] = []
        self._last_delayed = 0  # its number
        self._delayed: list[DelayedMessage] = []
        self._kept: list[KeptMessage] = []
        self._left: list[tuple[RecordKind, bytes]] = []  # of sessions and messages that are no more

    @property
    def sessions(self) -> list[MqttSession]:
        """The sessions, whose clients are all away."""
        return list(self._sessions.values())

    @property
    def kept_back(self) -> int:
        """Messages that stay on disk until their topics have a way again."""
        return sum(self._messages[number].records > 0 for number in self._without_way)

    def feed(self, kind: RecordKind, key: bytes, value: bytes) -> None:
        """Take a record; the kinds come in the order of `session_archive.KINDS`; raises `DamagedRecord`."""
        _TAKE[kind](self, key, value)

    def into(
        self,
        archive: SessionArchive,
        retained: RetainedMessages,
        delivery: MessageDelivery,
        delayed: DelayedMessages,
    ) -> Iterator[None]:
        """Give numbers and messages to where they belong, piece by piece."""
        last_kept = max((one.order for one in self._kept), default=0)
        last_message = max(self._messages, default=0)
        archive.used(max((*self._sessions, last_message, self._last_delayed, last_kept)))
        yield
        for count, (message, user) in enumerate(self._retained, 1):
            retained.put(message, user)
            if count % PIECE == 0:
                yield
        for count, one in enumerate(self._delayed, 1):
            delayed.restored(one)
            if count % PIECE == 0:
                yield
        for count, kept in enumerate(self._kept, 1):
            delivery.history.restored(kept)
            if count % PIECE == 0:
                yield
        for session in self.sessions:
            delivery.queues.restored(session)
            yield
        for count, (number, message) in enumerate(self._messages.items(), 1):
            if not message.records:
                archive.delete_message(number)
            if count % PIECE == 0:
                yield
        for session, entry in self._unsent:
            archive.queued(session, entry, False)
        archive.delete_left(self._left)

    def _session(self, key: bytes, value: bytes) -> None:
        record = decode(SessionRecord, value)
        permissions = self._permissions_of(record.user, record.client_id)
        session = MqttSession(permissions, record.client_id, number_of(key), record.expiry)
        session.ends, session.will, session.will_due = record.ends, record.will, record.will_due
        self._sessions[session.number] = session

    def _will(self, key: bytes, value: bytes) -> None:
        record = decode(WillRecord, value)
        if number_of(key) in self._sessions:
            self._left.append((kinds.WILL, key))
            return
        permissions = self._permissions_of(record.user, record.client_id)
        session = MqttSession(permissions, record.client_id, number_of(key), 0)
        session.will, session.has_will_record = record.will, True
        self._sessions[session.number] = session

    def _subscription(self, key: bytes, value: bytes) -> None:
        record = decode(SubscriptionRecord, value)
        session = self._sessions.get(number_of(key))
        if session is None:
            self._left.append((kinds.SUBSCRIPTION, key))
            return
        wanted = key[8:].decode()
        inside = wanted.split("/", 2)[2] if record.share else wanted
        if not is_filter(inside):
            raise DamagedRecord("a filter of the gateway is none")
        session.filters[wanted] = GrantedSubscription(
            inside, record.share, record.asked, record.qos, record.identifier, record.purpose
        )

    def _message(self, key: bytes, value: bytes) -> None:
        record = decode(MessageRecord, value)
        if not is_name(record.topic):
            raise DamagedRecord("a topic of the gateway is none")
        message = MqttMessage(
            record.topic, record.payload, record.qos, record.retain, record.properties, record.expires
        )
        message.number = number_of(key)
        self._messages[message.number] = message
        if not self._has_way(message.topic):
            self._without_way.add(message.number)

    def _queued(self, key: bytes, value: bytes) -> None:
        record = decode(QueuedRecord, value)
        session = self._sessions.get(number_of(key))
        message = self._messages.get(record.number)
        if session is None or (message is None and record.state is not DeliveryState.RELEASED):
            self._left.append((kinds.QUEUED, key))
            return
        order = number_of(key[8:])
        entry = PendingMessage(message, record.qos, record.retain, tuple(record.ids), record.share, order)
        if message is not None:
            message.records += 1
            if message.number in self._without_way:
                session.next_order = order + 1
                if record.state is not DeliveryState.WAITING:  # its packet identifier is given to others
                    self._unsent.append((session, entry))
                return
        entry.packet_id, entry.state = record.packet_id, record.state
        session.restored(entry)

    def _incoming(self, key: bytes, value: bytes) -> None:
        session = self._sessions.get(number_of(_of_packet(key)))
        if session is not None:
            session.incoming.add(int.from_bytes(key[8:], "big"))
        else:
            self._left.append((kinds.INCOMING, key))

    def _pending(self, key: bytes, value: bytes) -> None:
        session = self._sessions.get(number_of(_of_packet(key)))
        if session is not None:
            session.tokens[int.from_bytes(key[8:], "big")] = value
        else:
            self._left.append((kinds.PENDING, key))

    def _retain(self, key: bytes, value: bytes) -> None:
        record = decode(RetainedRecord, value)
        message = self._messages.get(record.number)
        if message is not None and message.topic.encode() != key:
            raise DamagedRecord("a message of the gateway is retained for another topic")
        if message is None:
            self._left.append((kinds.RETAINED, key))
            return
        message.records += 1
        if message.number not in self._without_way:
            self._retained.append((message, record.user))

    def _delay(self, key: bytes, value: bytes) -> None:
        record, number = decode(DelayedRecord, value), number_of(key)
        self._last_delayed = max(self._last_delayed, number)
        message = self._messages.get(record.number)
        if message is None:
            self._left.append((kinds.DELAYED, key))
            return
        message.records += 1
        if message.number not in self._without_way:
            permissions = self._permissions_of(record.user, record.client_id)
            sender = MqttSession(permissions, record.client_id, 0, 0)
            self._delayed.append(DelayedMessage(message, sender, record.due, number, record.token))

    def _history(self, key: bytes, value: bytes) -> None:
        record = decode(HistoryRecord, value)
        message = self._messages.get(record.number)
        if message is None:
            self._left.append((kinds.HISTORY, key))
            return
        message.records += 1
        if message.number not in self._without_way:
            self._kept.append(KeptMessage(message, number_of(key), record.time, record.user))


def _of_packet(key: bytes) -> bytes:
    if len(key) != 10:
        raise DamagedRecord("a packet identifier of the gateway is none")
    return key


_TAKE = {
    kinds.SESSION: RestoredState._session,
    kinds.WILL: RestoredState._will,
    kinds.SUBSCRIPTION: RestoredState._subscription,
    kinds.MESSAGE: RestoredState._message,
    kinds.QUEUED: RestoredState._queued,
    kinds.INCOMING: RestoredState._incoming,
    kinds.PENDING: RestoredState._pending,
    kinds.RETAINED: RestoredState._retain,
    kinds.DELAYED: RestoredState._delay,
    kinds.HISTORY: RestoredState._history,
}
