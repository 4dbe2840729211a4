"""The tree of topic filters: which of them match a topic, in a few steps however many there are.

Section 4.7 of the standard: `+` stands for one level, `#` for any number of levels at the end, none
included; neither stands for the first level of a topic that begins with `$`.

Levels that nothing branches from are one step (a radix tree). So a look-up takes at most two steps for each
filter, however long filters are and however late they turn out not to match.
"""

from __future__ import annotations

from typing import Any, Generic, TypeVar

from hushcast_protocol.base.budget import Budget

T = TypeVar("T")


class _Node(Generic[T]):
    """A place where filters branch or end: the levels that lead to it, what follows, what ends here."""

    __slots__ = ("below", "here", "length", "levels", "named", "rest")

    def __init__(self, levels: tuple[str, ...]) -> None:
        """`levels` lead here from the place before; the first names this place there."""
        self.below: dict[str, _Node[T]] = _NOTHING_BELOW
        self.here: T | None = None
        self.rest: T | None = None
        """What goes on with `#`."""
        self.lead_by(levels)

    def put_below(self, node: _Node[T]) -> None:
        if self.below is _NOTHING_BELOW:
            self.below = {}
        self.below[node.levels[0]] = node

    def lead_by(self, levels: tuple[str, ...]) -> None:
        self.levels = levels
        self.length = len(levels)
        """Where it is 1, nothing has to be looked at but the level by which it is found."""
        self.named = tuple([(at, levels[at]) for at in range(1, self.length) if levels[at] != "+"])
        """Those behind the first that are no `+`, with where they are."""

    def is_led_to(self, topic: list[str], at: int) -> bool:
        """Tell whether a topic whose level `at` is the first of ours goes on as ours do."""
        if at + len(self.levels) > len(topic):
            return False
        for number, level in self.named:  # noqa: SIM110 - a generator takes longer
            if topic[at + number] != level:
                return False
        return True

    @property
    def is_needed(self) -> bool:
        return self.here is not None or self.rest is not None or len(self.below) > 1

    def gather(self, found: list[T], has_first: bool, budget: Budget | None) -> None:
        """Add all values from here on, at the first level without those of topics that begin with `$`."""
        if budget is not None:
            budget.take(1)
        if self.here is not None:
            found.append(self.here)
        if self.rest is not None:
            found.append(self.rest)
        for name, below in self.below.items():
            if has_first or not name.startswith("$"):
                below.gather(found, True, budget)


_NOTHING_BELOW: dict[str, _Node[Any]] = {}
"""What is below each place that nothing follows, as most: shared, and never written to."""


