"""Shown filters: those that an edge broker shows, each for as many subscriptions as it is shown for."""

from __future__ import annotations

from collections import Counter

from hushcast_protocol.brokers.bogus_filters import BogusFilters
from hushcast_protocol.brokers.covered_filters import CoveredFilters
from hushcast_protocol.brokers.filter_index import Meter
from hushcast_protocol.brokers.filters import Filter
from hushcast_protocol.brokers.poset import Poset
from hushcast_protocol.brokers.roots import ROOTS_AT_ONCE, RootChanges


class ShownFilters:
    """What is shown; said upward is what nothing else here covers, and what is to be seen all the same."""

    def __init__(self, meter: Meter) -> None:
        """`meter` counts looks at filters."""
        self._shown: Counter[Filter] = Counter()
        self._poset = Poset(meter)
        self._covered = CoveredFilters()

    @property
    def filters(self) -> frozenset[Filter]:
        """All that is shown."""
        return frozenset(self._shown)

    def show(self, given: Filter) -> None:
        """Show a filter for one subscription more."""
        self._shown[given] += 1
        if self._shown[given] == 1:
            self._poset.insert(given, None)

    def withdraw(self, given: Filter) -> bool:
        """Show a filter, which is shown, for one subscription less; return whether that was the last."""
        self._shown[given] -= 1
        if self._shown[given]:
            return False
        del self._shown[given]
        return self._poset.remove(given, None)

    def stand_beside(self, given: Filter, bogus: BogusFilters, *, is_shown: bool) -> bool:
        """Show what stands beside a filter, or no more; return whether what brought messages is gone."""
        for one in bogus.covered(given):
            (self._covered.add if is_shown else self._covered.remove)(one)
        if bogus.wider is None:
            return False
        if is_shown:
            self.show(bogus.wider)
            return False
        return self.withdraw(bogus.wider)

    def bringing(self, given: Filter) -> Filter | None:
        """Return what is shown that brings a filter's messages, or None if nothing does."""
        return given if given in self._poset else self._poset.nearest(given)

    def take_changes(self) -> RootChanges:
        """Return what changed of what is said upward since then, as much as one step has time for."""
        return self._covered.beside(self._poset.take_changes(ROOTS_AT_ONCE), ROOTS_AT_ONCE)
