"""Whether all messages of a subscription may be used for a purpose, or some, or none.

A subscription with wildcards matches many topics, and reservations cover parts of them. To ask the clauses
themselves is not enough: an owner who allows `operations` for `a/b` and `billing` for `a/c` allows neither
for all of `a/#`. What is decided for a topic depends on nothing but the clauses that cover it, and `walk.py`
finds which sets of clauses there are.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property
from itertools import groupby

from hushcast_protocol.purposes.clauses import Clause
from hushcast_protocol.purposes.deciding import Decision, Why, closes, decide
from hushcast_protocol.purposes.names import Purpose, ancestors
from hushcast_protocol.purposes.vocabulary import Vocabulary
from hushcast_protocol.purposes.walk import TooLong, find

_MEET_NOWHERE = {"+", "/#"}  # in the empty topic alone, and that is none
_Above = tuple[Purpose, ...]  # a purpose and all above it


class Reach:
    """How far a purpose is allowed within a filter, by the clauses that intersect it."""

    def __init__(
        self, wanted: str, clauses: Sequence[Clause], purpose: Purpose | None, strict: bool = False
    ) -> None:
        """`clauses` in any order: nothing here depends on it."""
        self._wanted = wanted
        self._clauses = _ordered(wanted, clauses)
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
        try:
            return find(self._wanted, self._clauses, self._allows, self._refusing_all()) is not None
        except TooLong:
            self.is_whole = False
            return True

    @cached_property
    def decision(self) -> Decision:
        """What allows it for all topics, or what refuses it for one."""
        whole = decide(self._clauses, self._purpose, self._strict)
        if self._purpose is None or whole.why in (Why.PROHIBITED, Why.NOTHING) or not self._clauses:
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
        for theirs in _by_owner(self._clauses):
            case = _refused_by(self._wanted, theirs, self._above)
            if case is not None:
                return Decision(False, Why.NOT_ALLOWED, self._purpose, case)
        if self._strict and not _are_all_reserved(self._wanted, self._clauses):
            return Decision(False, Why.STRICT, self._purpose, ())
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


def reach(wanted: str, clauses: Sequence[Clause], purpose: Purpose | None, strict: bool = False) -> Reach:
    """Return how far a purpose is allowed within a filter, by all clauses that intersect it."""
    return Reach(wanted, clauses, purpose, strict)


def effective(
    wanted: str, clauses: Sequence[Clause], vocabulary: Vocabulary, strict: bool = False
) -> frozenset[Purpose]:
    """Return the purposes for which all of a topic's, or filter's, messages may be used.

    These are the effective purposes of paper section IV-D. What takes too long to find is none of them.
    """
    clauses = _ordered(wanted, clauses)
    if not all(one.aip for one in clauses):
        return frozenset()
    prohibited = frozenset(purpose for one in clauses for purpose in one.pip)
    left = [one for one in vocabulary if prohibited.isdisjoint(ancestors(one))]
    try:
        if strict and not _are_all_reserved(wanted, clauses):
            return frozenset()
    except TooLong:
        return frozenset()
    for theirs in _by_owner(clauses):
        left = [one for one in left if _never_refuse(wanted, theirs, ancestors(one))]
    return frozenset(left)


def _never_refuse(wanted: str, theirs: list[Clause], above: _Above) -> bool:
    try:
        return _refused_by(wanted, theirs, above) is None
    except TooLong:
        return False


def _refused_by(wanted: str, theirs: list[Clause], above: _Above) -> tuple[Clause, ...] | None:
    """Return those of an owner's clauses that cover a topic together, and none of them allows a purpose."""
    allowing = [one for one in theirs if _allows(one, above)]
    if len(allowing) == len(theirs):
        return None
    if not allowing:
        return tuple(theirs)

    def refuses(case: tuple[Clause, ...]) -> bool:
        return bool(case) and not any(_allows(one, above) for one in case)

    return find(wanted, theirs, refuses, allowing)


def _are_all_reserved(wanted: str, clauses: Sequence[Clause]) -> bool:
    """Tell whether each topic of a filter is covered by some clause."""
    return find(wanted, clauses, lambda case: not case, clauses) is None


def _allows(clause: Clause, above: _Above) -> bool:
    return not clause.aip.isdisjoint(above)


def _by_owner(clauses: list[Clause]) -> Iterator[list[Clause]]:
    """Yield sorted clauses, those of an owner together."""
    for _, theirs in groupby(clauses, lambda one: (one.owner, one.of_message)):
        yield list(theirs)


def _ordered(wanted: str, clauses: Sequence[Clause]) -> list[Clause]:
    """Return those clauses that cover some topic of a filter, by owner and filter."""
    return sorted((one for one in clauses if {one.filter, wanted} != _MEET_NOWHERE), key=_place)


def _place(clause: Clause) -> tuple[str, bool, str]:
    return clause.owner, clause.of_message, clause.filter
