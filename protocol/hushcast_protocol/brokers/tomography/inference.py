"""What follows from an answer: for a smaller k, for a part of the way, and, in one case, by covering.

Tarkoma and Prehofer §7 say that under Definitions 1 and 2 what covers an anonymous filter is anonymous. Of
the five conditions this holds for Definition 2 alone:

- `successor` (2). Let f cover g. Whatever g covers, f covers, and is not f: Succ(g) ⊆ Succ(f), and so
  Source(Succ(g)) ⊆ Source(Succ(f)), whatever else there is and whether f and g are there or not.
- `immediate-successor` (1). f ⊐ g ⊐ h, h has k sources, g has one: ImSucc(g) = {h} has k, ImSucc(f) = {g}
  has one. What stands between takes the crowd away.
- `source`. The same three: g may have k sources of its own, f one.
- `immediate-predecessor-successor` and `immediate-predecessor` (3, 4). f ⊐ g, nothing covers f: f has level 0
  whatever g has. Nor does it help that something covers f: g may stand under another filter, too, which does
  not cover f, and have its crowd there.

So the level under `successor` can only grow with the filter, and what covers a filter is at least as
anonymous; what an anonymous filter covers may not be. All other answers are about one filter.
"""

from __future__ import annotations

from dataclasses import dataclass

from hushcast_protocol.base.wire import PublicKey
from hushcast_protocol.brokers.anonymity_conditions import AnonymityCondition
from hushcast_protocol.brokers.filters import Filter, covers
from hushcast_protocol.brokers.tomography.questions import TomographyQuestion

_OWN_DO_NOT_COUNT = {AnonymityCondition.SUCCESSOR, AnonymityCondition.IMMEDIATE_SUCCESSOR}
"""Conditions under which who is behind the filter itself changes nothing."""


@dataclass(frozen=True, slots=True)
class ComparableQuestion:
    """A question with what it takes to compare it: the filter, and the brokers on the way."""

    question: TomographyQuestion
    filter: Filter
    way: tuple[PublicKey, ...]


def is_transitive(condition: AnonymityCondition) -> bool:
    """Tell whether what covers an anonymous filter is anonymous, too."""
    return condition is AnonymityCondition.SUCCESSOR


def follows(known: ComparableQuestion, is_anonymous: bool, asked: ComparableQuestion) -> bool | None:
    """Return what a valid answer says to a question, or None: nothing."""
    one, other = known.question, asked.question
    same = (one.origin, one.condition, one.is_real) == (other.origin, other.condition, other.is_real)
    if not same:
        return None
    if is_anonymous:
        # Anonymous at each broker of a way is anonymous at each of its first part.
        is_more = one.k >= other.k and one.spread >= other.spread and other.target in known.way
        return True if is_more and _at_least(asked, known) else None
    is_less = one.k <= other.k and one.spread <= other.spread and one.target in asked.way
    return False if is_less and _at_least(known, asked) else None


def _at_least(asked: ComparableQuestion, known: ComparableQuestion) -> bool:
    """Tell whether one filter is as anonymous as another, whatever the others may be, or more."""
    if asked.filter == known.filter:
        own, others = set(asked.question.sources), set(known.question.sources)
        return asked.question.condition in _OWN_DO_NOT_COUNT or own >= others
    return is_transitive(asked.question.condition) and covers(asked.filter, known.filter)
