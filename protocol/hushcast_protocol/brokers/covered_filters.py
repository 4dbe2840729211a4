"""Covered filters: those that travel upward though others that are shown cover them.

What a broker routes by are the filters that nothing covers; a covered one brings no message. It is held and
passed on because somebody is to see it beside what covers it: one of the two is bogus, and which is not said.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import NamedTuple

from hushcast_protocol.brokers.filters import Filter
from hushcast_protocol.brokers.roots import RootChanges


class Covered(NamedTuple):
    """A filter that a child asks to be passed on, whatever covers it."""

    filter: Filter


class CoveredFilters:
    """Those that a broker shows, each for as many as ask for it, and how they changed since it was taken."""

    def __init__(self) -> None:
        self._held: Counter[Filter] = Counter()
        self._taken: set[Filter] = set()
        self._changed: dict[Filter, None] = {}

    def add(self, given: Filter) -> None:
        """Show a filter for one more."""
        self._held[given] += 1
        self._changed[given] = None

    def remove(self, given: Filter) -> None:
        """Show a filter, which is shown, for one less."""
        self._held[given] -= 1
        if not self._held[given]:
            del self._held[given]
        self._changed[given] = None

    def beside(self, roots: RootChanges, most: int) -> RootChanges:
        """Return changes of roots with what changed here, so much that they are `most` together."""
        left = most - len(roots.shown) - len(roots.withdrawn)
        shown, withdrawn = set[Filter](), set[Filter]()
        while self._changed and len(shown) + len(withdrawn) < left:
            given, _ = self._changed.popitem()
            is_held = given in self._held
            if is_held is (given in self._taken):
                continue
            self._taken ^= {given}
            (shown if is_held else withdrawn).add(given)
        has_more = bool(self._changed)
        return replace(
            roots,
            covered=frozenset(shown),
            uncovered=frozenset(withdrawn),
            is_all_shown=roots.is_all_shown and not has_more,
            has_more=roots.has_more or has_more,
        )
