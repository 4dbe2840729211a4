"""The roots: the filters that no other covers, which is all that a broker has to tell its parent.

What filters that come and go change among them is kept until it is taken: only changes travel.
"""

from __future__ import annotations

from dataclasses import dataclass

from hushcast_protocol.brokers.filters import Filter


@dataclass(frozen=True, slots=True)
class RootChanges:
    """How the roots differ from those of the time before; no filter is in both."""

    shown: frozenset[Filter]
    """Roots now, and not then."""
    withdrawn: frozenset[Filter]
    """Roots then, and not now."""

    def __bool__(self) -> bool:
        return bool(self.shown or self.withdrawn)


class Roots:
    """The roots, and how they differ from what was taken last; at the beginning that is nothing."""

    def __init__(self) -> None:
        self.now: set[Filter] = set()
        self._shown: set[Filter] = set()
        self._withdrawn: set[Filter] = set()

    def add(self, given: Filter) -> None:
        """Take in a filter that is a root now."""
        self.now.add(given)
        if given in self._withdrawn:
            self._withdrawn.remove(given)
        else:
            self._shown.add(given)

    def remove(self, given: Filter) -> None:
        """Drop a filter that is none any more."""
        self.now.remove(given)
        if given in self._shown:
            self._shown.remove(given)
        else:
            self._withdrawn.add(given)

    def take_changes(self) -> RootChanges:
        """Return what differs from the last time; a root that came and went in between does not."""
        changes = RootChanges(frozenset(self._shown), frozenset(self._withdrawn))
        self._shown, self._withdrawn = set(), set()
        return changes
