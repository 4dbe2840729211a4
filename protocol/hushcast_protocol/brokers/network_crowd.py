"""The network's crowd: what an edge broker asks of other edge brokers' clients, and may know.

Where its own clients are too few for a filter to be shown, those of all edge brokers may be enough (Tarkoma
and Prehofer §7). What it does not know for certain, now, counts as no.
"""

from __future__ import annotations

from collections.abc import Set
from typing import NamedTuple, Protocol

from hushcast_protocol.brokers.anonymity_conditions import AnonymityCondition, CrowdScope, Fallback
from hushcast_protocol.brokers.filters import Filter, Source

Demands = frozenset[tuple[AnonymityCondition, int]]
"""Levels that a filter is to have, by which condition: what whoever subscribes wants, and the broker."""


class SubscriptionGroup(NamedTuple):
    """Subscriptions to one filter that ask for the same: what is shown for one is shown for all of them."""

    filter: Filter
    demands: Demands
    otherwise: Fallback


class CrowdWish(NamedTuple):
    """A group for which the broker's own clients are too few."""

    group: SubscriptionGroup
    demands: Demands
    """The levels at which its filter would be shown, or stay so; one for each condition."""
    sources: tuple[Source, ...]
    """Whose subscriptions these are, in the order they came."""
    shown: Filter | None
    """What is shown for it now."""
    crowd: CrowdScope
    """Whose sources are enough for that."""


class NetworkCrowd(Protocol):
    """What is known now."""

    def says(self, shown: Filter, condition: AnonymityCondition, k: int, own: Set[Source]) -> bool:
        """Tell whether a filter is known to be k-anonymous where it is shown for these sources at least."""

    def has_sunk(self, group: SubscriptionGroup) -> bool:
        """Tell whether a group's filter is known to have had enough behind it, and to have them no more."""

    def wider(self, group: SubscriptionGroup, own: Set[Source]) -> Filter | None:
        """Return a filter that covers a group's and may be shown for it, or None."""
