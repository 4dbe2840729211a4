"""Confidence intervals of shares of trials. Needs the standard library alone."""

from __future__ import annotations

import math

Z = 1.959964  # of a normal distribution, for a two-sided 95 % interval


def wilson(share: float, trials: float) -> tuple[float, float]:
    """Return the 95 % interval, within 0 to 1, of a share of so many trials (Wilson, JASA 1927)."""
    if trials <= 0:
        return 0.0, 1.0
    square = Z * Z / trials
    half = Z * math.sqrt(share * (1 - share) / trials + square / (4 * trials))
    middle = share + square / 2
    return max(0.0, (middle - half) / (1 + square)), min(1.0, (middle + half) / (1 + square))
