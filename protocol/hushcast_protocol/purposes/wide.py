"""Whether all messages of a subscription may be used for a purpose, or some, or none.

A subscription with wildcards matches many topics, and reservations cover parts of them. To ask the clauses
themselves is not enough: an owner who allows `operations` for `a/b` and `billing` for `a/c` allows neither
for all of `a/#`. What is decided for a topic depends on nothing but the clauses that cover it, and `walk.py`
finds which sets of clauses there are.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from itertools import groupby

from hushcast_protocol.purposes.clauses import Clause
from hushcast_protocol.purposes.deciding import Decision, Why, decide
from hushcast_protocol.purposes.names import Purpose, ancestors
from hushcast_protocol.purposes.vocabulary import Vocabulary
from hushcast_protocol.purposes.walk import TooLong, find


class Reach:
    """How far a purpose is allowed within a filter, by the clauses that intersect it."""

    def __init__(
        self, wanted: str, clauses: Sequence[Clause], purpose: Purpose | None, strict: bool = False
    ) -> None:
        """`clauses` in any order: nothing here depends on it."""
        self._wanted = wanted
        self._clauses = sorted(clauses, key=lambda one: (one.owner, one.of_message, one.filter))
        self._purpose = purpose
        self._strict = strict
        self._above = () if purpose is None else ancestors(purpose)
        self.is_whole = True
        """Whether all was looked at. Where that takes too long, the answer is: somewhere, not everywhere."""

    @cached_property
    def everywhere(self) -> bool:
        """Whether it is allowed for every topic of the filter."""
        return self.decision.allowed and self.is_whole

    @cached_property
    def somewhere(self) -> bool:
        """Whether it is allowed for some topic of the filter."""
        if self.everywhere:
            return True
        refused = self._refused_for_sure()
        try:
            return self._find(self._clauses, self._allows, refused) is not None
        except TooLong:
            self.is_whole = False
            return True

    @cached_property
    def decision(self) -> Decision:
        """What allows it for all topics, or what refuses it for one."""
        whole = decide(self._clauses, self._purpose, self._strict)
        if self._purpose is None or whole.why is Why.PROHIBITED or not self._clauses:
            return whole  # each of the clauses covers some topic of the filter
        try:
            return self._refusal() or whole
        except TooLong:
            self.is_whole = False
            return whole

    @property
    def because(self) -> str:
        """What decided about all topics, in words."""
        decision = self.decision
        if not self.is_whole:
            return "too many reservations overlap here to say what holds for the whole filter"
        return decision.because

    def _refusal(self) -> Decision | None:
        """Return what one owner refuses, or the strict rules."""
        for _, theirs in groupby(self._clauses, lambda one: (one.owner, one.of_message)):
            case = self._refused_by(list(theirs))
            if case is not None:
                return Decision(False, Why.NOT_ALLOWED, self._purpose, case)
        if self._strict and self._find(self._clauses, lambda case: not case, self._clauses) is not None:
            return Decision(False, Why.STRICT, self._purpose, ())
        return None

    def _refused_by(self, theirs: list[Clause]) -> tuple[Clause, ...] | None:
        """Return those of an owner's clauses that cover a topic together, and none of them allows it."""
        allowing = [one for one in theirs if self._is_allowed_by(one)]
        if len(allowing) == len(theirs):
            return None
        if not allowing:
            return tuple(theirs)
        return self._find(
            theirs, lambda case: bool(case) and not any(map(self._is_allowed_by, case)), allowing
        )

    def _refused_for_sure(self) -> list[Clause]:
        """Return the clauses of which each refuses all that it covers."""
        if self._purpose is None:
            return self._clauses
        helped = {(one.owner, one.of_message) for one in self._clauses if self._is_allowed_by(one)}
        return [
            one
            for one in self._clauses
            if (one.owner, one.of_message) not in helped or not one.pip.isdisjoint(self._above)
        ]

    def _is_allowed_by(self, clause: Clause) -> bool:
        return not clause.aip.isdisjoint(self._above)

    def _allows(self, case: tuple[Clause, ...]) -> bool:
        return decide(case, self._purpose, self._strict).allowed

    def _find(
        self, clauses: list[Clause], test: Callable[[tuple[Clause, ...]], bool], never: list[Clause]
    ) -> tuple[Clause, ...] | None:
        return find(self._wanted, clauses, test, never)


def reach(wanted: str, clauses: Sequence[Clause], purpose: Purpose | None, strict: bool = False) -> Reach:
    """Return how far a purpose is allowed within a filter, by all clauses that intersect it."""
    return Reach(wanted, clauses, purpose, strict)


def effective(
    wanted: str, clauses: Sequence[Clause], vocabulary: Vocabulary, strict: bool = False
) -> frozenset[Purpose]:
    """Return the purposes for which all of a topic's, or filter's, messages may be used.

    These are the effective purposes of paper section IV-D.
    """
    return frozenset(one for one in vocabulary if Reach(wanted, clauses, one, strict).everywhere)
