"""Whether all messages of a subscription may be used for a purpose, or some, or none.

A subscription with wildcards matches many topics, and reservations cover parts of them. To ask the clauses
themselves is not enough: an owner who allows `operations` for `a/b` and `billing` for `a/c` allows neither
for all of `a/#`. What is decided for a topic depends on nothing but the clauses that cover it, and
`clause_walk.py` finds which sets of clauses there are.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property
from itertools import groupby
from operator import attrgetter

from hushcast_protocol.base.budget import Budget, BudgetExhausted
from hushcast_protocol.purposes.clause_walk import cases, find
from hushcast_protocol.purposes.clauses import Clause, place
from hushcast_protocol.purposes.purpose_decision import DecisionReason, PurposeDecision, closes, decide
from hushcast_protocol.purposes.purpose_names import Purpose, ancestors
from hushcast_protocol.purposes.vocabulary import Vocabulary

MAX_STEPS = 600_000  # steps for one filter, a third as many looks at clauses, where nobody waits: some 0.3 s

_MEET_NOWHERE = {"+", "/#"}  # in the empty topic alone, and that is none
_whose = attrgetter("owner", "of_message")  # of a clause: those alike are one owner's
_Above = tuple[Purpose, ...]  # a purpose and all above it


class FilterReach:
    """How far a purpose is allowed within a filter, by the clauses that intersect it."""

    def __init__(
        self,
        wanted: str,
        clauses: Sequence[Clause],
        purpose: Purpose | None,
        strict: bool = False,
        budget: Budget | None = None,
    ) -> None:
        """`clauses` in any order: nothing here depends on it. A `budget` may be shared by several."""
        self._wanted = wanted
        self._clauses = _ordered(wanted, clauses)
        self._purpose = purpose
        self._strict = strict
        self._above = () if purpose is None else ancestors(purpose)
        self._budget = budget or Budget(MAX_STEPS)
        self.is_whole = True
        """Whether all was looked at. Where that takes too long, the answer is: somewhere, not everywhere."""

    @cached_property
    def everywhere(self) -> bool:
        """Whether it is allowed for every topic of the filter."""
        return self.decision.allowed and self.is_whole

    @cached_property
    def somewhere(self) -> bool:
        """Whether it is allowed for some topic of the filter."""
        if self.everywhere or not self.is_whole:
            return True
        never = self._refusing_all()
        try:
            return find(self._wanted, self._clauses, self._allows, self._budget, never) is not None
        except BudgetExhausted:
            self.is_whole = False
            return True

    @cached_property
    def decision(self) -> PurposeDecision:
        """What allows it for all topics, or what refuses it for one."""
        whole = decide(self._clauses, self._purpose, self._strict)
        if (
            self._purpose is None
            or whole.why in (DecisionReason.PROHIBITED, DecisionReason.NOTHING)
            or not self._clauses
        ):
            return whole  # each of the clauses covers some topic of the filter
        try:
            return self._refusal() or whole
        except BudgetExhausted:
            self.is_whole = False
            return whole

    @property
    def because(self) -> str:
        """What decided about all topics, in words."""
        decision = self.decision
        if not self.is_whole:
            return "too many reservations overlap here to say what holds for the whole filter"
        return decision.because

    def _refusal(self) -> PurposeDecision | None:
        """Return what one owner refuses, or the strict rules."""
        for theirs in _by_owner(self._clauses):
            case = _refused_by(self._wanted, theirs, self._above, self._budget)
            if case is not None:
                return PurposeDecision(False, DecisionReason.NOT_ALLOWED, self._purpose, case)
        if self._strict and not _are_all_reserved(self._wanted, self._clauses, self._budget):
            return PurposeDecision(False, DecisionReason.STRICT, self._purpose, ())
        return None

    def _refusing_all(self) -> list[Clause]:
        """Return the clauses of which each refuses all that it covers."""
        if self._purpose is None:
            return self._clauses
        refusing = []
        for theirs in _by_owner(self._clauses):
            may_help = any(_allows(one, self._above) for one in theirs)
            refusing += [one for one in theirs if not may_help or closes(one, self._above)]
        return refusing

    def _allows(self, case: tuple[Clause, ...]) -> bool:
        return decide(case, self._purpose, self._strict).allowed


def effective(
    wanted: str,
    clauses: Sequence[Clause],
    vocabulary: Vocabulary,
    strict: bool = False,
    budget: Budget | None = None,
) -> frozenset[Purpose]:
    """Return the purposes for which all of a topic's, or filter's, messages may be used.

    These are the effective purposes of paper section IV-D. All of them together have one budget; raise
    `BudgetExhausted` where it is too small to find them.
    """
    budget = budget or Budget(MAX_STEPS)
    clauses = _ordered(wanted, clauses)
    if strict and not _are_all_reserved(wanted, clauses, budget):
        return frozenset()
    left = _Bits(vocabulary)
    for one in clauses:
        left.found &= ~left.of(one.pip) if one.aip else 0
    for theirs in _by_owner(clauses):
        allowed = {one: left.of(one.aip) for one in theirs}
        all_of_it = [one for one in theirs if not left.found & ~allowed[one]]
        for case in cases(wanted, theirs, budget, all_of_it):
            if case:
                any_of_it = 0
                for one in case:
                    any_of_it |= allowed[one]
                left.found &= any_of_it
    return left.purposes()


class _Bits:
    """Sets of a vocabulary's purposes as numbers, a bit for each: many of them are united and compared."""

    def __init__(self, vocabulary: Vocabulary) -> None:
        self._order = tuple(vocabulary)
        self._below: dict[Purpose, int] = {}
        for number, purpose in enumerate(self._order):
            for above in ancestors(purpose):
                self._below[above] = self._below.get(above, 0) | 1 << number
        self._known: dict[frozenset[Purpose], int] = {}
        self.found = (1 << len(self._order)) - 1
        """All, until somebody takes some away."""

    def of(self, purposes: frozenset[Purpose]) -> int:
        """Return those that are in a set, or below one that is."""
        bits = self._known.get(purposes)
        if bits is None:
            bits = 0
            for one in purposes:
                bits |= self._below.get(one, 0)
            self._known[purposes] = bits
        return bits

    def purposes(self) -> frozenset[Purpose]:
        """Return those that were found."""
        return frozenset(one for number, one in enumerate(self._order) if self.found >> number & 1)


