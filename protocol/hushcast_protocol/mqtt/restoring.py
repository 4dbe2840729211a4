"""What an earlier run of a broker left on disk, read back."""

from __future__ import annotations

from hushcast_protocol.mqtt import archive as kinds
from hushcast_protocol.mqtt.archive import (
    Archive,
    DamagedRecord,
    MessageRecord,
    QueuedRecord,
    RetainedRecord,
    SessionRecord,
    SubscriptionRecord,
    decode,
    number_of,
)
from hushcast_protocol.mqtt.delivery import Delivery
from hushcast_protocol.mqtt.messages import Message
from hushcast_protocol.mqtt.retained import Retained
from hushcast_protocol.mqtt.session import Entry, Granted, Session, State
from hushcast_protocol.mqtt.topics import is_filter, is_name


class Restored:
    """Sessions and messages from records; feed it all of them, then give it to a broker.

    Records that lead nowhere, as a damaged disk has them, are left out.
    """

    def __init__(self) -> None:
        self._sessions: dict[int, Session] = {}
        self._messages: dict[int, Message] = {}
        self._retained: list[Message] = []
        self._left: list[bytes] = []  # keys of packet identifiers of sessions that are no more

    @property
    def sessions(self) -> list[Session]:
        """The sessions, whose clients are all away."""
        return list(self._sessions.values())

    def feed(self, kind: str, key: bytes, value: bytes) -> None:
        """Take a record; the kinds come in the order of `archive.KINDS`; raises `DamagedRecord`."""
        _TAKE[kind](self, key, value)

    def into(self, archive: Archive, retained: Retained, delivery: Delivery) -> None:
        """Give numbers and messages to where they belong."""
        for number in (*self._sessions, *self._messages):
            archive.used(number)
        for message in self._retained:
            retained.put(message)
        for session in self.sessions:
            delivery.restored(session)
        archive.delete_messages(n for n, message in self._messages.items() if not message.records)
        archive.delete_incoming(self._left)

    def _session(self, key: bytes, value: bytes) -> None:
        record = decode(SessionRecord, value)
        session = Session(record.user, record.client_id, number_of(key), record.expiry)
        session.ends, session.will, session.will_due = record.ends, record.will, record.will_due
        self._sessions[session.number] = session

    def _subscription(self, key: bytes, value: bytes) -> None:
        record = decode(SubscriptionRecord, value)
        session = self._sessions.get(number_of(key))
        if session is not None:
            wanted = key[8:].decode()
            inside = wanted.split("/", 2)[2] if record.share else wanted
            if not is_filter(inside):
                raise DamagedRecord("a filter of the gateway is none")
            session.filters[wanted] = Granted(
                inside, record.share, record.asked, record.qos, record.identifier, record.purpose
            )

    def _message(self, key: bytes, value: bytes) -> None:
        record = decode(MessageRecord, value)
        if not is_name(record.topic):
            raise DamagedRecord("a topic of the gateway is none")
        message = Message(
            record.topic, record.payload, record.qos, record.retain, record.properties, record.expires
        )
        message.number = number_of(key)
        self._messages[message.number] = message

    def _queued(self, key: bytes, value: bytes) -> None:
        record = decode(QueuedRecord, value)
        session = self._sessions.get(number_of(key))
        message = self._messages.get(record.number)
        if session is None or (message is None and record.state is not State.RELEASED):
            return
        order = number_of(key[8:])
        entry = Entry(message, record.qos, record.retain, tuple(record.ids), record.share, order)
        entry.packet_id, entry.state = record.packet_id, record.state
        if message is not None:
            message.records += 1
        session.restored(entry)

    def _incoming(self, key: bytes, value: bytes) -> None:
        session = self._sessions.get(number_of(key))
        if len(key) != 10:
            raise DamagedRecord("a packet identifier of the gateway is none")
        if session is not None:
            session.incoming.add(int.from_bytes(key[8:], "big"))
        else:
            self._left.append(key)

    def _retain(self, key: bytes, value: bytes) -> None:
        message = self._messages.get(decode(RetainedRecord, value).number)
        if message is not None and message.topic.encode() != key:
            raise DamagedRecord("a message of the gateway is retained for another topic")
        if message is not None:
            message.records += 1
            self._retained.append(message)


_TAKE = {
    kinds.SESSION: Restored._session,
    kinds.SUBSCRIPTION: Restored._subscription,
    kinds.MESSAGE: Restored._message,
    kinds.QUEUED: Restored._queued,
    kinds.INCOMING: Restored._incoming,
    kinds.RETAINED: Restored._retain,
}
