"""What is subscribed to at an edge broker, and how each stands."""

from __future__ import annotations

from dataclasses import dataclass

from hushcast_protocol.brokers.anonymity_conditions import CrowdScope, Fallback
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


class EdgeSubscription:
    """One subscription and what is shown for it."""

    __slots__ = (
        *("asker", "bogus", "crowd", "demands", "filter", "is_counted"),
        *("looked_at", "name", "otherwise", "shown", "told"),
    )

    def __init__(
        self, name: SubscriptionKey, filter_: Filter, terms: AnonymityTerms, minimum: AnonymityTerms
    ) -> None:
        self.name = name
        self.filter = filter_
        strict = terms if terms.k > 1 else minimum
        self.otherwise: Fallback = strict.otherwise
        self.demands: Demands = frozenset((one.condition, one.k) for one in (terms, minimum) if one.k > 1)
        most = max(terms.k, minimum.k)
        if self.otherwise == "bogus" and most > MAX_BOGUS:
            self.otherwise = "wait"  # whether so many can be made up would depend on others
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
