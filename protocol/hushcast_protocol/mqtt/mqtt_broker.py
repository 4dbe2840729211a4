"""An MQTT broker without I/O: packets of all clients in, packets to them and changes to the disk out.

It is moved by calls alone: a client connects, sends, is gone; something is on disk; time passes; a message
comes from the network beyond. `now` is Unix time in seconds. Nothing is acknowledged before the disk has
what that promises: `Ledger` says what to write, `MqttBroker.stored` that it was.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator

from hushcast_protocol.base.crypto.secrets import Randomness
from hushcast_protocol.base.shares import Shares
from hushcast_protocol.mqtt import wills
from hushcast_protocol.mqtt.connections import MqttConnection, Outlet
from hushcast_protocol.mqtt.delayed_publisher import DelayedPublisher
from hushcast_protocol.mqtt.delivery import IsWithdrawn, MessageDelivery
from hushcast_protocol.mqtt.handshake import Greeting, greet, refuse
from hushcast_protocol.mqtt.ingress import Ingress
from hushcast_protocol.mqtt.interfaces import NoNetwork, OuterNetwork, UsageRules
from hushcast_protocol.mqtt.kept.delayed_messages import DelayedMessages
from hushcast_protocol.mqtt.kept.ledger import Ledger
from hushcast_protocol.mqtt.kept.message_history import MessageHistory
from hushcast_protocol.mqtt.kept.retained_messages import RetainedMessages
from hushcast_protocol.mqtt.kept.session_archive import SessionArchive
from hushcast_protocol.mqtt.limits import PIECE, PURGE_EVERY, SYS_EVERY
from hushcast_protocol.mqtt.mqtt_messages import MqttMessage, may_be_published, message_of
from hushcast_protocol.mqtt.mqtt_sessions import Sessions
from hushcast_protocol.mqtt.mqtt_settings import MqttSettings
from hushcast_protocol.mqtt.network_publication import NetworkPublication
from hushcast_protocol.mqtt.operator_actions import OperatorActions
from hushcast_protocol.mqtt.own_topics import OwnTopics
from hushcast_protocol.mqtt.reason_codes import PacketError, Reason
from hushcast_protocol.mqtt.refusals import RefusalCause
from hushcast_protocol.mqtt.restored_state import RestoredState
from hushcast_protocol.mqtt.subscribers import Subscribers
from hushcast_protocol.mqtt.subscription_changes import SubscriptionChanges
from hushcast_protocol.mqtt.topics.permissions import Permissions
from hushcast_protocol.mqtt.topics.topic_names import NamedTopic
from hushcast_protocol.mqtt.wire.packets import (
    V5,
    Connect,
    Disconnect,
    Packet,
    PingReq,
    PingResp,
    Properties,
    PubAck,
    PubComp,
    Publish,
    PubRec,
    PubRel,
    Subscribe,
    Unsubscribe,
)

RELEASED = 8  # clients that are sent what waited for the disk, in one step: 1,000 answers each, a half ms


class MqttBroker:
    """All clients, sessions, subscriptions and messages of one gateway."""

    def __init__(
        self,
        randomness: Randomness,
        now: float,
        beyond: OuterNetwork | None = None,
        settings: MqttSettings | None = None,
        rules: UsageRules | None = None,
    ) -> None:
        """`beyond` is the network to which some topics belong; without it all are this broker's.

        `rules` say what messages may be used for; without them, for anything.
        """
        self._randomness = randomness
        self._settings = settings or MqttSettings()
        beyond = self._beyond = beyond or NoNetwork()
        self.ledger = Ledger()
        self._archive = SessionArchive(self.ledger)
        self._subscribers = Subscribers(_names_here(beyond, rules), rules)
        limits = self._settings.limits
        self._retained = RetainedMessages(limits.retained, limits.retained_bytes)
        history = MessageHistory(self._archive, randomness, self._settings)
        self._delivery = MessageDelivery(
            self._subscribers, self._archive, self.ledger, beyond, rules, limits, history
        )
        self.delayed = DelayedMessages(self._archive, limits if rules is None else None)
        """What waits to be published."""
        self._ingress = Ingress(
            self._delivery, self._retained, self._archive, self.delayed, randomness, beyond, rules
        )
        self._delayed_publisher = DelayedPublisher(self.delayed, self._ingress, beyond, self._delivery.counts)
        self._own = OwnTopics(self._settings.version)
        retained = self._retained, self._own.retained
        self._changes = SubscriptionChanges(
            self._subscribers, self._delivery, retained, self._archive, beyond, rules, limits
        )
        self._sessions = Sessions(
            self._changes, self._ingress, self._delivery, self._archive, beyond, limits.sessions
        )
        self.operator = OperatorActions(
            self._sessions, self._retained, history, self._ingress, beyond, self.gone
        )
        """What whoever runs it may look at and do."""
        self._links: set[MqttConnection] = set()
        self._clients = Shares(limits.clients)
        self._holding: set[MqttConnection] = set()
        self._releasing: dict[MqttConnection, None] = {}  # whose changes the disk has, perhaps
        self._began = self._next_own = self._next_purge = now
        self.counts = self._delivery.counts
        """Events by name, of `broker_counts.COUNTS`."""
        self.refusals = self._delivery.refusals
        """What clients did not get."""

    @property
    def connected(self) -> int:
        """Clients that are connected."""
        return len(self._links)

    @property
    def sessions(self) -> int:
        """Sessions of clients that are here or away."""
        return len(self._sessions)

    @property
    def subscriptions(self) -> int:
        """Subscriptions of all sessions."""
        return self._subscribers.count

    @property
    def retained(self) -> int:
        """Retained messages."""
        return self._retained.count

    @property
    def kept(self) -> int:
        """Messages of histories."""
        return len(self._delivery.history)

    @property
    def held_bytes(self) -> int:
        """Bytes of messages that wait in sessions or are under way."""
        return self._delivery.queues.held_bytes

    @property
    def waits_for_disk(self) -> bool:
        """Whether somebody waits for a change to be on disk."""
        return bool(self._holding) or self.ledger.is_awaited

    def restore(self, records: RestoredState, now: float) -> Iterator[None]:
        """Take up what an earlier run left on disk, piece by piece; before anything else."""
        yield from records.into(self._archive, self._retained, self._delivery, self.delayed)
        for session in records.sessions:
            self._sessions.restore(session)
            for count, (wanted, granted) in enumerate(list(session.filters.items()), 1):
                self._changes.add(session, wanted, granted)
                if count % PIECE == 0:
                    yield
            yield
        yield from self._sessions.resume(now)

    def connect(
        self, outlet: Outlet, packet: Connect, permissions: Permissions, now: float
    ) -> tuple[MqttConnection, int] | None:
        """Take a client whose CONNECT was authenticated.

        Return its link and the seconds of its keep alive (0: none); `None` if it was refused and told so.
        """
        greeting = greet(packet, permissions.user, self._randomness, self._settings.limits)
        if isinstance(greeting, Reason):
            refuse(outlet, packet, greeting)
            return None
        refused = self._refusal(greeting, packet, permissions)
        if refused is not None:
            cause, reason = refused
            subject = packet.will.topic if packet.will is not None and cause is RefusalCause.WILL else ""
            self.refusals.note(cause, now, *greeting.key, subject)
            refuse(outlet, packet, reason)
            return None
        before = self.ledger.made
        if self._sessions.is_here(greeting.key):
            self.refusals.note(RefusalCause.TAKEN_OVER, now, *greeting.key)
        session, is_present = self._sessions.begin(
            greeting.key, permissions, greeting.expiry, packet.clean, now
        )
        link = MqttConnection(outlet, self.ledger, self._holding)
        link.version = packet.version
        link.permissions = permissions
        link.session = session
        link.max_packet = packet.properties.get("maximum_packet_size")
        link.max_aliases_out = greeting.aliases
        self._links.add(link)
        self._clients.take(permissions.user)
        session.will = packet.will
        session.attach(link, greeting.window)
        self._archive.session(session)
        mark = self.ledger.made if self.ledger.made != before else 0
        link.send_in_order(greeting.acknowledgement(is_present, self._settings.maximum_packet), mark)
        if link.is_closed:  # it takes not even that
            self.gone(link, now)
            return None
        self._delivery.pump(session, now)
        return link, greeting.keep_alive

    def _refusal(
        self, greeting: Greeting, packet: Connect, permissions: Permissions
    ) -> tuple[RefusalCause, Reason] | None:
        """Return why a client is not taken, and what it is told."""
        if packet.will is not None:
            refusal = wills.refusal(packet.will.topic, self._beyond.names, permissions)
            if refusal is not None:
                return RefusalCause.WILL, refusal
        if not self._sessions.has_room_for(greeting.key, greeting.expiry):
            return RefusalCause.SESSIONS, Reason.QUOTA_EXCEEDED
        if not self._sessions.is_here(greeting.key) and not self._clients.may_take(permissions.user):
            return RefusalCause.CROWDED, Reason.SERVER_BUSY
        return None

    def receive(self, link: MqttConnection, packet: Packet, now: float) -> None:
        """Take a packet; what breaks the standard ends the connection with its reason."""
        if link.is_closed:
            return
        try:
            if isinstance(packet, Publish):
                self._ingress.publish(link, packet, now)
            elif isinstance(packet, PubAck):
                self._acknowledged(link, packet, now)
            elif isinstance(packet, PubRec):
                self._received(link, packet, now)
            elif isinstance(packet, PubRel):
                self._ingress.release(link, packet)
            elif isinstance(packet, PubComp):
                self._completed(link, packet, now)
            elif isinstance(packet, Subscribe):
                self._changes.subscribe(link, packet, now)
            elif isinstance(packet, Unsubscribe):
                self._changes.unsubscribe(link, packet)
            elif isinstance(packet, PingReq):
                link.send_in_order(PingResp())
            elif isinstance(packet, Disconnect):
                self._disconnect(link, packet)
            else:
                raise PacketError(Reason.PROTOCOL_ERROR, "a packet that has no place here")
        except PacketError as error:
            link.close(error.reason)
        if link.is_closed:
            self.gone(link, now)

    def drained(self, link: MqttConnection, now: float) -> None:
        """Go on sending to a client that had no room."""
        if not link.is_closed:
            self._delivery.pump(link.session, now)

    def gone(self, link: MqttConnection, now: float) -> None:
        """Take note that a client's connection has ended, however it did; more than once does no harm."""
        link.abandon()
        self._releasing.pop(link, None)
        if link in self._links:
            self._links.remove(link)
            self._clients.give_back(link.session.user)
        self._sessions.gone(link, now)

    def stored(self, mark: int, now: float) -> None:
        """Take note that the disk has the changes up to a `Ledger.made` of before."""
        self.ledger.durable = max(mark, self.ledger.durable)
        self._releasing = dict.fromkeys(self._holding)
        self._release()

    def arrived(
        self,
        topic: str,
        payload: bytes,
        qos: int,
        retain: bool,
        properties: Properties,
        now: float,
    ) -> None:
        """Take a message from the network beyond."""
        self._ingress.spread(message_of(topic, payload, qos, retain, properties, now), None, now)

    def answered(self, publication: NetworkPublication, reason: int, now: float) -> None:
        """Take what the network beyond answers to a message that it was handed."""
        if (one := publication.delayed) is not None:
            self._delayed_publisher.answered(one, publication.is_spread, reason, now)
        else:
            self._ingress.answered(publication, reason, now)

    def withdraw(self, is_withdrawn: IsWithdrawn, found: Counter[str]) -> Iterator[None]:
        """Delete all that waits or is retained and was withdrawn, piece by piece; count it by topic."""
        yield from self._ingress.withdraw(is_withdrawn, found)
        yield from self._delivery.history.delete(is_withdrawn, found)
        for session in list(self._sessions):
            self._delivery.withdraw(session, is_withdrawn, found)
            yield

    def retained_at(self, topic: str) -> MqttMessage | None:
        """Return the message that is retained for a topic."""
        return self._retained.get(topic)

    def renew(self, message: MqttMessage, now: float) -> None:
        """Retain a message that came in place of the former, or none if it is empty; give it to nobody."""
        self._ingress.renew(message, now)

    @property
    def has_more(self) -> bool:
        """Whether something is left to `go_on` with."""
        return bool(self._releasing or self._delivery.turns) or self.ledger.is_due or self._changes.has_more

    def go_on(self, now: float) -> None:
        """Do the next of what steps before had to leave: what waited for the disk, or a client's turn.

        A piece of what sessions leave behind is done besides.
        """
        self._changes.go_on()
        if self._releasing or self.ledger.is_due:
            self._release()
        elif (session := self._delivery.turns.take()) is not None:
            self._delivery.pump(session, now)

    def tick(self, now: float) -> Iterator[None]:
        """Do what is due, piece by piece; call it once a second."""
        yield from self._sessions.tick(now)
        yield from self._delayed_publisher.publish_due(now)
        if now >= self._next_own:
            self._next_own = now + SYS_EVERY
            for message in self._own.update(now - self._began, self.connected, self.counts):
                self._delivery.to_all(message, None, now)
                yield
        if now >= self._next_purge:
            self._next_purge = now + PURGE_EVERY
            for found in self._retained.walk():
                if found is None:
                    yield
                elif found.is_expired(now):
                    self._ingress.unretain(found)
            yield from self._delivery.history.purge(now)

    def rules_changed(self, wanted: str | None) -> None:
        """Ask the rules anew about topics that a filter matches; about all for `None`."""
        self._subscribers.forget(wanted)

    def shut_down(self) -> None:
        """Tell all clients that the server ends."""
        self._sessions.stop()
        for link in list(self._links):
            link.close(Reason.SERVER_SHUTTING_DOWN)

    def _release(self) -> None:
        """Send and call some of what waited for the disk."""
        for _ in range(RELEASED):
            if self._releasing:
                link = next(iter(self._releasing))
                del self._releasing[link]
                if link.release():
                    self._delivery.turns.add(link.session)
            elif self.ledger.is_due:
                self.ledger.call()
            else:
                return

    def _acknowledged(self, link: MqttConnection, packet: PubAck, now: float) -> None:
        if (entry := link.session.acknowledged(packet.packet_id)) is not None:
            self._delivery.finished(link.session, entry, now)

    def _received(self, link: MqttConnection, packet: PubRec, now: float) -> None:
        session = link.session
        entry = session.received(packet.packet_id, packet.reason)
        if packet.reason >= Reason.UNSPECIFIED_ERROR:
            if entry is not None:
                self._delivery.finished(session, entry, now)
            return
        if entry is not None:
            self._delivery.received(session, entry)
        mark = self.ledger.made if session.is_durable else 0
        link.send_in_order(PubRel(packet.packet_id), mark)

    def _completed(self, link: MqttConnection, packet: PubComp, now: float) -> None:
        if (entry := link.session.completed(packet.packet_id)) is not None:
            self._delivery.finished(link.session, entry, now)

    def _disconnect(self, link: MqttConnection, packet: Disconnect) -> None:
        session = link.session
        expiry = packet.properties.get("session_expiry_interval")
        if expiry is not None and link.version == V5:
            self._sessions.set_expiry(session, expiry)
        if packet.reason == Reason.SUCCESS:
            session.will = None
        link.close(None)


def _names_here(beyond: OuterNetwork, rules: UsageRules | None) -> Callable[[str], NamedTopic | None]:
    """Return what tells the names of a topic if clients may publish to it, and its messages are for them."""

    def names(topic: str) -> NamedTopic | None:
        is_command = rules is not None and rules.is_command(topic)
        is_here = not is_command and may_be_published(topic) and not beyond.takes(topic)
        return beyond.names(topic) if is_here else None

    return names
