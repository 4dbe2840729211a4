"""Spatial-oriented prefixes: under which words a subscription is filed, and how far from it each is of use.

Hu and others 2015, as Yan and others 2017 have them in section 2.3.2, in integers. From theta and a greatest
simS of 1 follows how much of the words' weight a message must share: tau = (theta - (1 - alpha)) / alpha.
With the words from the heaviest on, those behind the prefix weigh too little to reach tau together, so a
message must share a word of the prefix. If the first word that it shares is the i-th, simT is at most the
weight from the i-th on, which leaves a least simS: a greatest distance. Where tau is not above 0 a place may
suffice, and the subscription is filed under a dummy word of weight 0, too, which every message has.
"""

from __future__ import annotations

from hushcast_protocol.spatial.similarity import WHOLE, WeightedSubscription

DUMMY = ""
"""The word that every message has."""


def prefix(asked: WeightedSubscription) -> list[tuple[str, int]]:
    """Return the words of the prefix, heaviest first, each with the greatest square of a distance.

    A message that the subscription wants shares one of these words, within that word's distance.
    """
    needed = (asked.threshold - (WHOLE - asked.alpha)) * asked.whole  # tau * alpha * weight of all words
    found, left = [], asked.whole
    for word, weight in asked.weights.items():
        if asked.alpha * left < needed:
            break
        found.append((word, asked.farthest(left)))
        left -= weight
    if needed <= 0:
        found.append((DUMMY, asked.farthest(0)))
    return found
