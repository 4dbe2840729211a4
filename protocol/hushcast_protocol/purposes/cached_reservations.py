"""A tree of reservations that remembers what it decided, and forgets only what a change reaches.

The paper's cache forgets all with every change, and leaves the better way for later (section V-D). A decision
depends on the clauses that cover its topic and on nothing else, so a change of one clause reaches the topics
that its filter matches.
"""

from __future__ import annotations

from hushcast_protocol.mqtt.topics.topic_filters import normal
from hushcast_protocol.purposes.clauses import Clause
from hushcast_protocol.purposes.purpose_decision import PurposeDecision, decide
from hushcast_protocol.purposes.purpose_names import Purpose
from hushcast_protocol.purposes.reservations import Images, ReservationTree, one_spelling
from hushcast_protocol.purposes.topic_tree import TopicTree

MAX_CACHED = (
    32_768  # decisions remembered: 10,000 topics with three purposes each. Then the oldest topic goes
)
MAX_CACHED_TOPIC = 128  # characters of a topic whose decisions are; with its levels, 3 kB at worst
MAX_CACHED_LEVELS = 10  # levels of one

_Asked = tuple[Purpose | None, bool]
_NOTHING: dict[_Asked, PurposeDecision] = {}


class CachedReservationTree(ReservationTree):
    """As `ReservationTree`, with decisions by topic and purpose."""

    def __init__(self, images: Images = one_spelling) -> None:
        super().__init__(images)
        self._kept: dict[str, dict[_Asked, PurposeDecision]] = {}
        self._topics = TopicTree()
        self._count = 0
        self.dropped = 0
        """How many decisions changes of reservations have dropped."""

    @property
    def remembered(self) -> int:
        """How many decisions are remembered."""
        return self._count

    def put(self, clause: Clause) -> None:
        """Keep a reservation; the same again drops nothing."""
        if self.get(clause.owner, clause.filter) != clause:
            super().put(clause)

    def decide(self, topic: str, purpose: Purpose | None, strict: bool = False) -> PurposeDecision:
        """Decide, or tell what was decided since the last change that reached the topic."""
        try:
            return self._kept[topic][purpose, strict]
        except KeyError:
            topic = normal(topic)  # what is remembered is in one spelling, as nearly all topics are
        if (known := self._kept.get(topic, _NOTHING).get((purpose, strict))) is not None:
            return known
        decision = decide(self.covering(topic), purpose, strict)
        if len(topic) <= MAX_CACHED_TOPIC and topic.count("/") < MAX_CACHED_LEVELS:
            self._keep(topic, (purpose, strict), decision)
        return decision

    def _keep(self, topic: str, asked: _Asked, decision: PurposeDecision) -> None:
        while self._count >= MAX_CACHED:
            self._forget(next(iter(self._kept)))
        kept = self._kept.get(topic)
        if kept is None:
            kept = self._kept[topic] = {}
            self._topics.add(topic)
        kept[asked] = decision
        self._count += 1

    def _forget(self, topic: str) -> int:
        count = len(self._kept.pop(topic))
        self._count -= count
        self._topics.remove(topic)
        return count

    def _changed(self, image: str) -> None:
        for topic in self._topics.matched(image):
            self.dropped += self._forget(topic)
