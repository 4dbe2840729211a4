"""Whether all messages of a subscription may be used for a purpose, or some, or none.

A subscription with wildcards matches many topics, and reservations cover parts of them. What is decided for
one topic depends on nothing but the clauses that cover it, so one topic for each set of clauses that covers
any is enough: `cases` finds these sets, level by level. To ask only the clauses themselves is not the same:
an owner who allows `operations` for `a/b` and `billing` for `a/c` allows neither for all of `a/#`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec

from hushcast_protocol.mqtt.topics import MAX_LEVELS
from hushcast_protocol.purposes.clauses import Clause
from hushcast_protocol.purposes.deciding import Decision, decide
from hushcast_protocol.purposes.names import Purpose
from hushcast_protocol.purposes.vocabulary import Vocabulary

MAX_STEPS = 200_000  # levels of clauses looked at for one filter: some 100 ms. `#` over 20,000 takes as many

_OTHER = "\x00"  # a level that no clause names; topics have no control characters


class Reach(msgspec.Struct, frozen=True):
    """How far a purpose is allowed within a filter."""

    everywhere: bool
    somewhere: bool
    decision: Decision
    """One that refuses if any does. The same whatever the order of clauses."""
    is_whole: bool = True
    """Whether all was looked at. Where that takes too long, the answer is: somewhere, and not everywhere."""

    @property
    def because(self) -> str:
        """What decided, in words."""
        if not self.is_whole:
            return "too many reservations overlap here to say what holds for the whole filter"
        return self.decision.because


def reach(wanted: str, clauses: Sequence[Clause], purpose: Purpose | None, strict: bool = False) -> Reach:
    """Decide for all topics of a filter, by the clauses that intersect it."""
    found = cases(wanted, clauses)
    if found is None:
        return Reach(False, True, decide(clauses, purpose, strict), is_whole=False)
    decisions = [decide(case, purpose, strict) for case in found]
    refusals = [one for one in decisions if not one.allowed]
    telling = min(refusals, key=_place) if refusals else max(decisions, key=_place)
    return Reach(not refusals, len(refusals) < len(decisions), telling)


def effective(
    wanted: str, clauses: Sequence[Clause], vocabulary: Vocabulary, strict: bool = False
) -> frozenset[Purpose] | None:
    """Return the purposes for which all of a topic's, or filter's, messages may be used.

    These are the effective purposes of paper section IV-D. `None` where that takes too long to find.
    """
    found = cases(wanted, clauses)
    if found is None:
        return None
    return frozenset(one for one in vocabulary if all(decide(case, one, strict).allowed for case in found))


def cases(wanted: str, clauses: Iterable[Clause]) -> list[tuple[Clause, ...]] | None:
    """Return each set of clauses that covers some topic of a filter, alone among `clauses`.

    The set of none is among them where a topic is covered by none. `None` where there are too many steps.
    """
    return _Walk(wanted, list(clauses)).run()


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
    """Goes through all topics of a filter at once, as far as clauses tell them apart."""

    def __init__(self, wanted: str, clauses: list[Clause]) -> None:
        self._wanted = wanted.split("/")
        self._is_open = self._wanted[-1] == "#"
        self._fixed = len(self._wanted) - self._is_open
        self._clauses = clauses
        self._levels = [one.filter.split("/") for one in clauses]
        self._cases: dict[tuple[int, ...], None] = {}

    def run(self) -> list[tuple[Clause, ...]] | None:
        start = _State(0, tuple(range(len(self._clauses))), ())
        waiting, seen, steps = [start], {start}, 0
        while waiting:
            state = waiting.pop()
            steps += len(state.alive) + 1
            if steps > MAX_STEPS:
                return None
            self._ends(state)
            for following in self._follow(state):
                steps += len(following.alive) + 1
                if following not in seen:
                    seen.add(following)
                    waiting.append(following)
        return [tuple(self._clauses[number] for number in case) for case in self._cases]

    def _ends(self, state: _State) -> None:
        """Note which clauses cover the topic that ends here, if the filter matches it."""
        depth = state.depth
        if state.is_settled:
            self._cases[state.rest] = None
            return
        if depth == 0 or depth < self._fixed or state.is_empty:
            return
        here = [number for number in state.alive if self._levels[number][depth:] in ([], ["#"])]
        self._cases[tuple(sorted((*here, *state.rest)))] = None

    def _follow(self, state: _State) -> Iterable[_State]:
        depth = state.depth
        if state.is_settled or depth >= MAX_LEVELS or (depth >= self._fixed and not self._is_open):
            return []
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
        wild = depth >= self._fixed or self._wanted[depth] == "+"
        names = [*named, _OTHER] if wild else [self._wanted[depth]]
        if depth == 0:
            return [
                self._first(name, named, any_level, rest) for name in names if not wild or name[:1] != "$"
            ]
        return [self._next(depth, name, named, any_level, rest) for name in names]

    def _first(self, name: str, named: dict[str, list[int]], any_level: list[int], rest: list[int]) -> _State:
        if name.startswith("$"):  # wildcards at the first level do not match these topics
            return self._next(0, name, named, [], [])
        return self._next(0, name, named, any_level, rest)

    def _next(
        self, depth: int, name: str, named: dict[str, list[int]], any_level: list[int], rest: list[int]
    ) -> _State:
        alive = tuple(sorted((*named.get(name, ()), *any_level)))
        return _State(depth + 1, alive, tuple(sorted(rest)), is_empty=depth == 0 and not name)


def _place(decision: Decision) -> list[tuple[str, str]]:
    return [(one.owner, one.filter) for one in decision.clauses]
