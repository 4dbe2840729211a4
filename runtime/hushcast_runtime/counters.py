"""Counters of events, declared by each room, never by peer or topic."""

from __future__ import annotations

from collections.abc import Mapping

COMMON_COUNTERS = {
    "internal_errors": "errors of this program that cost one connection; please report them",
}
"""What every daemon may count, by name, with its meaning."""


class Counters:
    """Counts since the daemon started."""

    def __init__(self, meanings: Mapping[str, str]) -> None:
        """Begin with all that `meanings` declares at 0."""
        self.meanings = meanings
        self._counts: dict[str, int] = {}  # of what was counted: simulations hold thousands of these

    def add(self, name: str, amount: int = 1) -> None:
        """Count an event; an undeclared name is a programming error."""
        if name in self._counts:
            self._counts[name] += amount
        else:
            self._counts[name] = self[name] + amount

    def __getitem__(self, name: str) -> int:
        if (count := self._counts.get(name)) is not None:
            return count
        if name not in self.meanings:
            raise KeyError(name)
        return 0

    def as_dict(self) -> dict[str, int]:
        """Return all counts."""
        return dict.fromkeys(self.meanings, 0) | self._counts
