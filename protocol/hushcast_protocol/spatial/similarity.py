"""How near a message is to a subscription, in place and words: exact, in integers, at both ends alike.

simT(s, m) = sum of w(t) for t in both / sum of w(t) for t in s, simS = max(0, 1 - dist / maxdist), and
sim = alpha * simT + (1 - alpha) * simS (Hu and others 2015; Yan and others 2017, equations 1 to 3). A
subscription wants a message if sim >= theta. Weights and the greatest distance are the owner's, who signs
them; place, words, alpha and theta are the subscription's.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

from hushcast_protocol.spatial.places import Place

WHOLE = 1000  # alpha and theta are thousandths
ANYWHERE = 2**63 - 1  # more than the square of any distance on the earth, and still of 64 bits


@dataclass(frozen=True)
class WeightedSubscription:
    """A subscription with the weights of its words: all that matching and checking need.

    `weights` are of the subscription's words, from the heaviest to the lightest, equal ones by the word;
    `alpha` and `threshold` are thousandths, `most` is the distance from which simS is 0.
    """

    place: Place
    weights: Mapping[str, int]
    alpha: int
    threshold: int
    most: int

    @cached_property
    def whole(self) -> int:
        """The weight of all of its words."""
        return sum(self.weights.values())

    def reaches(self, common: int, square: int) -> bool:
        """Tell whether sim >= theta, of a message at the root of `square` with common words of this weight.

        With p / q the share of the words' weight and A = 1000: by words alone if a p >= t q; otherwise
        (A - a) q d / D <= r = a p + (A - a) q - t q, both sides of which are squared. No division, no root.
        It is the same for a node and its messages: more common words and a smaller distance never make a
        yes into a no (the paper's proposition 2).
        """
        by_words, needed = self.alpha * common, self.threshold * self.whole
        if by_words >= needed:
            return True
        by_place = (WHOLE - self.alpha) * self.whole
        room = by_words + by_place - needed
        return room >= 0 and by_place * by_place * square <= (self.most * room) ** 2

    def farthest(self, common: int) -> int:
        """Return the largest square of a distance at which common words of this weight reach, -1 for none."""
        by_words, needed = self.alpha * common, self.threshold * self.whole
        if by_words >= needed:
            return ANYWHERE
        by_place = (WHOLE - self.alpha) * self.whole
        room = by_words + by_place - needed
        if room < 0:  # always where alpha is 1
            return -1
        return min((self.most * room) ** 2 // (by_place * by_place), ANYWHERE)


def in_order(weights: Mapping[str, int]) -> dict[str, int]:
    """Return weights from the heaviest to the lightest, equal ones by the word."""
    return dict(sorted(weights.items(), key=lambda one: (-one[1], one[0])))
