"""A forest of filters: the cheaper alternative to a poset (Tarkoma and Kangasharju 2006).

Each filter stands under one filter that covers it, and of those under the same one none covers another. The
roots are those that nothing covers, which is what has to be told to a parent; what is above and below a
filter is known in part only, so levels of anonymity are not.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Set

from hushcast_protocol.brokers.filters import Filter, Sides, holds
from hushcast_protocol.brokers.roots import RootChanges, Roots
from hushcast_protocol.brokers.table import Source
from hushcast_protocol.content.topics import Topic


class _Tree:
    """A filter with what stands under it; the root of a topic has no filter."""

    __slots__ = ("children", "filter", "parent", "sides", "sources")

    def __init__(self, given: Filter | None, parent: _Tree | None) -> None:
        self.filter = given
        self.sides: Sides = () if given is None else given.sides
        self.parent = parent
        self.children: list[_Tree] = []
        self.sources: set[Source] = set()


class Forest:
    """Filters of any topics, one above each, and the sources of each."""

    def __init__(self) -> None:
        self._topics: dict[Topic, _Tree] = {}
        self._trees: dict[Filter, _Tree] = {}
        self._roots = Roots()

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
            self._place(self._topics.setdefault(given.topic, _Tree(None, None)), tree)
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
        if parent.filter is None:
            self._roots.remove(given)
        for child in tree.children:
            self._place(parent, child)
        if parent.filter is None and not parent.children:
            del self._topics[given.topic]
        return True

    def sources(self, given: Filter) -> Set[Source]:
        """Return the distinct subscribers of a filter, none if it is not here."""
        tree = self._trees.get(given)
        return frozenset() if tree is None else tree.sources

    def matching(self, topic: Topic, point: Sides) -> list[Filter]:
        """Return the filters that match a message: those that cover its `point`, in no order."""
        return [tree.filter for tree in self._matching(topic, point) if tree.filter is not None]

    def interested(self, topic: Topic, point: Sides) -> set[Source]:
        """Return the sources of all filters that match a message, given as its `point`."""
        return set().union(*(tree.sources for tree in self._matching(topic, point)))

    def roots(self) -> Set[Filter]:
        """Return the filters that no other covers: not to be kept, as it changes with them."""
        return self._roots.now

    def take_changes(self) -> RootChanges:
        """Return what changed among the roots since this was asked last, or since there was none."""
        return self._roots.take_changes()

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

    def _matching(self, topic: Topic, point: Sides) -> Iterator[_Tree]:
        """Yield what covers a point: nothing under a filter does if the filter does not."""
        waiting = [self._topics[topic]] if topic in self._topics else []
        while waiting:
            for child in waiting.pop().children:
                if holds(child.sides, point):
                    waiting.append(child)
                    yield child

    def _place(self, parent: _Tree, tree: _Tree) -> None:
        """Put a filter, with what is under it, under the deepest that covers it, first come."""
        below: _Tree | None = parent
        while below is not None:
            parent = below
            below = next((child for child in parent.children if holds(child.sides, tree.sides)), None)
        is_top = parent.filter is None
        apart = []
        for child in parent.children:
            if holds(tree.sides, child.sides):
                child.parent = tree
                tree.children.append(child)
                if is_top:
                    self._roots.remove(_given(child))
            else:
                apart.append(child)
        parent.children = [*apart, tree]
        tree.parent = parent
        if is_top:
            self._roots.add(_given(tree))


def _given(tree: _Tree) -> Filter:
    assert tree.filter is not None
    return tree.filter


def _filters(trees: Iterable[_Tree]) -> set[Filter]:
    return {tree.filter for tree in trees if tree.filter is not None}
