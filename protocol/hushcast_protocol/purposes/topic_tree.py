"""A tree of topic names: which of them a filter matches, without a look at the others."""

from __future__ import annotations


class _Node:
    """A level: what follows it, and the topic that ends here."""

    __slots__ = ("below", "here")

    def __init__(self) -> None:
        self.below: dict[str, _Node] = {}
        self.here: str | None = None

    def gather(self, found: list[str]) -> None:
        """Add all topics from here on."""
        if self.here is not None:
            found.append(self.here)
        for below in self.below.values():
            below.gather(found)


class TopicTree:
    """Topic names, each once."""

    def __init__(self) -> None:
        self._root = _Node()

    def add(self, topic: str) -> None:
        """Add a topic name."""
        node = self._root
        for level in topic.split("/"):
            following = node.below.get(level)
            if following is None:
                following = node.below[level] = _Node()
            node = following
        node.here = topic

    def remove(self, topic: str) -> None:
        """Take a topic name of the tree away, and the levels that no other needs."""
        path: list[tuple[_Node, str]] = []
        node = self._root
        for level in topic.split("/"):
            path.append((node, level))
            node = node.below[level]
        node.here = None
        for parent, level in reversed(path):
            below = parent.below[level]
            if below.below or below.here is not None:
                break
            del parent.below[level]

    def matched(self, wanted: str) -> list[str]:
        """Return the topics that a valid filter matches."""
        nodes = [self._root]
        for number, level in enumerate(wanted.split("/")):
            if level in ("+", "#") and number == 0:  # these do not stand for a level that begins with `$`
                nodes = [step for name, step in self._root.below.items() if not name.startswith("$")]
            elif level == "+":
                nodes = [step for node in nodes for step in node.below.values()]
            elif level != "#":
                nodes = [step for node in nodes if (step := node.below.get(level)) is not None]
        if wanted.endswith("#"):
            found: list[str] = []
            for node in nodes:
                node.gather(found)
            return found
        return [node.here for node in nodes if node.here is not None]
