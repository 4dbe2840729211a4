"""An expiry queue: the moments at which things cease to be valid, of which the first is asked for."""

from __future__ import annotations

from collections.abc import Callable
from heapq import heapify, heappop, heappush
from typing import Generic, TypeVar

T = TypeVar("T")

_FEW = 64  # ends among which those gone by are not looked for


class ExpiryQueue(Generic[T]):
    """What ends when; what was replaced or taken back meanwhile is left out by asking for it."""

    def __init__(self, is_current: Callable[[T, int], bool]) -> None:
        """`is_current` tells whether a thing is still there as the one with this number."""
        self._is_current = is_current
        self._heap: list[tuple[float, int, T]] = []
        self._most = _FEW

    def add(self, until: float, number: int, thing: T) -> None:
        """Note an end; no two have the same number."""
        heappush(self._heap, (until, number, thing))
        if len(self._heap) > self._most:
            self._heap = [end for end in self._heap if self._is_current(end[2], end[1])]
            heapify(self._heap)
            self._most = 2 * len(self._heap) + _FEW

    def first(self) -> float:
        """Return the first end; infinity if there is none."""
        while self._heap and not self._is_current(self._heap[0][2], self._heap[0][1]):
            heappop(self._heap)
        return self._heap[0][0] if self._heap else float("inf")

    def pop(self, now: float) -> T | None:
        """Take out one that has ended, or return None."""
        return heappop(self._heap)[2] if self.first() <= now else None
