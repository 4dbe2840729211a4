"""The roots: the filters that no other covers, which is all that a broker has to tell its parent.

What filters that come and go change among them is kept until it is taken: only changes travel.
"""

from __future__ import annotations

from dataclasses import dataclass

from hushcast_protocol.brokers.filters import Filter

ROOTS_AT_ONCE = 512  # roots whose change is taken in one step: some 5 ms; one filter may cover a whole table


@dataclass(frozen=True, slots=True)
class RootChanges:
    """How the roots differ from what was taken before, or as much of it as was asked for.

    No filter is in both. What is shown comes first: as long as there is more of it, nothing is withdrawn, so
    that whoever has what was taken so far has what covers all filters that were there when all was shown.
    """

    shown: frozenset[Filter]
    """Roots now, and not then."""
    withdrawn: frozenset[Filter]
    """Roots then, and not now."""
    is_all_shown: bool = True
    """Whether all roots of now were taken."""
    has_more: bool = False
    """Whether there may be more to take."""
    covered: frozenset[Filter] = frozenset()
    """Covered filters that travel now, and did not then (`covered_filters.py`)."""
    uncovered: frozenset[Filter] = frozenset()
    """Those that did then, and do not now."""

    def __bool__(self) -> bool:
        return bool(self.shown or self.withdrawn or self.covered or self.uncovered)
