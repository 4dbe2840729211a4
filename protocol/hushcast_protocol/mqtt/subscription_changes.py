"""SUBSCRIBE and UNSUBSCRIBE: what is granted, what is refused, and the retained messages that follow."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Iterator
from itertools import islice

from hushcast_protocol.base.budget import Budget
from hushcast_protocol.base.shares import Shares
from hushcast_protocol.mqtt.connections import MqttConnection
from hushcast_protocol.mqtt.delivery import MessageDelivery
from hushcast_protocol.mqtt.interfaces import OuterNetwork, ResolvedFilter, UsageRules
from hushcast_protocol.mqtt.kept.message_history import since_of
from hushcast_protocol.mqtt.kept.retained_messages import FoundMessages, RetainedMessages
from hushcast_protocol.mqtt.kept.session_archive import SessionArchive
from hushcast_protocol.mqtt.limits import MAX_TOPIC, PIECE, MqttLimits
from hushcast_protocol.mqtt.mqtt_session import GrantedSubscription, MqttSession
from hushcast_protocol.mqtt.reason_codes import Reason
from hushcast_protocol.mqtt.refusals import RefusalCause
from hushcast_protocol.mqtt.subscribers import Subscribers
from hushcast_protocol.mqtt.topics.topic_filters import MAX_LEVELS, split_share
from hushcast_protocol.mqtt.wire.packets import (
    Properties,
    RequestedSubscription,
    SubAck,
    Subscribe,
    UnsubAck,
    Unsubscribe,
)

_BEYOND = {
    Reason.QUOTA_EXCEEDED: RefusalCause.FULL_NETWORK,
    Reason.TOPIC_FILTER_INVALID: RefusalCause.UNKNOWN,
    Reason.WILDCARD_SUBSCRIPTIONS_NOT_SUPPORTED: RefusalCause.UNSUPPORTED,
}
"""Why the network beyond grants no subscription, by its reason."""


class SubscriptionChanges:
    """The subscriptions of all sessions, as their clients and their ends change them."""

    def __init__(
        self,
        subscribers: Subscribers,
        delivery: MessageDelivery,
        retained: tuple[RetainedMessages, RetainedMessages],
        archive: SessionArchive,
        beyond: OuterNetwork,
        rules: UsageRules | None,
        limits: MqttLimits,
    ) -> None:
        """`retained` are the messages that clients had retained, and the broker's own under `$`."""
        self._subscribers = subscribers
        self._delivery = delivery
        self._archive = archive
        self._ledger = archive.ledger
        self._beyond = beyond
        self._rules = rules
        self._retained, self._own = retained
        self._by_user: Counter[str] = Counter()
        self._limits = limits
        self._ended: deque[tuple[MqttSession, Iterator[GrantedSubscription]]] = deque()
        self._shared = Shares(limits.shared_filters)
        self._refusals = delivery.refusals

    def subscribe(self, link: MqttConnection, packet: Subscribe, now: float) -> None:
        """Take a SUBSCRIBE."""
        session = link.session
        before = self._ledger.made
        budget = None if self._rules is None else self._rules.budget()
        reasons = [
            self._subscribe(link, asked, packet.properties, budget, now) for asked in packet.subscriptions
        ]
        mark = self._ledger.made if self._ledger.made != before else 0
        acknowledgement = SubAck(packet.packet_id, reasons)
        # Behind what is kept: who asked for that knows by it that this is all.
        waits = max(reasons) < Reason.UNSPECIFIED_ERROR and since_of(packet.properties)
        behind, last = _saying(link, acknowledgement, mark), next(reversed(session.filters.values()), None)
        if not waits or last is None or not self._delivery.offer_retained(session, behind, last):
            link.send_in_order(acknowledgement, mark)
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
        self._count(session.user, int(is_new))
        if is_new and granted.share:
            self._shared.take(session.user)
        session.filters[wanted] = granted
        if self._subscribers.add(session, granted):
            self._beyond.wanted(session.user, granted.wanted)
        if self._rules is not None:
            self._rules.subscribed(session, granted)

    def remove_all(self, session: MqttSession) -> None:
        """Take all subscriptions of a session that ends away, which the disk knows of already.

        It gets nothing more; `go_on` forgets most of them piece by piece, as there may be thousands.
        """
        filters, session.filters = session.filters, {}
        left: list[GrantedSubscription] = []
        for granted in filters.values():
            if granted.share:  # or a message might be its turn's
                self._remove(session, granted)
            else:
                left.append(granted)
        self._count(session.user, -len(left))
        if left:
            self._ended.append((session, iter(left)))

    @property
    def has_more(self) -> bool:
        """Whether something is left to `go_on` with."""
        return bool(self._ended)

    def go_on(self) -> None:
        """Forget the next of those that sessions had when they ended."""
        if self._ended:
            session, left = self._ended[0]
            piece = list(islice(left, PIECE))
            for granted in piece:
                self._forget(session, granted)
            if len(piece) < PIECE:
                self._ended.popleft()

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
            return self._refuse(session, asked.filter, RefusalCause.PURPOSES, meant, now)
        written, purpose = meant
        share, wanted = split_share(written) or ("", written)
        known = session.filters.get(written)
        if wanted.count("/") >= MAX_LEVELS or len(asked.filter) > MAX_TOPIC:
            return self._refuse(session, wanted, RefusalCause.UNKNOWN, Reason.TOPIC_FILTER_INVALID, now)
        if known is None and (full := self._full(session, share)) is not None:
            return self._refuse(session, wanted, full, Reason.QUOTA_EXCEEDED, now)
        if not link.permissions.may_subscribe(self._beyond.names_of_filter(wanted)):
            return self._refuse(session, wanted, RefusalCause.FORBIDDEN, Reason.NOT_AUTHORIZED, now)
        reason = self._beyond.grants(session.user, wanted, asked.qos)
        if reason >= Reason.UNSPECIFIED_ERROR:
            return self._refuse(session, wanted, _BEYOND[Reason(reason)], reason, now)
        if self._rules is not None and budget is not None:
            refused = self._rules.refuses(link.permissions, session.client_id, meant, budget)
            if refused:
                return self._refuse(session, wanted, RefusalCause.PURPOSES, refused, now)
        identifier = given.get("subscription_identifier", [0])[0]
        granted = GrantedSubscription(wanted, share, asked, reason, identifier, purpose)
        if known is not None and self._rules is not None:
            self._rules.unsubscribed(session, known)
        self.add(session, written, granted, is_new=known is None)
        self._archive.subscribed(session, written, asked, granted)
        if not share and (asked.retain_handling == 0 or (asked.retain_handling == 1 and known is None)):
            store = self._own if wanted.startswith("$") else self._retained
            found = store.match(wanted)
            if since := since_of(given):
                history = self._delivery.history
                found = _both(found, history.since(wanted, since), history.keeps)
            self._delivery.offer_retained(session, found, granted)
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

    def _full(self, session: MqttSession, share: str) -> RefusalCause | None:
        """Return which bound a session has reached, `None` if it may have one more."""
        if len(session.filters) >= self._limits.filters:
            return RefusalCause.FULL
        if self._by_user[session.user] >= self._limits.user_filters:
            return RefusalCause.FULL_USER
        is_full = share and not self._shared.may_take(session.user)
        return RefusalCause.FULL_SHARED if is_full else None

    def _refuse(self, session: MqttSession, wanted: str, cause: RefusalCause, reason: int, now: float) -> int:
        self._refusals.note(cause, now, session.user, session.client_id, wanted)
        return reason

    def _remove(self, session: MqttSession, granted: GrantedSubscription) -> None:
        if granted.share:
            self._shared.give_back(session.user)
        self._count(session.user, -1)
        self._forget(session, granted)

    def _count(self, user: str, more: int) -> None:
        self._by_user[user] += more
        if not self._by_user[user]:
            del self._by_user[user]

    def _forget(self, session: MqttSession, granted: GrantedSubscription) -> None:
        if self._subscribers.remove(session, granted):
            self._beyond.unwanted(granted.wanted)
        if self._rules is not None:
            self._rules.unsubscribed(session, granted)


def _both(retained: FoundMessages, history: FoundMessages, keeps: Callable[[str], bool]) -> FoundMessages:
    """Give what is retained of topics without a history, then what the others have."""
    for message in retained:
        if message is None or not keeps(message.topic):
            yield message
    yield from history


def _saying(link: MqttConnection, packet: SubAck, mark: int) -> FoundMessages:
    """Give no message, and send a packet where it is this one's turn."""
    link.send_in_order(packet, mark)
    yield from ()