class FilterTree(Generic[T]):
    """Values by topic filter, one each. Filters are valid ones, without `$share/GROUP/`."""

    def __init__(self) -> None:
        self._root: _Node[T] = _Node(())
        self._places: dict[str, _Node[T]] = {}  # by filter that has a value, for who asks for one alone

    def get(self, wanted: str) -> T | None:
        """Return the value of a filter, `None` if it has none."""
        node = self._places.get(wanted)
        if node is None:
            return None
        return node.rest if wanted.endswith("#") else node.here

    def put(self, wanted: str, value: T) -> T | None:
        """Give a filter a value; return the one that it had, `None` if it had none."""
        node = self._places.get(wanted)
        if node is None:
            node = self._places[wanted] = self._place(wanted)
        if wanted.endswith("#"):
            before, node.rest = node.rest, value
        else:
            before, node.here = node.here, value
        return before

    def _place(self, wanted: str) -> _Node[T]:
        """Return the place of a filter, made where there was none. It stays while the filter has a value."""
        levels, _ = _parts(wanted)
        node, at = self._root, 0
        while at < len(levels):
            following = node.below.get(levels[at])
            if following is None:
                following = _Node(tuple(levels[at:]))
                node.put_below(following)
                return following
            common = 1 if following.length == 1 else _common(following.levels, levels, at)
            if common < len(following.levels):
                between: _Node[T] = _Node(following.levels[:common])
                following.lead_by(following.levels[common:])
                between.put_below(following)
                node.put_below(between)
                following = between
            node, at = following, at + common
        return node

    def remove(self, wanted: str) -> None:
        """Take a filter's value away, and the places that nothing needs any more."""
        if self._places.pop(wanted, None) is None:
            return
        levels, is_open = _parts(wanted)
        path = self._path(levels)
        if is_open:
            path[-1].rest = None
        else:
            path[-1].here = None
        for before, node in zip(reversed(path[:-1]), reversed(path[1:]), strict=True):
            if node.is_needed:
                return
            del before.below[node.levels[0]]
            for only in node.below.values():  # there is one at most
                only.lead_by(node.levels + only.levels)
                before.put_below(only)

    def match(self, topic: str) -> list[T]:
        """Return the values of all filters that match a topic name."""
        found: list[T] = []
        levels = topic.split("/")
        last = len(levels)
        waiting: list[tuple[_Node[T], int]] = []
        node, at = self._root, 0
        may_be_wild = not topic.startswith("$")
        while True:
            if node.rest is not None and may_be_wild:
                found.append(node.rest)
            if at < last:
                level, below = levels[at], node.below
                step = below.get(level)
                if step is not None and not (step.length == 1 or step.is_led_to(levels, at)):
                    step = None
                wild = below.get("+") if may_be_wild and level != "+" else None
                may_be_wild = True
                if wild is not None and (wild.length == 1 or wild.is_led_to(levels, at)):
                    if step is not None:
                        waiting.append((step, at + step.length))
                    step = wild
                if step is not None:
                    node, at = step, at + step.length
                    continue
            elif node.here is not None:
                found.append(node.here)
            if not waiting:
                return found
            node, at = waiting.pop()

    def intersecting(self, wanted: str, budget: Budget | None = None) -> list[T]:
        """Return the values of all filters that match some topic which the filter `wanted` matches, too.

        Raises `BudgetExhausted` where it would look at more levels than a budget has steps.
        """
        found: list[T] = []
        levels, is_open = _parts(wanted)
        # A place, and how many of the levels that lead to it have been passed.
        nodes = [(self._root, 0)]
        may_be_wild = not wanted.startswith("$")
        for number, level in enumerate(levels):
            following: list[tuple[_Node[T], int]] = []
            for node, passed in nodes:
                if passed < len(node.levels):
                    if _meet(node.levels[passed], level):
                        following.append((node, passed + 1))
                    continue
                if may_be_wild and node.rest is not None:
                    found.append(node.rest)
                if level == "+":
                    following += [
                        (step, 1) for name, step in node.below.items() if number or not name.startswith("$")
                    ]
                    continue
                if may_be_wild and (step := node.below.get("+")) is not None:
                    following.append((step, 1))
                if (step := node.below.get(level)) is not None:
                    following.append((step, 1))
            nodes = following
            may_be_wild = True
            if budget is not None:
                budget.take(len(nodes))
        for node, passed in nodes:
            if is_open:
                node.gather(found, bool(levels), budget)
            elif passed == len(node.levels):
                found += [value for value in (node.here, node.rest) if value is not None]
        return found

    def __bool__(self) -> bool:
        """Tell whether there is any filter."""
        return bool(self._places)

    def _path(self, levels: list[str]) -> list[_Node[T]]:
        """Return the places on the way to a filter that has a value, its own the last."""
        path = [self._root]
        at = 0
        while at < len(levels):
            following = path[-1].below[levels[at]]
            path.append(following)
            at += len(following.levels)
        return path


def _parts(wanted: str) -> tuple[list[str], bool]:
    """Return a filter's levels without a `#`, and whether it had one."""
    levels = wanted.split("/")
    is_open = levels[-1] == "#"
    return (levels[:-1] if is_open else levels), is_open


def _common(ours: tuple[str, ...], others: list[str], at: int) -> int:
    """Return how many of our levels are those that others have from `at` on."""
    for number, level in enumerate(ours):
        if at + number == len(others) or others[at + number] != level:
            return number
    return len(ours)


def _meet(one: str, other: str) -> bool:
    """Tell whether some level is meant by both."""
    return one == other or "+" in (one, other)
