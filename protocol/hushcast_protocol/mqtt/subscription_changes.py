"""SUBSCRIBE and UNSUBSCRIBE: what is granted, what is refused, and the retained messages that follow."""

from __future__ import annotations

from collections import Counter

from hushcast_protocol.base.budget import Budget
from hushcast_protocol.base.shares import Shares
from hushcast_protocol.mqtt.connections import MqttConnection
from hushcast_protocol.mqtt.delivery import MessageDelivery
from hushcast_protocol.mqtt.interfaces import OuterNetwork, ResolvedFilter, UsageRules
from hushcast_protocol.mqtt.ledger import Ledger
from hushcast_protocol.mqtt.limits import MAX_FILTERS, MAX_FILTERS_A_USER, MAX_SHARED, MAX_TOPIC
from hushcast_protocol.mqtt.mqtt_session import GrantedSubscription, MqttSession
from hushcast_protocol.mqtt.packets import (
    Properties,
    RequestedSubscription,
    SubAck,
    Subscribe,
    UnsubAck,
    Unsubscribe,
)
from hushcast_protocol.mqtt.reason_codes import Reason
from hushcast_protocol.mqtt.refused_subscriptions import RefusedSubscriptions
from hushcast_protocol.mqtt.retained_messages import RetainedMessages
from hushcast_protocol.mqtt.session_archive import SessionArchive
from hushcast_protocol.mqtt.subscribers import Subscribers
from hushcast_protocol.mqtt.topic_filters import MAX_LEVELS, split_share


class SubscriptionChanges:
    """The subscriptions of all sessions, as their clients and their ends change them."""

    def __init__(
        self,
        subscribers: Subscribers,
        delivery: MessageDelivery,
        retained: tuple[RetainedMessages, RetainedMessages],
        archive: SessionArchive,
        ledger: Ledger,
        beyond: OuterNetwork,
        rules: UsageRules | None = None,
    ) -> None:
        """`retained` are the messages that clients had retained, and the broker's own under `$`."""
        self._subscribers = subscribers
        self._delivery = delivery
        self._archive = archive
        self._ledger = ledger
        self._beyond = beyond
        self._rules = rules
        self._retained, self._own = retained
        self._by_user: Counter[str] = Counter()
        self._shared = Shares(MAX_SHARED)
        self.refused = RefusedSubscriptions(delivery.counts)

    def subscribe(self, link: MqttConnection, packet: Subscribe, now: float) -> None:
        """Take a SUBSCRIBE."""
        session = link.session
        before = self._ledger.made
        budget = None if self._rules is None else self._rules.budget()
        reasons = [
            self._subscribe(link, asked, packet.properties, budget, now) for asked in packet.subscriptions
        ]
        mark = self._ledger.made if self._ledger.made != before else 0
        link.send_in_order(SubAck(packet.packet_id, reasons), mark)
        self._delivery.pump(session, now)

    def unsubscribe(self, link: MqttConnection, packet: Unsubscribe) -> None:
        """Take an UNSUBSCRIBE."""
        before = self._ledger.made
        reasons = [self._unsubscribe(link.session, wanted) for wanted in packet.filters]
        mark = self._ledger.made if self._ledger.made != before else 0
        link.send_in_order(UnsubAck(packet.packet_id, reasons), mark)

    def add(
        self, session: MqttSession, wanted: str, granted: GrantedSubscription, is_new: bool = True
    ) -> None:
        """Let a subscription count; that of a session from disk, too."""
        self._by_user[session.user] += is_new
        if is_new and granted.share:
            self._shared.take(session.user)
        session.filters[wanted] = granted
        if self._subscribers.add(session, granted):
            self._beyond.wanted(session.user, granted.wanted)
        if self._rules is not None:
            self._rules.subscribed(session, granted)

    def remove_all(self, session: MqttSession) -> None:
        """Take all subscriptions of a session away, which the disk knows of already."""
        for granted in session.filters.values():
            self._remove(session, granted)
        session.filters.clear()

    def _subscribe(
        self,
        link: MqttConnection,
        asked: RequestedSubscription,
        given: Properties,
        budget: Budget | None,
        now: float,
    ) -> int:
        session = link.session
        meant = self._meant(link, asked.filter, given)
        if isinstance(meant, int):
            return self.refused.note(meant, now, by_rules=True)
        written, purpose = meant
        share, wanted = split_share(written) or ("", written)
        known = session.filters.get(written)
        if wanted.count("/") >= MAX_LEVELS or len(asked.filter) > MAX_TOPIC:
            return self.refused.note(Reason.TOPIC_FILTER_INVALID, now)
        if known is None and self._has_enough(session, share):
            return self.refused.note(Reason.QUOTA_EXCEEDED, now)
        if not link.permissions.may_subscribe(self._beyond.names_of_filter(wanted)):
            return self.refused.note(Reason.NOT_AUTHORIZED, now)
        reason = self._beyond.grants(session.user, wanted, asked.qos)
        if reason >= Reason.UNSPECIFIED_ERROR:
            return self.refused.note(reason, now)
        if self._rules is not None and budget is not None:
            refused = self._rules.refuses(link.permissions, session.client_id, meant, budget)
            if refused:
                return self.refused.note(refused, now, by_rules=True)
        identifier = given.get("subscription_identifier", [0])[0]
        granted = GrantedSubscription(wanted, share, asked, reason, identifier, purpose)
        if known is not None and self._rules is not None:
            self._rules.unsubscribed(session, known)
        self.add(session, written, granted, is_new=known is None)
        self._archive.subscribed(session, written, asked, granted)
        if not share and (asked.retain_handling == 0 or (asked.retain_handling == 1 and known is None)):
            store = self._own if wanted.startswith("$") else self._retained
            self._delivery.offer_retained(session, store.match(wanted), granted)
        return reason

    def _meant(self, link: MqttConnection, wanted: str, given: Properties) -> ResolvedFilter | int:
        if self._rules is None:
            return ResolvedFilter(wanted)
        return self._rules.meant(link.permissions, link.session.client_id, wanted, given)

    def _unsubscribe(self, session: MqttSession, wanted: str) -> int:
        if self._rules is not None:
            wanted = self._rules.filter_of(wanted)
        granted = session.filters.pop(wanted, None)
        if granted is None:
            return Reason.NO_SUBSCRIPTION_EXISTED
        self._remove(session, granted)
        self._archive.unsubscribed(session, wanted)
        return Reason.SUCCESS

    def _has_enough(self, session: MqttSession, share: str) -> bool:
        if share and not self._shared.may_take(session.user):
            return True
        return len(session.filters) >= MAX_FILTERS or self._by_user[session.user] >= MAX_FILTERS_A_USER

    def _remove(self, session: MqttSession, granted: GrantedSubscription) -> None:
        if granted.share:
            self._shared.give_back(session.user)
        self._by_user[session.user] -= 1
        if not self._by_user[session.user]:
            del self._by_user[session.user]
        if self._subscribers.remove(session, granted):
            self._beyond.unwanted(granted.wanted)
        if self._rules is not None:
            self._rules.unsubscribed(session, granted)
