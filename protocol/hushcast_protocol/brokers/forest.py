"""A forest of filters: the cheaper alternative to a poset (Tarkoma and Kangasharju 2006).

Each filter stands under one filter that covers it, and of those under the same one none covers another. The
roots are those that nothing covers, which is what has to be told to a parent; what is above and below a
filter is known in part only, so levels of anonymity are not.
"""

from __future__ import annotations

from collections.abc import Iterable, Set

from hushcast_protocol.brokers.filters import Filter, covers
from hushcast_protocol.brokers.poset import Source
from hushcast_protocol.content.topics import Topic


class _Tree:
    """A filter with what stands under it; the root of a topic has no filter."""

    __slots__ = ("children", "filter", "parent", "sources")

    def __init__(self, given: Filter | None, parent: _Tree | None) -> None:
        self.filter = given
        self.parent = parent
        self.children: list[_Tree] = []
        self.sources: set[Source] = set()


class Forest:
    """Filters of any topics, one above each, and the sources of each."""

    def __init__(self) -> None:
        self._topics: dict[Topic, _Tree] = {}
        self._trees: dict[Filter, _Tree] = {}

    def __len__(self) -> int:
        """The number of distinct filters."""
        return len(self._trees)

    def __contains__(self, given: Filter) -> bool:
        return given in self._trees

    def insert(self, given: Filter, source: Source) -> bool:
        """Add a source to a filter; return whether the filter is new."""
        tree = self._trees.get(given)
        is_new = tree is None
        if tree is None:
            tree = self._trees[given] = _Tree(given, None)
            _place(self._topics.setdefault(given.topic, _Tree(None, None)), tree)
        tree.sources.add(source)
        return is_new

    def remove(self, given: Filter, source: Source) -> bool:
        """Take a source from a filter; return whether the filter went with it, its last.

        Raises `KeyError` if the filter does not have the source.
        """
        tree = self._trees[given]
        tree.sources.remove(source)
        if tree.sources:
            return False
        del self._trees[given]
        parent = tree.parent
        assert parent is not None
        parent.children.remove(tree)
        for child in tree.children:
            _place(parent, child)
        if parent.filter is None and not parent.children:
            del self._topics[given.topic]
        return True

    def sources(self, given: Filter) -> Set[Source]:
        """Return the distinct subscribers of a filter, none if it is not here."""
        tree = self._trees.get(given)
        return frozenset() if tree is None else tree.sources

    def roots(self) -> set[Filter]:
        """Return the filters that no other covers."""
        return _filters(tree for root in self._topics.values() for tree in root.children)

    def predecessors(self, given: Filter) -> set[Filter]:
        """Return the filters above one that is here: some of those that cover it."""
        found, above = [], self._trees[given].parent
        while above is not None:
            found.append(above)
            above = above.parent
        return _filters(found)

    def immediate_successors(self, given: Filter) -> set[Filter]:
        """Return the filters directly below one that is here: some of those that it covers."""
        return _filters(self._trees[given].children)


def _place(parent: _Tree, tree: _Tree) -> None:
    """Put a filter, with what is under it, under the deepest that covers it, first come."""
    assert tree.filter is not None
    below: _Tree | None = parent
    while below is not None:
        parent = below
        below = next((child for child in parent.children if _covers(child, tree)), None)
    apart = []
    for child in parent.children:
        if _covers(tree, child):
            child.parent = tree
            tree.children.append(child)
        else:
            apart.append(child)
    parent.children = [*apart, tree]
    tree.parent = parent


def _covers(one: _Tree, other: _Tree) -> bool:
    assert one.filter is not None
    assert other.filter is not None
    return covers(one.filter, other.filter)


def _filters(trees: Iterable[_Tree]) -> set[Filter]:
    return {tree.filter for tree in trees if tree.filter is not None}
