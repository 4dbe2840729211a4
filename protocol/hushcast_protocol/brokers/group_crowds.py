"""Crowds of groups: whether enough sources count for a subscription, at its edge broker or in the network.

A group are the subscriptions to one filter that ask for the same. A filter that sank is shown again only at k
and a quarter more, so that somebody who comes and goes does not show it each time; that is remembered for as
long as anybody asks for the same. Where the broker's own clients are too few, those of other edge brokers may
be enough, while that is known (`network_crowd.py`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Generator, Set

from hushcast_protocol.brokers.anonymity_conditions import AnonymityCondition, CrowdScope
from hushcast_protocol.brokers.bogus_filters import BELOW
from hushcast_protocol.brokers.crowds import Crowds, CrowdSource, JudgedFilter, least_crowd
from hushcast_protocol.brokers.edge_subscriptions import EdgeSubscription
from hushcast_protocol.brokers.filter_index import Meter
from hushcast_protocol.brokers.filters import Filter, Source
from hushcast_protocol.brokers.network_crowd import Demands, NetworkCrowd, SubscriptionGroup


class GroupCrowds:
    """Who stands behind the subscriptions at one edge broker, and for what that is enough."""

    def __init__(self, beyond: NetworkCrowd | None) -> None:
        self._beyond = beyond
        self._crowds = Crowds()
        self._held: Counter[tuple[Filter, CrowdSource]] = Counter()  # subscriptions of who is there
        self._groups: dict[SubscriptionGroup, Counter[Source]] = {}  # whose these are
        self._sunk: set[SubscriptionGroup] = set()  # shown once, and too few behind it since

    @property
    def meter(self) -> Meter:
        """What looking at filters has taken so far."""
        return self._crowds.meter

    def insert(self, one: EdgeSubscription) -> None:
        """Have a subscription's source stand behind its filter."""
        self._held[one.filter, one.asker] += 1
        if self._held[one.filter, one.asker] == 1:
            self._crowds.insert(one.filter, one.asker)
        if one.demands:
            self._groups.setdefault(one.group, Counter())[one.name[0]] += 1

    def remove(self, one: EdgeSubscription) -> None:
        """Take a subscription's source, which stands there, from behind its filter."""
        self._held[one.filter, one.asker] -= 1
        if not self._held[one.filter, one.asker]:
            del self._held[one.filter, one.asker]
            self._crowds.remove(one.filter, one.asker)
        if one.demands:
            group = self._groups[one.group]
            group -= Counter([one.name[0]])
            if not group:
                del self._groups[one.group]
                self._sunk.discard(one.group)

    def of(self, group: SubscriptionGroup) -> Set[Source]:
        """Return the sources of a group that are there, in the order they came."""
        return self._groups.get(group, Counter[Source]()).keys()

    def demands(self, group: SubscriptionGroup) -> Demands:
        """Return the levels at which a group's filter would be shown now."""
        has_sunk = group in self._sunk
        return frozenset((condition, least_crowd(k, has_sunk)) for condition, k in group.demands)

    def scope(self, one: EdgeSubscription, shown: Filter) -> CrowdScope | None:
        """Return whose sources are enough for a filter to stay shown for a subscription; None: nobody's."""
        return self._scope(one, shown, one.demands)

    def scope_anew(self, one: EdgeSubscription) -> CrowdScope | None:
        """Return the same of a subscription's own filter, which is to rise to more once it has sunk."""
        found = self._scope(one, one.filter, self.demands(one.group))
        if found is not None:
            self._sunk.discard(one.group)
        return found

    def wider(self, one: EdgeSubscription) -> Generator[None, None, Filter | None]:
        """Search the narrowest filter that the broker's own clients allow instead (`Crowds.wider`)."""
        return self._crowds.wider(self._judged(one), self.demands(one.group))

    def known_wider(self, one: EdgeSubscription) -> Filter | None:
        """Return a filter that may be shown instead, by what is known of other edge brokers."""
        if self._beyond is None or one.otherwise != "generalise":
            return None
        found = self._beyond.wider(one.group, self._judged(one).own)
        return found if found is not None and self.scope(one, found) is not None else None

    def note_sunk(self, one: EdgeSubscription) -> None:
        """Remember that a filter which was shown as it is has too few behind it now.

        Where several edge brokers' crowd was enough, and it is not known how large it is now, it is not sunk.
        """
        if one.crowd == "network" and self._beyond is not None and not self._beyond.has_sunk(one.group):
            return
        if one.group in self._groups:
            self._sunk.add(one.group)

    def missing(self, one: EdgeSubscription) -> int:
        """Return how many bogus sources it takes where a filter is seen with what stands beside it."""
        judged, missing = self._judged(one), 0
        for condition, k in one.demands:
            if not self._is_known(judged, one.filter, condition, k):
                own = 0 if condition in BELOW else self._crowds.own(judged, k)
                missing = max(missing, k - own)
        return missing

    def _scope(self, one: EdgeSubscription, shown: Filter, demands: Demands) -> CrowdScope | None:
        crowd: CrowdScope = "edge"
        judged = self._judged(one)
        for condition, k in demands:
            if self._crowds.may_show(judged, shown, condition, k):
                continue
            if not self._is_known(judged, shown, condition, k):
                return None
            crowd = "network"
        return crowd

    def _is_known(self, judged: JudgedFilter, shown: Filter, condition: AnonymityCondition, k: int) -> bool:
        own = judged.own
        return self._beyond is not None and bool(own) and self._beyond.says(shown, condition, k, own)

    def _judged(self, one: EdgeSubscription) -> JudgedFilter:
        return JudgedFilter(one.filter, one.asker.k, self.of(one.group))
