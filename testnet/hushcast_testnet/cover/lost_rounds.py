"""Rounds that a porter loses, drawn for each daemon: how many of some a candidate has that were not lost."""

from __future__ import annotations

import math
from functools import cache


class LostRounds:
    """What a porter knows of those of others, which it drew as the author's."""

    def __init__(self, lost: float, on_end: int) -> None:
        """A share of the rounds is lost, by so many on end."""
        self._lost = lost
        self._on_end = on_end
        self.kept_of = cache(self._kept_of)
        """Returns of so many rounds, the last before a release, how many were kept, and the share of each."""

    def _kept_of(self, rounds: int) -> tuple[tuple[int, float], ...]:
        whole, rest = divmod(rounds, self._on_end)
        found: dict[int, float] = {}
        for kept in range(whole + 1):
            share = math.comb(whole, kept) * (1 - self._lost) ** kept * self._lost ** (whole - kept)
            for more, part in ((rest, 1 - self._lost), (0, self._lost)):
                number = kept * self._on_end + more
                found[number] = found.get(number, 0.0) + share * part
        return tuple(found.items())
