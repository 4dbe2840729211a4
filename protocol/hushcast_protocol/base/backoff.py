"""Exponential backoff with jitter, so that daemons do not retry in step."""

from __future__ import annotations

from hushcast_protocol.base.crypto.secrets import Randomness


class Backoff:
    """Gives the seconds to wait before each next attempt, from half of `first` to `longest`.

    Where `first` is above `longest`, from half of that.
    """

    def __init__(self, first: float, longest: float, randomness: Randomness) -> None:
        self._first = min(first, longest)
        self._longest = longest
        self._randomness = randomness
        self._pause = self._first

    def next(self) -> float:
        """Return how long to wait now, between half of the pause and all of it, and double the pause."""
        pause = self._pause
        self._pause = min(2 * pause, self._longest)
        return pause * (1 + int.from_bytes(self._randomness(4), "big") / 2**32) / 2

    def reset(self) -> None:
        """Begin with the first pause again: an attempt has succeeded."""
        self._pause = self._first
