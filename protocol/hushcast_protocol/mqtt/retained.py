"""Retained messages: the last one of each topic that was published to be kept (section 3.3.1.3)."""

from __future__ import annotations

from collections.abc import Iterator

from hushcast_protocol.mqtt.limits import MAX_RETAINED, MAX_RETAINED_BYTES
from hushcast_protocol.mqtt.messages import Message


class _Level:
    __slots__ = ("below", "message", "order")

    def __init__(self) -> None:
        self.below: dict[str, _Level] = {}
        self.message: Message | None = None
        self.order = 0
        """Of the message among all that were retained."""


class Retained:
    """The retained messages, as a tree of topic levels, which filters are held against."""

    def __init__(self) -> None:
        self._root = _Level()
        self.count = 0
        self.size = 0  # bytes
        self._order = 0

    def get(self, topic: str) -> Message | None:
        """Return what is retained for a topic."""
        node: _Level | None = self._root
        for level in topic.split("/"):
            assert node is not None
            node = node.below.get(level)
            if node is None:
                return None
        assert node is not None
        return node.message

    def has_room_for(self, message: Message) -> bool:
        """Tell whether a message can be retained, in place of the one of its topic."""
        before = self.get(message.topic)
        count = self.count + (before is None)
        size = self.size + message.size - (before.size if before else 0)
        return count <= MAX_RETAINED and size <= MAX_RETAINED_BYTES

    def put(self, message: Message) -> Message | None:
        """Retain a message for which there is room; return the one that it replaces."""
        node = self._root
        for level in message.topic.split("/"):
            following = node.below.get(level)
            if following is None:
                following = node.below[level] = _Level()
            node = following
        before, node.message = node.message, message
        self._order += 1
        node.order = self._order
        self.count += before is None
        self.size += message.size - (before.size if before else 0)
        return before

    def remove(self, topic: str) -> Message | None:
        """Forget what is retained for a topic, and return it."""
        path: list[tuple[_Level, str]] = []
        node = self._root
        for level in topic.split("/"):
            following = node.below.get(level)
            if following is None:
                return None
            path.append((node, level))
            node = following
        before, node.message = node.message, None
        for parent, level in reversed(path):
            child = parent.below[level]
            if child.below or child.message is not None:
                break
            del parent.below[level]
        if before is not None:
            self.count -= 1
            self.size -= before.size
        return before

    def match(self, wanted: str) -> Iterator[Message]:
        """Give the messages whose topics a filter matches, those of one branch together.

        Whoever takes them may take their time: what is retained after this call is left out.
        """
        return self._match(wanted, self._order)

    def _match(self, wanted: str, newest: int) -> Iterator[Message]:
        nodes = [(self._root, True)]
        levels = wanted.split("/")
        rest = levels[-1] == "#"
        if rest:
            levels.pop()
        for level in levels:
            if level == "+":
                nodes = [
                    (child, False)
                    for node, is_root in nodes
                    for name, child in node.below.items()
                    if not (is_root and name.startswith("$"))
                ]
            else:
                nodes = [(node.below[level], False) for node, _ in nodes if level in node.below]
        for node, is_root in nodes:
            if rest:
                yield from _all(node, is_root, newest)
            elif node.message is not None and node.order <= newest:
                yield node.message

    def expired(self, now: float) -> list[Message]:
        """Return those whose time is over."""
        return [message for message in _all(self._root, False, self._order) if message.is_expired(now)]

    def __iter__(self) -> Iterator[Message]:
        return _all(self._root, False, self._order)


def _all(root: _Level, is_root: bool, newest: int) -> Iterator[Message]:
    """Give a node's message and all below it; under the root, none of topics that begin with `$`."""
    waiting = [root]
    while waiting:
        node = waiting.pop()
        if node.message is not None and node.order <= newest:
            yield node.message
        waiting += [
            child
            for name, child in node.below.items()
            if not (is_root and node is root and name.startswith("$"))
        ]
