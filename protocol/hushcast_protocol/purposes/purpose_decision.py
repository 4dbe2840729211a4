"""Whether a message of a topic may be used for a purpose.

A(p) is a purpose and all above it. Of the clauses that cover the topic, grouped by owner:

    p is allowed  if  every owner has some clause with A(p) ∩ aip ≠ ∅,  and  no clause has A(p) ∩ pip ≠ ∅
                  or aip = ∅.

So the order of clauses does not matter, an owner's own clauses add up (the union of paper section IV-D), and
another owner's can only take away: with the published union (section V-C1), a stranger's reservation of `#`
opens everybody's topics. A clause that allows nothing closes its topics, whatever its owner allows by others:
who says "nothing" means it. What nobody reserved passes unless the rules are strict (section V).
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from enum import Enum

import msgspec

from hushcast_protocol.purposes.clauses import Clause, place
from hushcast_protocol.purposes.purpose_names import Purpose, ancestors

_MOST = 3  # owners that a reason names

_Owner = str | tuple[str]  # of reservations, or of a message: that stands beside its owner's reservations


class DecisionReason(Enum):
    """What decided."""

    UNRESERVED = "nobody reserved it"
    STRICT = "nobody reserved it, and the rules are strict"
    NO_PURPOSE = "reserved, and no purpose was given"
    PROHIBITED = "a clause prohibits the purpose"
    NOTHING = "a clause allows nothing"
    NOT_ALLOWED = "no clause of one owner allows the purpose"
    ALLOWED = "each owner allows the purpose, and nobody prohibits it"


class PurposeDecision(msgspec.Struct, frozen=True):
    """Whether a purpose is allowed, and which clauses decided that."""

    allowed: bool
    why: DecisionReason
    purpose: Purpose | None
    clauses: tuple[Clause, ...]
    """One that prohibits it or allows nothing, all of an owner of whom none allows it, or one of each owner.

    Sorted by owner and filter: the same whatever the order they were found in.
    """

    @property
    def because(self) -> str:
        """What decided, in words: owner, filter and purpose."""
        if self.why in (DecisionReason.UNRESERVED, DecisionReason.STRICT):
            return str(self.why.value)
        if self.why is DecisionReason.NO_PURPOSE:
            return f"{_named(self.clauses[0])} asks for a purpose, and none was given"
        if self.why is DecisionReason.PROHIBITED:
            return f"{_named(self.clauses[0])} prohibits {self._of(self.clauses[0].pip)}"
        if self.why is DecisionReason.NOTHING:
            return f"{_named(self.clauses[0])} allows nothing"
        if self.why is DecisionReason.NOT_ALLOWED:
            first, *others = self.clauses
            more = f", or their {len(others)} other{'s' * (len(others) > 1)} here," if others else ""
            return f"{_named(first)}{more} does not allow {self.purpose}"
        parts = [f"{_named(one)} allows {self._of(one.aip)}" for one in self.clauses[:_MOST]]
        if len(self.clauses) > _MOST:
            parts.append(f"so do {len(self.clauses) - _MOST} other owners")
        return "; ".join(parts)

    def _of(self, purposes: frozenset[Purpose]) -> str:
        """Name the purpose, or the nearest above it, that stands in a clause."""
        assert self.purpose is not None
        return next(one for one in ancestors(self.purpose) if one in purposes)


def decide(clauses: Sequence[Clause], purpose: Purpose | None, strict: bool = False) -> PurposeDecision:
    """Decide by the clauses that cover a topic, that of the message included.

    A reader without a purpose gets what nobody reserved. With `strict`, nobody gets that, nor what nobody but
    those who are gone reserved.
    """
    if not clauses or (strict and all(one.of_nobody for one in clauses)):
        return PurposeDecision(
            not strict, DecisionReason.STRICT if strict else DecisionReason.UNRESERVED, purpose, ()
        )
    if purpose is None:
        return PurposeDecision(False, DecisionReason.NO_PURPOSE, None, (min(clauses, key=place),))
    above = ancestors(purpose)
    allowing: dict[_Owner, Clause | None] = {}
    for one in clauses:
        aip = one.aip
        if not aip or not one.pip.isdisjoint(above):  # `closes`: asked of each, for each decision
            closing = min((each for each in clauses if closes(each, above)), key=place)
            return PurposeDecision(
                False,
                DecisionReason.PROHIBITED if closing.aip else DecisionReason.NOTHING,
                purpose,
                (closing,),
            )
        owner = (one.owner,) if one.of_message else one.owner  # `_owner`, as often
        if aip.isdisjoint(above):
            allowing.setdefault(owner, None)
        elif (known := allowing.get(owner)) is None or one.filter < known.filter:
            allowing[owner] = one
    deciding = [one for one in allowing.values() if one is not None]
    if len(deciding) == len(allowing):
        return PurposeDecision(True, DecisionReason.ALLOWED, purpose, _sorted(deciding))
    refusing = [one for one in clauses if allowing[_owner(one)] is None]
    first = _owner(min(refusing, key=place))
    return PurposeDecision(
        False, DecisionReason.NOT_ALLOWED, purpose, _sorted([one for one in refusing if _owner(one) == first])
    )


def closes(clause: Clause, above: Collection[Purpose]) -> bool:
    """Tell whether a clause refuses a purpose, given with all above it, whatever other clauses say."""
    return not clause.aip or not clause.pip.isdisjoint(above)


def _owner(clause: Clause) -> _Owner:
    return (clause.owner,) if clause.of_message else clause.owner


def _sorted(clauses: list[Clause]) -> tuple[Clause, ...]:
    if len(clauses) > 1:
        clauses.sort(key=place)
    return tuple(clauses)


def _named(clause: Clause) -> str:
    whose = clause.owner or "somebody without a name"
    if clause.of_message:
        return f"the message that {whose} published"
    return f"{whose}'s reservation of {clause.written}"
