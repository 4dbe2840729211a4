"""What whoever runs a broker may look at and do: its clients, and what is retained, by their names."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from typing import NamedTuple

from hushcast_protocol.base.shares import User
from hushcast_protocol.mqtt.connections import MqttConnection
from hushcast_protocol.mqtt.ingress import Ingress
from hushcast_protocol.mqtt.interfaces import OuterNetwork
from hushcast_protocol.mqtt.kept.message_history import MessageHistory
from hushcast_protocol.mqtt.kept.retained_messages import RetainedDeletion, RetainedMessages
from hushcast_protocol.mqtt.mqtt_messages import MqttMessage
from hushcast_protocol.mqtt.mqtt_session import MqttSession
from hushcast_protocol.mqtt.mqtt_sessions import Sessions
from hushcast_protocol.mqtt.network_publication import NetworkPublication
from hushcast_protocol.mqtt.reason_codes import Reason
from hushcast_protocol.mqtt.topics.topic_filters import matches, normal


class RetainedFound(NamedTuple):
    """A retained message, in whose share it is, and whether its topic travels."""

    message: MqttMessage
    user: User
    travels: bool


class OperatorActions:
    """Acts on one broker; `now` is Unix time in seconds."""

    def __init__(
        self,
        sessions: Sessions,
        retained: RetainedMessages,
        history: MessageHistory,
        ingress: Ingress,
        beyond: OuterNetwork,
        gone: Callable[[MqttConnection, float], None],
    ) -> None:
        """`gone` is how the broker hears that a connection has ended."""
        self._sessions = sessions
        self._retained = retained
        self._history = history
        self._ingress = ingress
        self._beyond = beyond
        self._gone = gone

    def sessions(self) -> list[MqttSession]:
        """Return all sessions, of clients that are here or away."""
        return list(self._sessions)

    def kick(self, session: MqttSession, forget: bool, now: float) -> None:
        """Disconnect a client, if it is here: its will is published; `forget` ends its session, too."""
        if (link := session.link) is not None:
            link.close(Reason.ADMINISTRATIVE_ACTION)
            self._gone(link, now)
        if forget:
            self._sessions.forget(session, now)

    def retained(self, wanted: str) -> Iterator[RetainedFound | None]:
        """Yield what is retained and matches a filter, and `None` after each piece of the look-up."""
        for found in self._retained.match(wanted):
            if found is None:
                yield None
            else:
                user = self._retained.user_of(found.topic)
                yield RetainedFound(found, user, self._beyond.takes(found.topic))

    def count_history(self, wanted: str, found: Counter[str]) -> Iterator[None]:
        """Count, piece by piece, the messages of histories that a filter matches by any of their names."""
        return self._history.count(self._named(wanted), found)

    def delete_history(self, wanted: str, found: Counter[str]) -> Iterator[None]:
        """Delete these piece by piece, and count them."""
        return self._history.delete(self._named(wanted), found)

    def _named(self, wanted: str) -> Callable[[MqttMessage], bool]:
        wanted = normal(wanted)
        return lambda message: any(matches(wanted, name) for name in self._beyond.names(message.topic).every)

    def delete_retained(self, topic: str, now: float) -> RetainedDeletion:
        """Delete what is retained for a topic as its publisher would: by an empty message."""
        if self._retained.get(topic) is None:
            return RetainedDeletion.GONE
        user, deletion = self._retained.user_of(topic), MqttMessage(topic, b"", 1, True)
        if not self._beyond.takes(topic):
            self._ingress.spread(deletion, None, now)
            return RetainedDeletion.DONE
        if user is None:
            self._ingress.spread_names(deletion, None, now)
            return RetainedDeletion.HERE_ALONE
        publication = NetworkPublication(deletion, user)
        # What waits for the network under `hush/` is retained here with its answer, and so is its deletion.
        publication.is_spread = publication.is_owed = self._beyond.is_local_too(topic)
        publication.deletes_here = not publication.is_spread
        if self._beyond.publish(publication) is not None:
            return RetainedDeletion.REFUSED
        if publication.is_spread:
            self._ingress.spread_names(deletion, None, now)
        return RetainedDeletion.TRAVELS
