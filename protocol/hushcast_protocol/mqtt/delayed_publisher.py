"""Publishes delayed messages when they are due, here or in the network beyond."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from hushcast_protocol.mqtt.ingress import Ingress
from hushcast_protocol.mqtt.interfaces import OuterNetwork
from hushcast_protocol.mqtt.kept.delayed_messages import AGAIN, DelayedMessage, DelayedMessages
from hushcast_protocol.mqtt.network_publication import NetworkPublication
from hushcast_protocol.mqtt.reason_codes import FAILURE, Reason


class DelayedPublisher:
    """What their clients may publish is decided anew: lists may have changed, or the user be gone."""

    def __init__(
        self, delayed: DelayedMessages, ingress: Ingress, beyond: OuterNetwork, counts: Counter[str]
    ) -> None:
        """`counts` are events by name, of `broker_counts.COUNTS`."""
        self._delayed = delayed
        self._ingress = ingress
        self._beyond = beyond
        self._counts = counts

    def publish_due(self, now: float) -> Iterator[None]:
        """Publish what has waited long enough, one after the other."""
        for one in self._delayed.due(now):
            message, topic = one.message, one.message.topic
            if not one.sender.permissions.may_publish(self._beyond.names(topic)):
                self._counts["dropped_forbidden"] += 1
                self._delayed.done(one)
            elif not self._beyond.takes(topic):
                self._ingress.spread(message, one.sender, now)
                self._delayed.done(one)
            else:
                self._hand_over(one, now)
            yield

    def _hand_over(self, one: DelayedMessage, now: float) -> None:
        """Give a message to the network; it stays on disk until that has answered."""
        publication = NetworkPublication(one.message, one.sender.user, one.token)
        publication.delayed = one
        publication.is_spread = self._beyond.is_local_too(one.message.topic)
        if publication.is_spread and not one.is_spread:
            one.is_spread = True
            self._ingress.spread_names(one.message, one.sender, now)
        if (refused := self._beyond.publish(publication)) is not None:
            self.answered(one, publication.is_spread, refused, now)

    def answered(self, one: DelayedMessage, is_spread: bool, reason: int, now: float) -> None:
        """Take the answer of the network; where it has no room the message waits on."""
        if reason == Reason.QUOTA_EXCEEDED:
            self._delayed.again(one, now + AGAIN)
            return
        if reason >= FAILURE:
            self._counts["dropped_delayed"] += 1
        elif not is_spread:
            self._ingress.spread_names(one.message, one.sender, now)
        self._delayed.done(one)
