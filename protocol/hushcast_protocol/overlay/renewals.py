"""Renewals: when an owner tells relays of the next day, so that this shows little of when it is there.

All relays of a tree hear of its next day, and only while the owner is there. A moment that they could foresee
would show an absence as well; a moment after a return would show the return. So each is drawn anew, from a
distribution that forgets how long it has been waited for, and one at which the owner is away is drawn again.
"""

from __future__ import annotations

import math

RENEWS_FROM = 1 / 8  # share of a day gone from which on the next one is told: most absences end before it
LOOKS = 6.0  # moments in the mean in what is left of a day: who is away at one has others
LATEST = 0.9  # share of what is left at which it is told at the latest


def next_renewal(begin: float, end: float, chance: float) -> float:
    """Return the moment (Unix time) after `begin` to renew at for what begins at `end`.

    `chance` in [0, 1) draws it.
    """
    return begin + min(-math.log(1.0 - chance) / LOOKS, LATEST) * (end - begin)
