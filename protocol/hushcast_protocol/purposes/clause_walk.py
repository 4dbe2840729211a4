"""Finds which clauses cover a topic together, over all topics of a filter: level by level, as one would.

Topics that go on alike are looked at once: at each level there are those that some clause names, and all
others at once. The sets of clauses can become as many as 2 to the power of the levels: steps are counted.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

import msgspec

from hushcast_protocol.base.budget import Budget
from hushcast_protocol.mqtt.topics.topic_filters import MAX_LEVELS
from hushcast_protocol.purposes.clauses import Clause

LOOK = 3  # steps of a budget that a look at a level of a clause takes: as many as at a level in the tree

_OTHER = "\x00"  # a level that no clause names; topics have no control characters

Case = tuple[Clause, ...]


def find(
    wanted: str,
    clauses: Sequence[Clause],
    test: Callable[[Case], bool],
    budget: Budget,
    never: Iterable[Clause] = (),
) -> Case | None:
    """Return the first set of clauses that covers a topic of a filter, alone of all, and passes a test.

    The set of none stands for a topic that no clause covers. `never`: clauses with which no set passes, so
    that nobody looks further below. Raise `BudgetExhausted`.
    """
    for case in cases(wanted, clauses, budget, never):
        if test(case):
            return case
    return None


def cases(
    wanted: str, clauses: Sequence[Clause], budget: Budget, never: Iterable[Clause] = ()
) -> Iterator[Case]:
    """Yield each set of clauses that covers a topic of a filter, alone of all; none with one of `never`.

    Each level of a clause that is looked at takes `LOOK` steps. Raise `BudgetExhausted`.
    """
    return _Walk(wanted, clauses, budget, never).run()


class _State(msgspec.Struct, frozen=True):
    """Topics that begin alike: how many levels they have, and which clauses may cover them."""

    depth: int
    alive: tuple[int, ...]
    """Clauses that match so far, and say more levels."""
    rest: tuple[int, ...]
    """Clauses that match whatever comes."""
    is_empty: bool = False
    """Whether this is the one level without a character, which alone is no topic."""

    @property
    def is_settled(self) -> bool:
        """Tell whether what comes makes no difference any more."""
        return self.depth > 0 and not self.alive and not self.is_empty


class _Walk:
    """All topics of a filter, as far as clauses tell them apart."""

    def __init__(
        self, wanted: str, clauses: Sequence[Clause], budget: Budget, never: Iterable[Clause]
    ) -> None:
        self._wanted = wanted.split("/")
        self._is_open = self._wanted[-1] == "#"
        self._fixed = len(self._wanted) - self._is_open
        self._clauses = clauses
        self._levels = [one.filter.split("/") for one in clauses]
        self._budget = budget
        hopeless = {id(one) for one in never}
        self._never = {number for number, one in enumerate(clauses) if id(one) in hopeless}
        self._found: set[tuple[int, ...]] = set()

    def run(self) -> Iterator[Case]:
        start = _State(0, tuple(range(len(self._clauses))), ())
        self._budget.take(LOOK * (len(self._clauses) + 1))
        waiting, seen = [start], {start}
        while waiting:
            state = waiting.pop()
            case = self._ending(state)
            if case is not None and case not in self._found and self._never.isdisjoint(case):
                self._found.add(case)
                yield tuple(self._clauses[number] for number in case)
            for following in self._follow(state):
                if following not in seen and self._never.isdisjoint(following.rest):
                    seen.add(following)
                    waiting.append(following)

    def _ending(self, state: _State) -> tuple[int, ...] | None:
        """Return which clauses cover the topic that ends here, `None` if the filter does not match it."""
        depth = state.depth
        if state.is_settled:
            return state.rest
        if depth == 0 or depth < self._fixed or state.is_empty:
            return None
        here = [number for number in state.alive if self._levels[number][depth:] in ([], ["#"])]
        return tuple(sorted((*here, *state.rest)))

    def _follow(self, state: _State) -> Iterable[_State]:
        depth = state.depth
        if state.is_settled or depth >= MAX_LEVELS or (depth >= self._fixed and not self._is_open):
            return
        named: dict[str, list[int]] = {}
        any_level, rest = [], list(state.rest)
        for number in state.alive:
            levels = self._levels[number]
            if len(levels) == depth:
                continue
            if levels[depth] == "#":
                rest.append(number)
            elif levels[depth] == "+":
                any_level.append(number)
            else:
                named.setdefault(levels[depth], []).append(number)
        rest.sort()
        wild = depth >= self._fixed or self._wanted[depth] == "+"
        for name in [*named, _OTHER] if wild else [self._wanted[depth]]:
            here = named.get(name, ())
            # Before it is done: there may be as many again at each name.
            self._budget.take(LOOK * (len(here) + len(any_level) + len(rest) + 1))
            if depth > 0 or not name.startswith("$"):
                alive = sorted((*here, *any_level))
                yield _State(depth + 1, tuple(alive), tuple(rest), depth == 0 and not name)
            elif not wild:  # wildcards at the first level do not match these topics
                yield _State(1, tuple(here), ())
