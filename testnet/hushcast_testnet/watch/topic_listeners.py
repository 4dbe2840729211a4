"""Who was subscribed to which topic, and when: whether a message had anybody to come to; pure."""

from __future__ import annotations

import math
from collections import OrderedDict
from typing import NamedTuple

LISTENERS_KEPT = 1_000  # subscriptions, of which the newest are kept
WAITED_FOR = 300.0  # seconds that a message waits where it was dropped for somebody who subscribes


class _Listener(NamedTuple):
    topic: str
    began: float
    ended: float


class TopicListeners:
    """The subscriptions of late; times are seconds since the testnet began."""

    def __init__(self) -> None:
        self._all: OrderedDict[str, _Listener] = OrderedDict()  # by their mailboxes' keys

    def begin(self, mailbox: str, topic: str, time: float) -> None:
        """Take in that somebody subscribed."""
        self._all[mailbox] = _Listener(topic, time, math.inf)
        if len(self._all) > LISTENERS_KEPT:
            self._all.popitem(last=False)

    def end(self, mailbox: str, time: float) -> None:
        """Take in that a subscription ended."""
        if (one := self._all.get(mailbox)) is not None:
            self._all[mailbox] = one._replace(ended=time)

    def had(self, topic: str, time: float) -> bool:
        """Tell whether a message published on a topic had a subscriber, or got one while it waited."""
        until = time + WAITED_FOR
        return any(
            one.topic == topic and one.began <= until and time <= one.ended for one in self._all.values()
        )
