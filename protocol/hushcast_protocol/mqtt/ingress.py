"""What clients publish: taken, refused or handed to the network beyond, and acknowledged (section 4.3)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from functools import partial

import msgspec

from hushcast_protocol.base.crypto.secrets import Randomness
from hushcast_protocol.base.shares import User
from hushcast_protocol.mqtt.connections import HeldPacket, MqttConnection
from hushcast_protocol.mqtt.delivery import IsWithdrawn, MessageDelivery
from hushcast_protocol.mqtt.interfaces import OuterNetwork, UsageRules, has_way
from hushcast_protocol.mqtt.kept.delayed_messages import PREFIX, DelayedMessages, delay_of
from hushcast_protocol.mqtt.kept.retained_messages import RetainedMessages
from hushcast_protocol.mqtt.kept.session_archive import SessionArchive
from hushcast_protocol.mqtt.limits import MAX_INCOMING, MAX_TOPIC, RECEIVE_MAXIMUM
from hushcast_protocol.mqtt.mqtt_messages import MqttMessage, brought_by, may_be_published
from hushcast_protocol.mqtt.mqtt_session import MqttSession
from hushcast_protocol.mqtt.network_publication import NetworkPublication
from hushcast_protocol.mqtt.reason_codes import FAILURE, PacketError, Reason
from hushcast_protocol.mqtt.refusals import RefusalCause
from hushcast_protocol.mqtt.topics.permissions import AddedProperty
from hushcast_protocol.mqtt.topics.topic_filters import matches, normal
from hushcast_protocol.mqtt.topics.topic_names import NamedTopic
from hushcast_protocol.mqtt.wire.codec import encode, encode_puback
from hushcast_protocol.mqtt.wire.packets import (
    V5,
    V311,
    Properties,
    PubAck,
    PubComp,
    Publish,
    PubRec,
    PubRel,
)


class Ingress:
    """Messages on their way from a client to all others."""

    def __init__(
        self,
        delivery: MessageDelivery,
        retained: RetainedMessages,
        archive: SessionArchive,
        delayed: DelayedMessages,
        randomness: Randomness,
        beyond: OuterNetwork,
        rules: UsageRules | None = None,
    ) -> None:
        self._randomness = randomness
        self._delivery = delivery
        self._retained = retained
        self._archive = archive
        self._delayed = delayed
        self._ledger = archive.ledger
        self._beyond = beyond
        self._rules = rules

    def publish(self, link: MqttConnection, packet: Publish, now: float) -> None:
        """Take a PUBLISH; raises `PacketError`."""
        self._delivery.counts["messages_received"] += 1
        is_plain = not (packet.qos or packet.retain or packet.properties or link.added)
        if is_plain and len(packet.topic) <= MAX_TOPIC and self._delivery.pass_on(link, packet):
            return
        topic = packet.topic if packet.topic and not packet.properties else link.topic_of(packet)
        qos = packet.qos
        if (qos == 2 or (qos and link.version == V5)) and not self._begin(link, packet):
            return
        before = self._ledger.made
        is_here = self._delivery.is_known(topic)
        is_command = not is_here and self._is_command(topic)
        # Before anybody looks at the names of a topic, and remembers them.
        is_valid = is_here or is_command or may_be_published(topic)
        reason: int = Reason.SUCCESS if is_valid else Reason.TOPIC_NAME_INVALID
        if not is_valid and self._delayed.is_on and topic.startswith(PREFIX):
            reason = self._delay(link, packet, topic, now)
            if qos:
                self._acknowledge(link, qos, packet.packet_id, reason, before)
            return
        if not reason:
            if link.added is not None and not is_command:
                packet = _with(packet, self._beyond.names(topic), link.added)
            told = self._for_rules(link, packet, topic) if packet.properties or is_command else None
            if told is not None:
                if packet.qos:
                    self._acknowledge(link, packet.qos, packet.packet_id, told, before)
                return
            reason = self._refusal(link, packet, topic)
        if reason:
            self._refused(link, topic, reason, now)
        elif not is_here and self._beyond.takes(topic):
            self._hand_over(link, packet, topic, now)
            return
        else:
            give = self.spread if is_command else self._give
            give(brought_by(packet, topic, now), link.session, now)
        if qos:
            self._acknowledge(link, qos, packet.packet_id, reason, before)

    def _delay(self, link: MqttConnection, packet: Publish, topic: str, now: float) -> int:
        """Let a message wait until it is to be published, and return the reason of the answer."""
        meant, full = delay_of(topic), RefusalCause.NOT_RETAINED
        reason: int = Reason.TOPIC_NAME_INVALID
        if meant is not None and may_be_published(meant[1]) and has_way(self._beyond, meant[1]):
            reason = self._refusal(link, packet, meant[1])
        if not reason and meant is not None:
            due = now + meant[0]
            message = brought_by(packet, meant[1], due)  # what it expires by is counted from then
            if self._delayed.has_room_for(message, link.session.user):
                sender = MqttSession(link.permissions, link.session.client_id, 0, 0)
                self._delayed.put(message, sender, due, self._randomness(16))
            else:
                reason, full = Reason.QUOTA_EXCEEDED, RefusalCause.NOT_DELAYED
        if reason:
            self._refused(link, topic, reason, now, full)
        return reason

    def _refused(
        self,
        link: MqttConnection,
        topic: str,
        reason: int,
        now: float,
        full: RefusalCause = RefusalCause.NOT_RETAINED,
    ) -> None:
        if reason == Reason.QUOTA_EXCEEDED:
            cause = full
        else:
            cause = RefusalCause.NOT_PUBLISHED
            self._delivery.counts["dropped_forbidden"] += 1
        self._delivery.refusals.note(cause, now, link.session.user, link.session.client_id, topic)

    def spread(self, message: MqttMessage, sender: MqttSession | None, now: float) -> None:
        """Retain a message if it is to be, and give it to all subscribed, unless it is a command."""
        if self._is_command(message.topic):
            self._delivery.counts["dropped_forbidden"] += 1
        else:
            self._give(message, sender, now)

    def _give(self, message: MqttMessage, sender: MqttSession | None, now: float) -> None:
        if message.retain:
            self._retain(message, sender, now)
        self._delivery.to_all(message, sender, now)

    def originate(self, message: MqttMessage, sender: MqttSession | None, now: float) -> None:
        """Publish a message for which nobody waits, as a will, here or in the network beyond.

        It is no command: nobody is there who could be told that it is refused.
        """
        if not self._is_command(message.topic) and self._beyond.takes(message.topic):
            if self._rules is not None and sender is not None:
                message.properties = self._rules.owned(sender.user, message.topic, message.properties)
            publication = NetworkPublication(message, None if sender is None else sender.user)
            publication.is_will = True
            self._beyond.publish(publication)
            self.spread_names(message, sender, now)
        else:
            self.spread(message, sender, now)

    def withdraw(self, is_withdrawn: IsWithdrawn, found: Counter[str]) -> Iterator[None]:
        """Delete what is retained and withdrawn, piece by piece, and count it by topic."""
        for message in self._retained.walk():
            if message is None:
                yield
            elif is_withdrawn(message):
                self.unretain(message)
                found[message.topic] += 1

    def unretain(self, message: MqttMessage) -> None:
        """Delete a message that is retained."""
        self._retained.remove(message.topic)
        self._archive.unretained(message)

    def renew(self, message: MqttMessage, now: float) -> None:
        """Retain a message that came, or none where it has no payload, without giving it to anybody."""
        self._retain(message, None, now)

    def release(self, link: MqttConnection, packet: PubRel) -> None:
        """Take a PUBREL: its packet identifier may be used anew, once the disk knows."""
        session = link.session
        mark = 0
        if packet.packet_id in session.incoming:
            session.incoming.discard(packet.packet_id)
            self._archive.released(session, packet.packet_id)
            mark = self._ledger.made if session.is_durable else 0
        link.open_ids.discard(packet.packet_id)
        # An unknown identifier is no error after a lost PUBCOMP, which nobody can tell from other cases.
        link.send_in_order(PubComp(packet.packet_id), mark)

    def _is_command(self, topic: str) -> bool:
        return self._rules is not None and self._rules.is_command(topic)

    def _for_rules(self, link: MqttConnection, packet: Publish, topic: str) -> int | None:
        """Return the reason of a PUBLISH that was a command; `None` if it is a message."""
        if self._rules is None:
            return None
        told = self._rules.published(link.permissions, link.session.client_id, topic, packet)
        if told is not None:
            link.added = self._rules.added(link.permissions)
        return told

    def _begin(self, link: MqttConnection, packet: Publish) -> bool:
        """Return whether a message of QoS 1 or 2 is new; `PacketError` if the client has too many open."""
        session = link.session
        if packet.qos == 2:
            if packet.packet_id in session.pending:
                return False
            if packet.packet_id in session.incoming:
                link.open_ids.add(packet.packet_id)
                mark = self._ledger.made if session.is_durable else 0
                link.answer(encode(PubRec(packet.packet_id), link.version), False, mark)
                return False
            is_open = packet.packet_id in session.tokens  # it was, when the program ended
            if not is_open and len(session.incoming) + len(session.tokens) >= MAX_INCOMING:
                raise PacketError(Reason.QUOTA_EXCEEDED, "too many open exchanges of QoS 2")
        if link.version == V5 and link.owed + len(link.open_ids) >= RECEIVE_MAXIMUM:
            raise PacketError(Reason.RECEIVE_MAXIMUM_EXCEEDED)
        return True

    def _refusal(self, link: MqttConnection, packet: Publish, topic: str) -> int:
        if not link.permissions.may_publish(self._beyond.names(topic)):
            return Reason.NOT_AUTHORIZED
        if packet.retain and packet.qos and packet.payload:
            message, user = (
                MqttMessage(topic, packet.payload, properties=packet.properties),
                link.session.user,
            )
            names = self._beyond.topics(topic) if self._beyond.takes(topic) else (topic,)
            if not all(self._retained.has_room_for(message.under(name), user) for name in names):
                return Reason.QUOTA_EXCEEDED
        if packet.properties.get("payload_format_indicator") and not _is_text(packet.payload):
            return Reason.PAYLOAD_FORMAT_INVALID
        return Reason.SUCCESS

    def _retain(self, message: MqttMessage, sender: MqttSession | None, now: float) -> None:
        user: User = None if sender is None else sender.user
        if not message.payload:
            if (before := self._retained.remove(message.topic)) is not None:
                self._archive.unretained(before)
        elif self._retained.has_room_for(message, user):
            self._archive.retained(message, user)
            if (before := self._retained.put(message, user)) is not None:
                self._archive.replaced(before)
        else:
            client_id = "" if sender is None else sender.client_id
            self._delivery.refusals.note(RefusalCause.NOT_RETAINED, now, user, client_id, message.topic)

    def _acknowledge(
        self,
        link: MqttConnection,
        qos: int,
        packet_id: int,
        reason: int,
        before: int,
        held: HeldPacket | None = None,
    ) -> None:
        """Answer a message, once what `before` did not have yet is on disk; `held` is the answer's place.

        A client of 3.1.1 that cannot hear "full" is disconnected: it must not take for kept what is not.
        """
        session = link.session
        # Where a client is back, it has sent again what is of QoS 2, and waits for this.
        to = (session.link if link.is_closed and qos == 2 else None) or link
        if link.version == V311:
            if reason == Reason.QUOTA_EXCEEDED:
                to.close(None)
                return
            reason = Reason.SUCCESS
        if qos == 2 and reason < FAILURE:
            reason = Reason.SUCCESS
            link.open_ids.add(packet_id)
            session.incoming.add(packet_id)
            self._archive.incoming(session, packet_id)
        elif qos == 1 and held is None:
            link.owed += 1
        mark = self._ledger.made if self._ledger.made != before else 0
        if qos == 1 and not reason:
            data = encode_puback(packet_id)
        else:
            data = encode((PubAck if qos == 1 else PubRec)(packet_id, reason), to.version)
        to.answer(data, qos == 1, mark, held if to is link else None)

    def spread_names(self, message: MqttMessage, sender: MqttSession | None, now: float) -> None:
        """Give what the network has taken to the clients here, under each of its topics."""
        for topic in self._beyond.topics(message.topic):
            self.spread(message if topic == message.topic else message.under(topic), sender, now)

    def _hand_over(self, link: MqttConnection, packet: Publish, topic: str, now: float) -> None:
        """Give a message to the network beyond; the answer waits until that has it.

        One of QoS 2 goes there under a token that is on disk before: a client that repeats it after a crash
        before the answer has it go out once. What is local, too, may come twice after a refusal beyond.
        """
        message = brought_by(packet, topic, now)
        session, packet_id = link.session, packet.packet_id
        if self._rules is not None:
            message.properties = self._rules.owned(session.user, topic, message.properties)
        publication = NetworkPublication(message, session.user)
        publication.link, publication.packet_id = link, packet_id
        publication.made_before = self._ledger.made
        publication.is_spread = self._beyond.is_local_too(topic)
        # A client that reuses the identifier of a message which it forgot does not say that it repeats it.
        if packet.qos == 2 and packet.dup:
            publication.token = session.tokens.get(packet_id, b"")
        if publication.is_spread and not publication.token:
            self.spread_names(message, session, now)
        if packet.qos:
            publication.held = link.reserve(owed=packet.qos == 1)
        if packet.qos == 2:
            if not publication.token:
                publication.token = session.tokens[packet_id] = self._randomness(16)
                self._archive.handing_over(session, packet_id, publication.token)
            session.pending.add(packet_id)
            link.open_ids.add(packet_id)
            self._ledger.once_stored(publication.made_before, partial(self._hand_stored, publication, now))
            return
        link.owed += packet.qos
        if (refused := self._beyond.publish(publication)) is not None:
            self.answered(publication, refused, now)

    def _hand_stored(self, publication: NetworkPublication, now: float) -> None:
        if (refused := self._beyond.publish(publication)) is not None:
            self.answered(publication, refused, now)

    def answered(self, publication: NetworkPublication, reason: int, now: float) -> None:
        """Take the answer of the network beyond, and pass it on to the client that waits for it."""
        link, packet_id, qos = publication.link, publication.packet_id, publication.message.qos
        if publication.deletes_here and reason < FAILURE:
            self.spread_names(publication.message, None, now)
        if link is None:
            return
        if reason < FAILURE and not publication.is_spread:
            self.spread_names(publication.message, link.session, now)
        if qos == 2:
            link.session.pending.discard(packet_id)
            link.session.tokens.pop(packet_id, None)
            link.open_ids.discard(packet_id)
            self._archive.handed_over(link.session, packet_id)
        if qos:
            # What the network beyond wrote of it is to be on disk, too.
            self._acknowledge(link, qos, packet_id, reason, publication.made_before, publication.held)


def _with(packet: Publish, topic: NamedTopic, added: AddedProperty) -> Publish:
    """Return a PUBLISH with the user properties that its client wants for its topic."""
    given = packet.properties.get("user_property", [])
    if any(name in added.unless for name, _ in given):
        return packet
    more = [
        one
        for wanted, one in added.by_filter.items()
        if any(matches(normal(wanted), name) for name in topic.every)
    ]
    if not more:
        return packet
    properties: Properties = {**packet.properties, "user_property": [*given, *more]}
    return msgspec.structs.replace(packet, properties=properties)


def _is_text(payload: bytes) -> bool:
    try:
        payload.decode()
    except UnicodeDecodeError:
        return False
    return True