def _refused_by(
    wanted: str, theirs: list[Clause], above: _Above, budget: Budget
) -> tuple[Clause, ...] | None:
    """Return those of an owner's clauses that cover a topic together, and none of them allows a purpose."""
    allowing = [one for one in theirs if _allows(one, above)]
    if len(allowing) == len(theirs):
        return None
    if not allowing:
        return tuple(theirs)

    def refuses(case: tuple[Clause, ...]) -> bool:
        return bool(case) and not any(_allows(one, above) for one in case)

    return find(wanted, theirs, refuses, budget, allowing)


def _are_all_reserved(wanted: str, clauses: Sequence[Clause], budget: Budget) -> bool:
    """Tell whether each topic of a filter is covered by some clause whose owner is there."""
    there = [one for one in clauses if not one.of_nobody]
    return find(wanted, there, lambda case: not case, budget, there) is None


def _allows(clause: Clause, above: _Above) -> bool:
    return not clause.aip.isdisjoint(above)


def _by_owner(clauses: list[Clause]) -> Iterator[list[Clause]]:
    """Yield sorted clauses, those of an owner together."""
    for _, theirs in groupby(clauses, _whose):
        yield list(theirs)


def _ordered(wanted: str, clauses: Sequence[Clause]) -> list[Clause]:
    """Return those clauses that cover some topic of a filter, by owner and filter."""
    return sorted((one for one in clauses if {one.filter, wanted} != _MEET_NOWHERE), key=place)
