"""Retained messages: the last one of each topic that was published to be kept (section 3.3.1.3)."""

from __future__ import annotations

from collections.abc import Iterator
from enum import Enum, auto

from hushcast_protocol.base.shares import Shares, User
from hushcast_protocol.mqtt.limits import MAX_RETAINED, MAX_RETAINED_BYTES, PIECE
from hushcast_protocol.mqtt.mqtt_messages import MqttMessage

FoundMessages = Iterator[MqttMessage | None]
"""Messages as a look-up comes to them, and `None` after each piece of it: whoever takes them may pause."""


class RetainedDeletion(Enum):
    """What becomes of a retained message that whoever runs a broker deletes."""

    DONE = auto()
    """Its topic is this broker's own: all who are subscribed hear of it, as of any deletion."""
    TRAVELS = auto()
    """It was published here to a topic of the network: other houses delete it, too, once they hear."""
    HERE_ALONE = auto()
    """It came over the network: the house that published it has it still, and may publish it again."""
    REFUSED = auto()
    """The network beyond does not take the deletion now: nothing was deleted."""
    GONE = auto()
    """Nothing is retained for the topic any more."""


class _Level:
    __slots__ = ("below", "message", "order", "user")

    def __init__(self) -> None:
        self.below: dict[str, _Level] = {}
        self.message: MqttMessage | None = None
        self.order = 0
        """Of the message among all that were retained."""
        self.user: User = None
        """Whose share the message is part of: of who published it last."""


class RetainedMessages:
    """The retained messages, as a tree of topic levels, which filters are held against."""

    def __init__(self, most: int = MAX_RETAINED, most_bytes: int = MAX_RETAINED_BYTES) -> None:
        """`most` messages, with as many bytes, each user its share."""
        self._root = _Level()
        self._places = Shares(most)
        self._bytes = Shares(most_bytes)
        self._order = 0

    @property
    def count(self) -> int:
        """How many there are."""
        return self._places.taken

    @property
    def size(self) -> int:
        """Bytes of all of them."""
        return self._bytes.taken

    def get(self, topic: str) -> MqttMessage | None:
        """Return what is retained for a topic."""
        level = self._level(topic)
        return None if level is None else level.message

    def user_of(self, topic: str) -> User:
        """Return who published what is retained for a topic."""
        level = self._level(topic)
        return None if level is None else level.user

    def has_room_for(self, message: MqttMessage, user: User) -> bool:
        """Tell whether a user's message can be retained, in place of the one of its topic."""
        level = self._level(message.topic)
        own = level.message if level is not None and level.user == user else None
        more = message.size - (own.size if own is not None else 0)
        if own is None and not self._places.may_take(user):
            return False
        return more <= 0 or self._bytes.may_take(user, more)

    def put(self, message: MqttMessage, user: User) -> MqttMessage | None:
        """Retain a user's message for which there is room; return the one that it replaces."""
        node = self._root
        for level in message.topic.split("/"):
            following = node.below.get(level)
            if following is None:
                following = node.below[level] = _Level()
            node = following
        before = self._take_out(node)
        self._order += 1
        node.message, node.order, node.user = message, self._order, user
        self._places.take(user)
        self._bytes.take(user, message.size)
        return before

    def remove(self, topic: str) -> MqttMessage | None:
        """Forget what is retained for a topic, and return it."""
        path: list[tuple[_Level, str]] = []
        node = self._root
        for level in topic.split("/"):
            following = node.below.get(level)
            if following is None:
                return None
            path.append((node, level))
            node = following
        before = self._take_out(node)
        for parent, level in reversed(path):
            child = parent.below[level]
            if child.below or child.message is not None:
                break
            del parent.below[level]
        return before

    def match(self, wanted: str) -> FoundMessages:
        """Give the messages whose topics a filter matches, those of one branch together.

        Whoever takes them may take their time: what is retained after this call is left out.
        """
        return self._match(wanted, self._order)

    def walk(self) -> FoundMessages:
        """Give all messages, as `match`, and those of topics that begin with `$`."""
        return self._match("", self._order)

    def _match(self, wanted: str, newest: int) -> FoundMessages:
        """Walk the levels that a filter matches; without a filter all."""
        levels = wanted.split("/") if wanted else ["#"]
        rest = levels[-1] == "#"
        if rest:
            levels.pop()
        depth = len(levels)
        # Of each level on the way down those that are still to be looked at: little, however many match.
        waiting = [iter([self._root])]
        looked = 0
        while waiting:
            node = next(waiting[-1], None)
            if node is None:
                waiting.pop()
                continue
            looked += 1
            if looked % PIECE == 0:
                yield None
            at = len(waiting) - 1
            if at < depth and levels[at] != "+":
                below = node.below.get(levels[at])
                waiting.append(iter(() if below is None else (below,)))
                continue
            if at >= depth and node.message is not None and node.order <= newest:
                yield node.message
            if at < depth or rest:
                waiting.append(iter(_below(node, spares_own=at == 0 and wanted != "")))

    def _level(self, topic: str) -> _Level | None:
        node = self._root
        for level in topic.split("/"):
            following = node.below.get(level)
            if following is None:
                return None
            node = following
        return node

    def _take_out(self, level: _Level) -> MqttMessage | None:
        before, level.message = level.message, None
        if before is not None:
            self._places.give_back(level.user)
            self._bytes.give_back(level.user, before.size)
        return before


def _below(node: _Level, spares_own: bool) -> list[_Level]:
    """Return the levels that follow; `spares_own`: none that begin with `$`."""
    return [one for name, one in node.below.items() if not (spares_own and name.startswith("$"))]
