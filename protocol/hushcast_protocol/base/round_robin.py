"""A round robin: what waits, by whose it is; each has one at a time, however many wait."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Generic, TypeVar

Whose = TypeVar("Whose", bound=Hashable)
What = TypeVar("What", bound=Hashable)


class RoundRobin(Generic[Whose, What]):
    """What waits of each, in the order it came."""

    def __init__(self) -> None:
        self._waiting: dict[Whose, dict[What, None]] = {}

    def __bool__(self) -> bool:
        return bool(self._waiting)

    def count(self, whose: Whose) -> int:
        """Return how much of one waits."""
        return len(self._waiting.get(whose, ()))

    def add(self, whose: Whose, what: What) -> None:
        """Let something wait; what waits already keeps its place."""
        self._waiting.setdefault(whose, {})[what] = None

    def discard(self, whose: Whose, what: What) -> None:
        """Drop something, if it waits."""
        waiting = self._waiting.get(whose, {})
        waiting.pop(what, None)
        if not waiting:
            self._waiting.pop(whose, None)

    def pop(self) -> tuple[Whose, What]:
        """Take out the next; raise `StopIteration` if nothing waits."""
        whose, waiting = next(iter(self._waiting.items()))
        what = next(iter(waiting))
        del self._waiting[whose], waiting[what]
        if waiting:
            self._waiting[whose] = waiting
        return whose, what
