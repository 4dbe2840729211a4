"""Token buckets: so many a second in the long run, so many at once after a quiet time."""

from __future__ import annotations


class TokenBucket:
    """Full at first. `now` is in seconds of any clock; one that was set back refills nothing then."""

    __slots__ = ("_burst", "_filled", "_rate", "_tokens")

    def __init__(self, rate: float, burst: float, now: float) -> None:
        """Fill with `rate` tokens a second, up to `burst`."""
        self._rate = rate
        self._burst = burst
        self._tokens = burst
        self._filled = now

    def take(self, now: float, amount: float = 1.0) -> bool:
        """Take `amount` tokens (0 and more) if there are that many; tell whether there were."""
        self._fill(now)
        if self._tokens < amount:
            return False
        self._tokens -= amount
        return True

    def owe(self, now: float, amount: float = 1.0) -> float:
        """Take `amount` tokens, there or not; return the seconds until they will be there."""
        self._fill(now)
        self._tokens -= amount
        return max(0.0, -self._tokens / self._rate)

    def _fill(self, now: float) -> None:
        gained = max(0.0, now - self._filled) * self._rate
        self._tokens = min(self._burst, self._tokens + gained)
        self._filled = now
