"""Rings: which subscription is to be looked at next, of those that ask for anything."""

from __future__ import annotations

from collections.abc import Iterator

from hushcast_protocol.brokers.edge_subscriptions import EdgeSubscription, SubscriptionKey
from hushcast_protocol.brokers.filter_index import Meter
from hushcast_protocol.content.topics import Topic


class Rings:
    """The subscriptions that ask for anything, by topic; a change of a topic makes all of them due."""

    def __init__(self) -> None:
        self._rings: dict[Topic, _Ring] = {}
        self._changed: dict[Topic, None] = {}  # where some are due

    def __bool__(self) -> bool:
        """Whether any is due."""
        return bool(self._changed)

    def __iter__(self) -> Iterator[EdgeSubscription]:
        for ring in self._rings.values():
            yield from ring.shown.values()
            yield from ring.hidden.values()

    def put(self, one: EdgeSubscription) -> None:
        """Take one that was not looked at."""
        self._rings.setdefault(one.filter.topic, _Ring()).put(one)

    def take(self, one: EdgeSubscription) -> None:
        """Take one out."""
        topic = one.filter.topic
        self._rings[topic].take(one)
        if not self._rings[topic]:
            del self._rings[topic]
            self._changed.pop(topic, None)

    def note_looked(self, one: EdgeSubscription) -> None:
        """Note that one was looked at just now."""
        ring = self._rings[one.filter.topic]
        one.looked_at = ring.changes
        ring.put(one)

    def note_changed(self, topic: Topic) -> None:
        """Have all on a topic looked at again."""
        if topic in self._rings:
            self._rings[topic].changes += 1
            self._changed[topic] = None

    def note_withdrawn(self, topic: Topic) -> None:
        """Note that something is shown no more, that may have brought messages of those looked at before."""
        if topic in self._rings:
            self._rings[topic].note_withdrawn()

    def due(self, is_shown: bool, meter: Meter) -> Iterator[EdgeSubscription]:
        """Yield those due for which something is shown, or those of the others, until the meter is over.

        Whoever gets one looks at it, and says so, before it asks for the next.
        """
        for topic in list(self._changed):
            ring = self._rings[topic]
            while not meter.is_over and (one := ring.due(is_shown)) is not None:
                yield one
            if meter.is_over:
                self._changed[topic] = self._changed.pop(topic)  # others first, the next time
                return
            if ring.due(not is_shown) is None and ring.is_through():
                del self._changed[topic]


class _Ring:
    """The subscriptions on one topic, those looked at longest ago first."""

    __slots__ = ("_is_stale", "changes", "hidden", "shown")

    def __init__(self) -> None:
        self.changes = 0
        """How often somebody came or went on the topic."""
        self.shown: dict[SubscriptionKey, EdgeSubscription] = {}
        self.hidden: dict[SubscriptionKey, EdgeSubscription] = {}
        self._is_stale = False

    def __len__(self) -> int:
        return len(self.shown) + len(self.hidden)

    def put(self, one: EdgeSubscription) -> None:
        """Take one that was looked at just now, or never."""
        self.take(one)
        (self.hidden if one.shown is None else self.shown)[one.name] = one

    def take(self, one: EdgeSubscription) -> None:
        """Take one out, if it is here."""
        self.shown.pop(one.name, None)
        self.hidden.pop(one.name, None)

    def due(self, is_shown: bool) -> EdgeSubscription | None:
        """Return the next to be looked at, of those for which something is shown or of the others."""
        first = next(iter((self.shown if is_shown else self.hidden).values()), None)
        return None if first is None or first.looked_at == self.changes else first

    def note_withdrawn(self) -> None:
        """Note that something is shown no more, that may have brought messages of those looked at before."""
        last = next(reversed(self.hidden.values()), None)
        self._is_stale |= last is not None and last.looked_at == self.changes

    def is_through(self) -> bool:
        """Tell whether all have been looked at, or begin another round if some would be told too much."""
        is_stale, self._is_stale = self._is_stale, False
        self.changes += is_stale
        return not is_stale
