"""Delivery: a message to all who are subscribed, at once or when their window and their line have room."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

from hushcast_protocol.mqtt.client_turns import ClientTurns
from hushcast_protocol.mqtt.connections import MqttConnection
from hushcast_protocol.mqtt.interfaces import OuterNetwork, UsageRules
from hushcast_protocol.mqtt.kept.ledger import Ledger
from hushcast_protocol.mqtt.kept.message_history import MessageHistory
from hushcast_protocol.mqtt.kept.retained_messages import FoundMessages
from hushcast_protocol.mqtt.kept.session_archive import SessionArchive
from hushcast_protocol.mqtt.limits import MAX_LOOKED_AT, MAX_OFFERED, TURN_STEPS, MqttLimits
from hushcast_protocol.mqtt.mqtt_messages import MqttMessage
from hushcast_protocol.mqtt.mqtt_session import (
    DeliveryState,
    GrantedSubscription,
    MqttSession,
    PendingMessage,
)
from hushcast_protocol.mqtt.queues import Queues
from hushcast_protocol.mqtt.refusals import Refusals
from hushcast_protocol.mqtt.subscribers import Subscribers
from hushcast_protocol.mqtt.wire.codec import encode, encode_publish
from hushcast_protocol.mqtt.wire.fields import text
from hushcast_protocol.mqtt.wire.packets import V5, Publish, PubRel

IsWithdrawn = Callable[[MqttMessage], bool]
"""Tells whether its publisher has withdrawn a message."""
_MINE_ALONE = ("dropped_forbidden", "withheld")
"""Counts of what one member of a group may not have, and another may."""


class MessageDelivery:
    """Hands messages out to sessions."""

    def __init__(
        self,
        subscribers: Subscribers,
        archive: SessionArchive,
        ledger: Ledger,
        beyond: OuterNetwork,
        rules: UsageRules | None,
        limits: MqttLimits,
        history: MessageHistory,
    ) -> None:
        self._names = beyond.names
        self._subscribers = subscribers
        self._rules = rules
        self._archive = archive
        self._ledger = ledger
        self.turns = ClientTurns()
        """Sessions that `pump` left before it was done."""
        self.refusals = Refusals()
        self.counts = self.refusals.counts
        self.queues = Queues(archive, self.refusals, limits)
        """What waits in sessions."""
        self.history = history
        """What was handed out, of some topics."""

    def to_all(self, message: MqttMessage, sender: MqttSession | None, now: float) -> None:
        """Give a message to everybody who is subscribed to its topic.

        Nobody is told whether anybody is.
        """
        self.queues.begin_step()
        if self.history.is_used:
            message = self.history.taken(message, None if sender is None else sender.user, now)
        plan = self._subscribers.plan_of(message)
        message.written_topic = plan.written
        if plan.withheld:
            self.counts["withheld"] += plan.withheld
        ready: dict[tuple[int, bool, tuple[int, ...]], tuple[Publish, bytes]] = {}
        for recipient in plan.recipients:
            session = recipient.session
            if recipient.spares_own and session is sender:
                if recipient.own is None:
                    continue
                recipient = recipient.own
            retain = message.retain and recipient.retain_as_published
            if message.qos and recipient.qos:
                self._offer(session, message, min(message.qos, recipient.qos), retain, recipient.ids, "", now)
            elif session.link is not None:
                key = session.link.version, retain, recipient.ids
                encoded = ready.get(key)
                if encoded is None:
                    packet = message.packet(0, retain, recipient.ids, session.link.version, now)
                    encoded = ready[key] = packet, encode(packet, session.link.version)
                self._send_unconfirmed(session.link, *encoded, in_order=False)
        for group in plan.groups:
            self.to_group(group.name, message, now)

    def pass_on(self, sender: MqttConnection, packet: Publish) -> bool:
        """Give a PUBLISH of QoS 0, without properties and not to be retained, to all as it came.

        Return whether that could be done: it is the short way of most messages, and `to_all` takes the rest.
        """
        if self.history.keeps(packet.topic):
            return False
        plan = self._subscribers.plan(packet.topic)
        names = plan.names
        if names is None or not plan.is_plain or not sender.permissions.may_publish(names):
            return False
        ready: dict[int, bytes] = {}
        sent = 0
        for recipient in plan.recipients:
            link = recipient.session.link
            if link is None:
                continue
            data = ready.get(link.version)
            if data is None:
                data = ready[link.version] = encode_publish(plan.written, packet.payload, link.version)
            if link.is_simple and link.permissions.may_receive(names) and link.outlet.has_room():
                link.outlet.send(data)
                sent += 1
            else:
                self._send_unconfirmed(link, packet, data, in_order=False)
        self.counts["messages_sent"] += sent
        if plan.withheld:
            self.counts["withheld"] += plan.withheld
        return True

    def is_known(self, topic: str) -> bool:
        """Tell whether a topic is known to be delivered here, and clients may publish to it."""
        return self._subscribers.is_known(topic)

    def to_group(self, name: str, message: MqttMessage, now: float, most: int = MAX_LOOKED_AT) -> None:
        """Give a message to one member of the group that shares a subscription, if anybody can get it.

        `most` of the members are looked at.
        """
        group = self._subscribers.group(name)
        chosen = (
            None if group is None else group.choose(message, self._names(message.topic), self._rules, most)
        )
        if chosen is not None:
            session, granted = chosen
            self._to_one(session, message, granted, message.retain and granted.retain_as_published, name, now)

    def pump(self, session: MqttSession, now: float) -> None:
        """Send what waits for a client, as far as its window and its line have room.

        What is more than one turn's stays, and its session is among `turns`.
        """
        link = session.link
        if link is None:
            return
        self.queues.begin_step()
        for _ in range(TURN_STEPS):
            if session.resend or session.offered:
                if not self._send_next(session, link, now):
                    return
            elif not session.queue or not session.has_window() or not link.has_room():
                return
            else:
                self._send_queued(session, link, now)
        self.turns.add(session)

    def _send_next(self, session: MqttSession, link: MqttConnection, now: float) -> bool:
        """Do the next step for a client; return whether there was one to do."""
        if not link.has_room():
            return False
        if session.resend:
            if session.resend[0].state is not DeliveryState.RELEASED and not session.has_window():
                return False
            entry = session.resend.popleft()
            if session.inflight.get(entry.packet_id) is entry:  # it is not acknowledged yet
                self._resend(session, link, entry, now)
            return True
        if not session.has_window():
            return False
        if session.queue:
            self._send_queued(session, link, now)
            return True
        if session.offered:
            self._send_retained(session, link, now)
            return True
        return False

    def _send_queued(self, session: MqttSession, link: MqttConnection, now: float) -> None:
        entry, message = self.queues.take_first(session)
        if reason := self._unfit(message, link, now) or self._withheld(session, entry):
            self.queues.forget(session, entry, reason)
            if entry.share and reason in _MINE_ALONE:
                self.to_group(entry.share, message, now)
        else:
            self._launch(session, link, entry, False, now)

    def _send_retained(self, session: MqttSession, link: MqttConnection, now: float) -> None:
        """Go one message further in what is retained for a new subscription, or one piece of the look-up."""
        messages, granted = session.offered[0]
        try:
            message = next(messages)
        except StopIteration:
            session.offered.popleft()
            return
        if message is None:
            return
        if reason := self._unfit(message, link, now):
            self.counts[reason] += 1
        elif self._rules is not None and not self._rules.may_have(session, granted, message):
            self.counts["withheld"] += 1
        else:
            self._to_one(session, message, granted, True, "", now)

    def offer_retained(
        self, session: MqttSession, messages: FoundMessages, granted: GrantedSubscription
    ) -> bool:
        """Line up what is kept for a new subscription, which `pump` sends; tell whether there was room."""
        if len(session.offered) < max(MAX_OFFERED, 2 * len(session.filters)):
            session.offered.append((messages, granted))
            return True
        self.counts["dropped_queue_full"] += 1
        return False

    def finished(self, session: MqttSession, entry: PendingMessage, now: float) -> None:
        """Forget a message that its client acknowledged, and send what waited for that."""
        if session.is_durable:
            self._archive.done(session, entry)
        entry.message = None
        if session.queue or session.resend or session.offered:
            self.pump(session, now)

    def received(self, session: MqttSession, entry: PendingMessage) -> None:
        """Forget the body of a message of QoS 2 that its client has; the exchange goes on."""
        if entry.message is not None:
            self._archive.let_go(session, entry)
            entry.message = None
            self._archive.queued(session, entry, False)

    def withdraw(self, session: MqttSession, is_withdrawn: IsWithdrawn, found: Counter[str]) -> None:
        """Delete what waits for a client, or is to be sent to it again, and was withdrawn; count it by topic.

        What a client has been sent and has not acknowledged yet is not called back while it is here.
        """
        queued = self.queues.take_out(session, is_withdrawn)
        sent = [one for one in session.to_resend() if one.message is not None and is_withdrawn(one.message)]
        for entry in sent:
            session.drop(entry)
        for entry in (*queued, *sent):
            assert entry.message is not None
            found[entry.message.topic] += 1
            self.queues.forget(session, entry, "withdrawn")

    def ended(self, session: MqttSession, now: float) -> None:
        """Forget all that waits for a session, and give to others what came by shared subscriptions.

        Messages of QoS 2 that were sent are not given to anybody else (MQTT-4.8.2-5).
        """
        self.queues.begin_step()
        left = [*session.inflight.values(), *self.queues.take_all(session)]
        session.inflight.clear()
        session.resend.clear()
        most = max(1, min(MAX_LOOKED_AT, MAX_LOOKED_AT * TURN_STEPS // (len(left) or 1)))
        for entry in left:
            message = entry.message
            if (
                message is not None
                and entry.share
                and (entry.state is DeliveryState.WAITING or entry.qos == 1)
            ):
                self.to_group(entry.share, message, now, most)

    def _to_one(
        self,
        session: MqttSession,
        message: MqttMessage,
        granted: GrantedSubscription,
        retain: bool,
        share: str,
        now: float,
    ) -> None:
        qos = min(message.qos, granted.qos)
        ids = (granted.identifier,) if granted.identifier else ()
        if qos:
            self._offer(session, message, qos, retain, ids, share, now)
        elif session.link is not None:
            packet = message.packet(0, retain, ids, session.link.version, now)
            self._send_unconfirmed(session.link, packet, b"", in_order=True)

    def _send_unconfirmed(self, link: MqttConnection, packet: Publish, data: bytes, in_order: bool) -> None:
        if not link.permissions.may_receive(self._names(packet.topic)):
            self.counts["dropped_forbidden"] += 1
        elif not link.has_room():
            self.counts["dropped_slow"] += 1
        elif link.publish(packet, 0, data, in_order):
            self.counts["messages_sent"] += 1
        else:
            self.counts["dropped_too_large"] += 1

    def _offer(
        self,
        session: MqttSession,
        message: MqttMessage,
        qos: int,
        retain: bool,
        ids: tuple[int, ...],
        share: str,
        now: float,
    ) -> None:
        """Send a message of QoS 1 or 2, or queue it behind those that wait."""
        link = session.link
        waits = session.queue or session.resend or not session.has_window()
        if link is None or waits or not link.has_room():
            if link is None and not session.is_durable:
                return
            if link is None and not session.permissions.may_receive(self._names(message.topic)):
                self.counts["dropped_forbidden"] += 1
                return
            self.queues.put(session, session.entry(message, qos, retain, ids, share), now)
            return
        if reason := self._unfit(message, link, now):
            self.counts[reason] += 1
            return
        self._launch(session, link, session.entry(message, qos, retain, ids, share), True, now)

    def _launch(
        self, session: MqttSession, link: MqttConnection, entry: PendingMessage, is_new: bool, now: float
    ) -> None:
        message = entry.message
        assert message is not None
        session.launch(entry)
        if session.is_durable:
            # On disk before it is sent: after a crash it comes again under the same packet identifier.
            self._archive.queued(session, entry, is_new)
        self._send(session, link, entry, message, False, now)

    def _resend(self, session: MqttSession, link: MqttConnection, entry: PendingMessage, now: float) -> None:
        if entry.state is DeliveryState.RELEASED:
            # Its exchange is under way as on the connection before, or each would begin as many more.
            session.launch(entry)
            link.send_in_order(PubRel(entry.packet_id), self._mark(session))
            return
        assert entry.message is not None
        is_allowed = link.permissions.may_receive(self._names(entry.message.topic))
        if reason := self._withheld(session, entry) if is_allowed else "dropped_forbidden":
            session.drop(entry)
            self.queues.forget(session, entry, reason)
            return
        session.launch(entry)
        self._send(session, link, entry, entry.message, True, now)

    def _send(
        self,
        session: MqttSession,
        link: MqttConnection,
        entry: PendingMessage,
        message: MqttMessage,
        dup: bool,
        now: float,
    ) -> None:
        has_more = entry.ids or message.properties or message.expires is not None
        if link.max_aliases_out or (has_more and link.version == V5):
            packet = message.packet(
                entry.qos, entry.retain, entry.ids, link.version, now, entry.packet_id, dup
            )
            is_sent = link.publish(packet, self._mark(session))
        else:
            flags, payload = dup << 3 | entry.qos << 1 | entry.retain, message.payload
            topic = message.written_topic = message.written_topic or text(message.topic)
            data = encode_publish(topic, payload, link.version, flags, entry.packet_id)
            is_sent = link.publish_bytes(data, self._mark(session))
        if is_sent:
            self.counts["messages_sent"] += 1
        else:  # as if it had been sent (section 3.1.2.11.4)
            session.drop(entry)
            self.queues.forget(session, entry, "dropped_too_large")

    def _mark(self, session: MqttSession) -> int:
        return self._ledger.made if session.is_durable else 0

    def _unfit(self, message: MqttMessage, link: MqttConnection, now: float) -> str:
        """Return why a message is not handed out, as a count's name; empty if it is."""
        if message.expires is not None and message.expires <= now:
            return "dropped_expired"
        return "" if link.permissions.may_receive(self._names(message.topic)) else "dropped_forbidden"

    def _withheld(self, session: MqttSession, entry: PendingMessage) -> str:
        """Return "withheld" if the rules do not let a client have now what waited for it; else nothing.

        Identifiers are left of those subscriptions alone by which it may have it.
        """
        message, rules = entry.message, self._rules
        if rules is None or message is None:
            return ""
        if entry.share:
            group = self._subscribers.group(entry.share)
            granted = None if group is None else group.members.get(session)
            return "" if rules.may_have(session, granted, message) else "withheld"
        recipient = self._subscribers.plan_of(message).by_session.get(session)
        if recipient is not None:
            if entry.ids:
                entry.ids = tuple(one for one in entry.ids if one in recipient.ids)
            return ""
        return "" if rules.may_have(session, None, message) else "withheld"
