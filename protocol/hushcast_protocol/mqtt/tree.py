"""The tree of topic filters: which of them match a topic, in a few steps however many there are.

Section 4.7 of the standard: `+` stands for one level, `#` for any number of levels at the end, none
included; neither stands for the first level of a topic that begins with `$`.
"""

from __future__ import annotations

from typing import Generic, TypeVar

T = TypeVar("T")


class _Node(Generic[T]):
    """A level: what follows it, what ends here, and what goes on with `#`."""

    __slots__ = ("below", "here", "rest")

    def __init__(self) -> None:
        self.below: dict[str, _Node[T]] = {}
        self.here: T | None = None
        self.rest: T | None = None

    @property
    def is_empty(self) -> bool:
        return not self.below and self.here is None and self.rest is None

    def gather(self, found: list[T], has_first: bool) -> None:
        """Add all values from here on, at the first level without those of topics that begin with `$`."""
        if self.here is not None:
            found.append(self.here)
        if self.rest is not None:
            found.append(self.rest)
        for name, below in self.below.items():
            if has_first or not name.startswith("$"):
                below.gather(found, has_first=True)


class FilterTree(Generic[T]):
    """Values by topic filter, one each. Filters are valid ones, without `$share/GROUP/`."""

    def __init__(self) -> None:
        self._root: _Node[T] = _Node()

    def get(self, wanted: str) -> T | None:
        """Return the value of a filter, `None` if it has none."""
        node = self._root
        for level in wanted.split("/"):
            if level == "#":
                return node.rest
            following = node.below.get(level)
            if following is None:
                return None
            node = following
        return node.here

    def put(self, wanted: str, value: T) -> None:
        """Give a filter a value."""
        node = self._root
        for level in wanted.split("/"):
            if level == "#":
                node.rest = value
                return
            following = node.below.get(level)
            if following is None:
                following = node.below[level] = _Node()
            node = following
        node.here = value

    def remove(self, wanted: str) -> None:
        """Take a filter's value away, and the levels that nothing needs any more."""
        path: list[tuple[_Node[T], str]] = []
        node = self._root
        for level in wanted.split("/"):
            if level == "#":
                node.rest = None
                break
            following = node.below.get(level)
            if following is None:
                return
            path.append((node, level))
            node = following
        else:
            node.here = None
        for parent, level in reversed(path):
            if not parent.below[level].is_empty:
                break
            del parent.below[level]

    def match(self, topic: str) -> list[T]:
        """Return the values of all filters that match a topic name."""
        found: list[T] = []
        nodes = [self._root]
        may_be_wild = not topic.startswith("$")
        for level in topic.split("/"):
            following: list[_Node[T]] = []
            for node in nodes:
                below = node.below
                if may_be_wild:
                    if node.rest is not None:
                        found.append(node.rest)
                    if (step := below.get("+")) is not None:
                        following.append(step)
                if (step := below.get(level)) is not None:
                    following.append(step)
            if not following:
                return found
            nodes = following
            may_be_wild = True
        for node in nodes:
            if node.here is not None:
                found.append(node.here)
            if node.rest is not None:
                found.append(node.rest)
        return found

    def intersecting(self, wanted: str) -> list[T]:
        """Return the values of all filters that match some topic which the filter `wanted` matches, too."""
        found: list[T] = []
        nodes = [self._root]
        may_be_wild = not wanted.startswith("$")
        for number, level in enumerate(wanted.split("/")):
            if level == "#":
                for node in nodes:
                    node.gather(found, has_first=number > 0)
                return found
            following: list[_Node[T]] = []
            for node in nodes:
                below = node.below
                if may_be_wild and node.rest is not None:
                    found.append(node.rest)
                if level == "+":
                    following += [step for name, step in below.items() if number or not name.startswith("$")]
                    continue
                if may_be_wild and (step := below.get("+")) is not None:
                    following.append(step)
                if (step := below.get(level)) is not None:
                    following.append(step)
            nodes = following
            may_be_wild = True
        for node in nodes:
            if node.here is not None:
                found.append(node.here)
            if node.rest is not None:
                found.append(node.rest)
        return found

    def __bool__(self) -> bool:
        """Tell whether there is any filter."""
        return not self._root.is_empty
