"""The largest k that was asked for lately: brokers need not state more sources of a filter than that."""

from __future__ import annotations

LEAST_K = 8  # what is stated before anybody has asked; below, statements hardly get shorter
KEPT_FOR = 3600.0  # seconds for which a k counts at least, twice as long at most


class LargestRecentK:
    """The largest k of this stretch of time and the one before. `now` is Unix time."""

    def __init__(self) -> None:
        self._stretch = 0
        self._now = self._before = LEAST_K

    def ask(self, k: int, now: float) -> bool:
        """Note a k that was asked for; tell whether it is larger than those before."""
        is_larger = k > self.at(now)
        self._now = max(self._now, k)
        return is_larger

    def at(self, now: float) -> int:
        """Return the largest k."""
        stretch = int(now // KEPT_FOR)
        if stretch > self._stretch:
            self._before = self._now if stretch == self._stretch + 1 else LEAST_K
            self._now, self._stretch = LEAST_K, stretch
        return max(self._now, self._before)
