"""Rules: numbers by name that authorities agree on together with who they are.

A name that is not known here is kept and passed over, and a rule that is missing has its default. A number
beyond what its rule takes counts as the nearest that it does, so that everybody comes to the same by it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated

import msgspec

from hushcast_protocol.authorities.seat_admission import MAX_WORK, SeatAdmission
from hushcast_protocol.base.cover_terms import (
    LEAST_ROUND,
    LEAST_WIDTH,
    LONGEST_ROUND,
    MAX_LISTED_DAYS,
    MAX_WIDTH,
    NO_COVER,
    CoverTerms,
)
from hushcast_protocol.base.keeping_rule import MAX_DAYS_KEPT, MAX_KEEPERS, NOTHING_KEPT, KeepingRule
from hushcast_protocol.base.roster import MAX_RELAYS
from hushcast_protocol.base.shard_count import MIN_SHARD_SIZE, SHARD_SIZE
from hushcast_protocol.base.wire import Counter

MAX_RULES = 32  # of a set: ten are known
MAX_RULE_NAME = 32  # letters and dots
MAX_RULES_SIZE = MAX_RULES * (MAX_RULE_NAME + 12) + 3  # bytes

RuleName = Annotated[str, msgspec.Meta(max_length=MAX_RULE_NAME, pattern=r"^[a-z][a-z_.]*\Z")]
NetworkRules = Annotated[tuple[tuple[RuleName, Counter], ...], msgspec.Meta(max_length=MAX_RULES)]
"""In ascending order of names, each once."""

NEWCOMERS, GROWTH, AGE, WORK = "admission.newcomers", "admission.growth", "admission.age", "admission.work"
SIZE = "shard_size"
KEEPERS, DAYS = "keeping.keepers", "keeping.days"
ROUND, WIDTH, LISTED = "cover.round", "cover.width", "cover.listed"
_DEFAULTS = {
    NEWCOMERS: 0,
    GROWTH: 0,
    AGE: 0,
    WORK: 0,
    SIZE: SHARD_SIZE,
    KEEPERS: NOTHING_KEPT.keepers,
    DAYS: NOTHING_KEPT.days,
    ROUND: NO_COVER.round_seconds,
    WIDTH: NO_COVER.width,
    LISTED: NO_COVER.listed_days,
}


def rules_of(
    admission: SeatAdmission,
    shard_size: int,
    keeping: KeepingRule,
    cover: CoverTerms,
    others: NetworkRules = (),
) -> NetworkRules:
    """Return the rules that say this, with those of `others` whose names are not known here."""
    said = {
        NEWCOMERS: admission.newcomers,
        GROWTH: admission.growth,
        AGE: int(admission.age),
        WORK: admission.work,
        SIZE: shard_size,
        KEEPERS: keeping.keepers,
        DAYS: keeping.days,
        ROUND: cover.round_seconds,
        WIDTH: cover.width,
        LISTED: cover.listed_days,
    }
    told = {name: value for name, value in said.items() if value != _DEFAULTS[name]}
    return tuple(sorted((told | {name: value for name, value in others if name not in said}).items()))


def admission_of(rules: Mapping[str, int]) -> SeatAdmission:
    """Return how newcomers are seated."""
    return SeatAdmission(
        min(rules.get(NEWCOMERS, 0), MAX_RELAYS),
        min(rules.get(GROWTH, 0), 1000),
        bool(rules.get(AGE, 0)),
        min(rules.get(WORK, 0), MAX_WORK),
    )


def shard_size_of(rules: Mapping[str, int]) -> int:
    """Return how many relays a shard has in the mean, `MIN_SHARD_SIZE` to `SHARD_SIZE`; 0: one list."""
    size = rules.get(SIZE, SHARD_SIZE)
    return min(max(size, MIN_SHARD_SIZE), SHARD_SIZE) if size else 0


def keeping_of(rules: Mapping[str, int]) -> KeepingRule:
    """Return what relays keep of what is published."""
    keepers, days = rules.get(KEEPERS, NOTHING_KEPT.keepers), rules.get(DAYS, NOTHING_KEPT.days)
    return KeepingRule(min(keepers, MAX_KEEPERS), min(max(days, 1), MAX_DAYS_KEPT))


def cover_of(rules: Mapping[str, int]) -> CoverTerms:
    """Return whether there is cover, and by which numbers."""
    if not (length := rules.get(ROUND, 0)):
        return NO_COVER
    width, listed = rules.get(WIDTH, NO_COVER.width), rules.get(LISTED, NO_COVER.listed_days)
    return CoverTerms(
        min(max(length, LEAST_ROUND), LONGEST_ROUND),
        min(max(width, LEAST_WIDTH), MAX_WIDTH),
        min(listed, MAX_LISTED_DAYS),
    )
