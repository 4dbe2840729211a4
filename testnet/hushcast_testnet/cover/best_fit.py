"""A guess: of several that may be it, one of those that fit best."""

from __future__ import annotations

from collections.abc import Sequence

_ALIKE = 1e-9  # fits that differ by less do so by rounding


def guessed_first(fits: Sequence[float]) -> float:
    """Return with which probability who draws among those that fit best draws the first of all."""
    most = max(fits)
    best = [place for place, fit in enumerate(fits) if fit >= most - _ALIKE]
    return (0 in best) / len(best)
