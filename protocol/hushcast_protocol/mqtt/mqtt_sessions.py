"""Sessions as clients come and go: begun, taken over, resumed, left waiting, ended (section 3.1.2.4, 4.1)."""

from __future__ import annotations

from collections.abc import Iterator

from hushcast_protocol.base.shares import Shares
from hushcast_protocol.mqtt import wills
from hushcast_protocol.mqtt.connections import MqttConnection
from hushcast_protocol.mqtt.delivery import MessageDelivery
from hushcast_protocol.mqtt.ingress import Ingress
from hushcast_protocol.mqtt.interfaces import OuterNetwork
from hushcast_protocol.mqtt.kept.session_archive import SessionArchive
from hushcast_protocol.mqtt.limits import MAX_SESSION_SECONDS
from hushcast_protocol.mqtt.mqtt_messages import may_be_published, message_of
from hushcast_protocol.mqtt.mqtt_session import MqttSession
from hushcast_protocol.mqtt.reason_codes import PacketError, Reason
from hushcast_protocol.mqtt.subscription_changes import SubscriptionChanges
from hushcast_protocol.mqtt.topics.permissions import Permissions

SessionKey = tuple[str, str]
"""User and client identifier."""


class Sessions:
    """All sessions, by user and client identifier."""

    def __init__(
        self,
        subscribing: SubscriptionChanges,
        incoming: Ingress,
        delivery: MessageDelivery,
        archive: SessionArchive,
        beyond: OuterNetwork,
        most: int,
    ) -> None:
        """`most` of them may outlive their connections, each user its share."""
        self._names = beyond.names
        self._subscribing = subscribing
        self._incoming = incoming
        self._delivery = delivery
        self._archive = archive
        self._sessions: dict[SessionKey, MqttSession] = {}
        self._away: dict[MqttSession, None] = {}
        self._places = Shares(most)
        self._stops = False

    def __len__(self) -> int:
        """Return how many there are, of clients that are here or away."""
        return len(self._sessions)

    def __iter__(self) -> Iterator[MqttSession]:
        """Yield all of them."""
        return iter(self._sessions.values())

    def has_room_for(self, key: SessionKey, expiry: int) -> bool:
        """Tell whether a client can get a session that outlives its connection, if it asked for that."""
        known = self._sessions.get(key)
        if not expiry or (known is not None and known.is_durable):
            return True
        return self._places.may_take(key[0])

    def is_here(self, key: SessionKey) -> bool:
        """Tell whether a client has a connection, which another one of its takes over."""
        session = self._sessions.get(key)
        return session is not None and session.link is not None

    def begin(
        self, key: SessionKey, permissions: Permissions, expiry: int, starts_anew: bool, now: float
    ) -> tuple[MqttSession, bool]:
        """Return a client's session, and whether it had it already; another link of it is closed."""
        session = self._sessions.get(key)
        if session is not None and session.link is not None:
            link, session.link = session.link, None
            if wills.survives(session, starts_anew):
                session.will = None
            link.close(Reason.SESSION_TAKEN_OVER)
            self._leave(session, now)
            session = self._sessions.get(key)
        if session is not None and starts_anew:
            self._end(session, now)
            session = None
        if session is not None:
            if not expiry:  # what is on disk would outlive it
                self._leave_disk(session)
            session.expiry = expiry
            session.will = None
            self._away.pop(session, None)
            return session, True
        session = MqttSession(permissions, key[1], self._archive.new_number(), expiry)
        self._sessions[key] = session
        if session.is_durable:
            self._places.take(session.user)
        return session, False

    def set_expiry(self, session: MqttSession, asked: int) -> None:
        """Let a client that leaves set its session's expiry; `PacketError` if it began with none."""
        if asked and not session.expiry:
            raise PacketError(Reason.PROTOCOL_ERROR, "a session expiry for a session that ends now")
        session.expiry = min(asked, MAX_SESSION_SECONDS)

    def gone(self, link: MqttConnection, now: float) -> None:
        """Take note that a link ended; a will that was not deleted before is due.

        Where the program stops, the next start takes note (section 3.1.2.5): it has the time for a will to
        travel.
        """
        session = link.session
        if session.link is link and not (self._stops and session.will is not None):
            session.link = None
            self._leave(session, now)

    def forget(self, session: MqttSession, now: float) -> None:
        """End the session of a client that is away; one that ended already stays so."""
        if self._sessions.get((session.user, session.client_id)) is session:
            self._end(session, now)

    def stop(self) -> None:
        """Leave what has a will as it is on disk, whoever goes from now on."""
        self._stops = True

    def restore(self, session: MqttSession) -> None:
        """Take a session from disk."""
        self._sessions[session.user, session.client_id] = session
        if session.is_durable:
            self._places.take(session.user)
        self._away[session] = None

    def resume(self, now: float) -> Iterator[None]:
        """Begin: sessions whose clients were here when the program ended have lost them now."""
        for session in list(self._away):
            if not session.is_durable:  # its will alone was left
                self._end(session, now)
                yield
            elif session.ends is None:
                self._wait(session, now)
                yield

    def tick(self, now: float) -> Iterator[None]:
        """Publish wills and end sessions whose time has come, one after the other."""
        for session in list(self._away):
            if session.will_due is not None and session.will_due <= now:
                self._publish_will(session, now)
                self._archive.session(session)
                yield
            # Its client may have come back meanwhile.
            if session in self._away and session.ends is not None and session.ends <= now:
                self._end(session, now)
                yield

    def _leave(self, session: MqttSession, now: float) -> None:
        session.offered.clear()
        if session.expiry:
            self._away[session] = None
            self._wait(session, now)
        else:
            self._end(session, now)

    def _wait(self, session: MqttSession, now: float) -> None:
        session.ends = now + session.expiry
        session.will_due = wills.due(session, now)
        if session.will_due is not None and session.will_due <= now:
            self._publish_will(session, now)
        self._archive.session(session)

    def _leave_disk(self, session: MqttSession) -> None:
        if session.is_durable:
            self._archive.ended(session)
            self._places.give_back(session.user)

    def _end(self, session: MqttSession, now: float) -> None:
        self._leave_disk(session)
        self._away.pop(session, None)
        self._sessions.pop((session.user, session.client_id), None)
        self._subscribing.remove_all(session)
        self._delivery.ended(session, now)
        self._publish_will(session, now)
        self._archive.session(session)

    def _publish_will(self, session: MqttSession, now: float) -> None:
        will, session.will, session.will_due = session.will, None, None
        if will is None:
            return
        if not may_be_published(will.topic) or not session.permissions.may_publish(self._names(will.topic)):
            self._delivery.counts["dropped_forbidden"] += 1
            return
        message = message_of(will.topic, will.payload, will.qos, will.retain, will.properties, now)
        self._incoming.originate(message, session, now)
