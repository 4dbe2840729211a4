"""What is subscribed to at an edge broker, and how each stands."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

from hushcast_protocol.brokers.anonymity_conditions import AnonymityCondition, CrowdScope, Fallback
from hushcast_protocol.brokers.bogus_filters import BELOW, BogusFilters, bogus_beside
from hushcast_protocol.brokers.crowds import CrowdSource
from hushcast_protocol.brokers.filters import Filter, Source
from hushcast_protocol.brokers.frames import AnonymityTerms
from hushcast_protocol.brokers.network_crowd import Demands, SubscriptionGroup
from hushcast_protocol.brokers.roots import RootChanges

MAX_BOGUS = 64  # the largest k that is made up; as many of a client's filters go for it

SubscriptionKey = tuple[Source, bytes]
"""A subscription: whose it is, and its name there."""


@dataclass(frozen=True, slots=True)
class ExposureState:
    """How a subscription stands, as the broker alone knows it."""

    shown: Filter | None
    """What is shown outside that brings its messages, if anything is: its own, a wider one, or another's."""
    bogus: int = 0
    """Bogus sources behind it."""
    crowd: CrowdScope = "edge"
    """Whose sources are enough."""


@dataclass(frozen=True, slots=True)
class ExposureChanges:
    """What is to be told: to whoever is above, how the roots of what is shown changed; to clients.

    Clients hear whether anything is shown that brings their messages, and no more: whatever else there is to
    say would tell of others' filters. `bogus` are bogus sources by subscription, where their number changed,
    or is said for the first time.
    """

    roots: RootChanges
    told: dict[SubscriptionKey, bool]
    bogus: dict[SubscriptionKey, int]


class BogusMeans(NamedTuple):
    """Whom an edge broker could deceive with what stands for nobody."""

    filters: bool = True
    """Whoever is above: bogus filters travel, and can be told from no other."""
    sources: bool = False
    """A service that counts the sources that the broker states."""


def deceiving(
    given: Filter, terms: AnonymityTerms, minimum: AnonymityTerms, means: BogusMeans
) -> BogusFilters | None:
    """Return the bogus filters that terms, and the broker's own, ask for; None: nobody would be deceived."""
    asked = {one.condition for one in (terms, minimum) if one.k > 1}
    if AnonymityCondition.SOURCE in asked and not means.sources:
        return None
    if asked - {AnonymityCondition.SOURCE} and not means.filters:
        return None
    return bogus_beside(given, asked)


class EdgeSubscription:
    """One subscription and what is shown for it."""

    __slots__ = (
        *("asker", "beside", "bogus", "crowd", "demands", "filter", "is_counted"),
        *("looked_at", "name", "otherwise", "shown", "told"),
    )

    def __init__(
        self,
        name: SubscriptionKey,
        filter_: Filter,
        terms: AnonymityTerms,
        minimum: AnonymityTerms,
        means: BogusMeans,
    ) -> None:
        self.name = name
        self.filter = filter_
        strict = terms if terms.k > 1 else minimum
        self.otherwise: Fallback = strict.otherwise
        self.demands: Demands = frozenset((one.condition, one.k) for one in (terms, minimum) if one.k > 1)
        most = max(terms.k, minimum.k)
        beside = deceiving(filter_, terms, minimum, means) if self.otherwise == "bogus" else None
        if self.otherwise == "bogus" and (most > MAX_BOGUS or beside is None):
            self.otherwise = "wait"
        self.beside = beside or BogusFilters()
        """What is shown with it under `bogus`."""
        self.asker = CrowdSource(name[0], most)
        self.shown: Filter | None = None
        self.crowd: CrowdScope = "edge"
        """Who suffices for what is shown."""
        self.bogus = 0
        self.told: bool | None = None
        """What its client was told last."""
        self.is_counted = False
        """Whether its source stands behind the filter."""
        self.looked_at = -1
        """The change of its topic after which it was looked at last."""

    @property
    def group(self) -> SubscriptionGroup:
        """Who asks for the same, and is shown the same way."""
        return SubscriptionGroup(self.filter, self.demands, self.otherwise)

    @property
    def places(self) -> int:
        """How many of its client's filters it counts as: with `bogus` k, or as many as travel."""
        rows = 1 + sum(one is not None for one in self.beside)
        return max(self.asker.k, rows) if self.otherwise == "bogus" else 1

    def bogus_behind(self) -> Iterator[tuple[Filter, int]]:
        """Yield where bogus sources stand, and how many."""
        if any(condition not in BELOW for condition, _ in self.demands):
            yield self.filter, self.bogus
        if self.beside.narrower is not None:
            yield self.beside.narrower, self.bogus
        if self.beside.wider is not None:
            yield self.beside.wider, min(self.bogus, 1)
