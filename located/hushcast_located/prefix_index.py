"""The inverted index of spatial-oriented prefixes as arrays, and what of it can be wanted near some place.

What `spatial/prefixes.py` of `protocol` reckons in integers for one subscription, for all of them at once in
floats that are rounded up: a filter. It keeps all that the integers keep, and at worst a little more.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from hushcast_located.crowd import Crowd, Ints, Numbers
from hushcast_protocol.spatial.places import SCALE, Box
from hushcast_protocol.spatial.similarity import WHOLE

Floats = npt.NDArray[np.float32]

_SLACK = 1e-6
"""Of the earth's radius, 6 m: places in 32 bits are off by 3e-8, distances between them by 5e-7 at most."""
_EVERYWHERE = 16.0  # more than the square of any distance, which is 4 at most


@dataclass(frozen=True)
class Lists:
    """The lists of some words, one behind the other; the last word's is the dummy's, if it has one.

    `near` has five rows: x, y and z of a subscription in radii of the earth; the greatest square of a
    distance at which the list's word is of use to it, with all lighter words; and that at which the word
    alone is enough. `who` are subscriptions; list i goes from `bounds[i]` to before `bounds[i + 1]`, and is
    that of `words[i]`.
    """

    words: Ints
    bounds: Ints
    near: Floats
    who: Numbers

    def __len__(self) -> int:
        return len(self.who)

    def of(self, words: Ints) -> Lists:
        """Return the lists of these words, which are sorted."""
        where = np.searchsorted(self.words, words)
        where = where[where < len(self.words)]
        where = where[self.words[where] == words[: len(where)]]
        firsts, lasts = self.bounds[where], self.bounds[where + 1]
        if len(where) and lasts[-1] - firsts[0] == np.sum(lasts - firsts):
            spans = [(firsts[0], lasts[-1])]
        else:
            apart = np.flatnonzero(firsts[1:] != lasts[:-1]) + 1  # lists side by side are copied at once
            spans = (
                list(zip(firsts[[0, *apart]], lasts[[*(apart - 1), -1]], strict=True)) if len(where) else []
            )
        near = np.concatenate([self.near[:, :0], *(self.near[:, one:end] for one, end in spans)], axis=1)
        who = np.concatenate([self.who[:0], *(self.who[one:end] for one, end in spans)])
        bounds = np.concatenate([[0], np.cumsum(lasts - firsts)])
        return Lists(self.words[where], bounds, near, who)

    def squares(self, box: Box) -> Floats:
        """Return the squares of the least distances to a box."""
        low, high = (np.array(corner, np.float64) / SCALE for corner in box)
        total = np.zeros(len(self), np.float32)
        for axis in range(3):
            at = self.near[axis]
            if low[axis] == high[axis]:
                away = at - np.float32(low[axis])
            else:
                away = np.maximum(at, np.float32(low[axis]))
                np.minimum(away, np.float32(high[axis]), out=away)
                away -= at
            away *= away
            total += away
        return total

    def near_to(self, box: Box) -> Lists:
        """Return what is left of each list near a box."""
        mask = self.squares(box) <= self.near[3]
        bounds = np.concatenate([[0], np.cumsum(mask)])[self.bounds]
        some = np.flatnonzero(bounds[1:] > bounds[:-1])
        at = np.flatnonzero(mask)
        firsts = np.concatenate([[0], bounds[1:][some]])
        return Lists(self.words[some], firsts, self.near[:, at], self.who[at])


def index_of(crowd: Crowd) -> Lists:
    """File subscriptions under the words of their prefixes; the dummy's number is behind the vocabulary's."""
    owners, whole = crowd.owners, crowd.whole
    alpha, threshold = crowd.shares.astype(np.int64)
    needed = (threshold - (WHOLE - alpha)) * whole
    before = np.concatenate([[0], np.cumsum(crowd.weights)])
    left = whole[owners] - (before[:-1] - before[crowd.starts[:-1]][owners])
    filed = np.flatnonzero(alpha[owners] * left >= needed[owners])
    anywhere = np.flatnonzero(needed <= 0).astype(np.int32)
    nothing = np.zeros(len(anywhere), np.int64)
    words = np.concatenate([crowd.words[filed], np.full(len(anywhere), len(crowd.vocabulary), np.int32)])
    order = np.argsort(words, kind="stable")
    words = words[order]
    who = np.concatenate([owners[filed], anywhere])[order]
    near = np.empty((5, len(who)), np.float32)
    near[:3] = (crowd.places / SCALE)[:, who]
    for row, weights in ((3, left), (4, crowd.weights)):
        common = np.concatenate([weights[filed], nothing])[order]
        slack = _SLACK if row == 3 else -_SLACK
        near[row] = _farthest(alpha[who], threshold[who], whole[who], common, crowd.most, slack)
    found, firsts = np.unique(words, return_index=True)
    return Lists(found.astype(np.int64), np.append(firsts, len(who)), near, who)


def _farthest(
    alpha: Ints, threshold: Ints, whole: Ints, common: Ints, most: int, slack: float
) -> npt.NDArray[np.float64]:
    """Return the squares of the greatest distances as `WeightedSubscription` has them, but for some slack."""
    by_words, by_place = alpha * common, (WHOLE - alpha) * whole
    room = by_words + by_place - threshold * whole
    distance = (most / SCALE) * room / np.maximum(by_place, 1) + slack
    square: npt.NDArray[np.float64] = np.minimum(distance * distance * (1 + slack), _EVERYWHERE)
    square[(room < 0) | (distance < 0)] = -1
    square[by_words >= threshold * whole] = _EVERYWHERE
    return square
