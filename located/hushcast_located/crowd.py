"""Many subscriptions as arrays of integers: what the engine in numpy works on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from hushcast_protocol.spatial.located_subscription import LocatedSubscription
from hushcast_protocol.spatial.similarity import WeightedSubscription
from hushcast_protocol.spatial.weight_table import WeightTable

Ints = npt.NDArray[np.int64]
Numbers = npt.NDArray[np.int32]
"""Of subscriptions, words and places: half the memory of the largest arrays."""


@dataclass(frozen=True)
class Crowd:
    """Subscriptions with the weights of their words, as `WeightedSubscription` has them one by one.

    Subscription i has the words from `starts[i]` to before `starts[i + 1]`, from the heaviest to the
    lightest, equal ones by the word.
    """

    names: Sequence[str]
    """All of their words, sorted: a word's number is where it stands."""
    places: Numbers
    """Three rows: x, y and z."""
    shares: Numbers
    """Two rows: alpha and threshold, in thousandths."""
    starts: Ints
    words: Numbers
    weights: Ints
    most: int
    """The distance from which simS is 0, in the scale of places."""

    def __len__(self) -> int:
        return len(self.starts) - 1

    @cached_property
    def vocabulary(self) -> Mapping[str, int]:
        """The number of each word."""
        return {word: at for at, word in enumerate(self.names)}

    @property
    def whole(self) -> Ints:
        """The weight of all words of each subscription."""
        sums: Ints = np.add.reduceat(self.weights, self.starts[:-1]) if len(self) else self.starts[:0]
        return sums

    @property
    def owners(self) -> Numbers:
        """Whose each of the words is."""
        found: Numbers = np.repeat(np.arange(len(self), dtype=np.int32), np.diff(self.starts))
        return found

    def asked(self, number: int) -> WeightedSubscription:
        """Return one of them by itself."""
        at = slice(self.starts[number], self.starts[number + 1])
        words = (self.names[word] for word in self.words[at])
        weights = dict(zip(words, self.weights[at].tolist(), strict=True))
        x, y, z = (int(one) for one in self.places[:, number])
        alpha, threshold = (int(one) for one in self.shares[:, number])
        return WeightedSubscription((x, y, z), weights, alpha, threshold, self.most)


def arranged(
    names: Sequence[str],
    rows: tuple[Numbers, Numbers],
    said: tuple[npt.NDArray[np.integer[Any]], npt.NDArray[np.integer[Any]]],
    table: WeightTable,
) -> Crowd:
    """Return subscriptions as arrays, whose words may be in any order, and be named twice.

    `rows` are `places` and `shares`; `said` is whose each word is, and where in `names` it stands.
    """
    order = sorted(range(len(names)), key=names.__getitem__)
    ranks = np.empty(len(names), np.int32)
    ranks[order] = np.arange(len(names), dtype=np.int32)
    names = [names[at] for at in order]
    weights = np.array([table.weights.get(name, table.body.other) for name in names], np.int64)
    owners, words = said[0], ranks[said[1]]
    order_of_words = np.lexsort((words, -weights[words], owners))
    owners, words = owners[order_of_words], words[order_of_words]
    once = np.ones(len(words), bool)
    once[1:] = (owners[1:] != owners[:-1]) | (words[1:] != words[:-1])
    starts = np.searchsorted(owners[once], np.arange(rows[0].shape[1] + 1)).astype(np.int64)
    distinct: Numbers = words[once]
    return Crowd(names, *rows, starts, distinct, weights[distinct], table.body.most)


def crowd_by(table: WeightTable, subscriptions: Sequence[LocatedSubscription]) -> Crowd:
    """Return subscriptions, by this table of weights, as arrays."""
    known: dict[str, int] = {}
    said = (known.setdefault(word, len(known)) for one in subscriptions for word in one.words)
    words = np.fromiter(said, np.int32)
    lengths = np.fromiter((len(one.words) for one in subscriptions), np.int64)
    owners = np.repeat(np.arange(len(subscriptions), dtype=np.int32), lengths)
    places = np.array([one.place for one in subscriptions], np.int32).reshape(-1, 3).T.copy()
    shares = np.array([(one.alpha, one.threshold) for one in subscriptions], np.int32).reshape(-1, 2).T.copy()
    return arranged(list(known), (places, shares), (owners, words), table)


def crowd_of(asked: Sequence[WeightedSubscription]) -> Crowd:
    """Return subscriptions, all by the same table of weights, as arrays."""
    names = sorted({word for one in asked for word in one.weights})
    vocabulary = {word: at for at, word in enumerate(names)}
    return Crowd(
        names,
        np.array([one.place for one in asked], np.int32).reshape(-1, 3).T.copy(),
        np.array([(one.alpha, one.threshold) for one in asked], np.int32).reshape(-1, 2).T.copy(),
        np.cumsum([0, *(len(one.weights) for one in asked)], dtype=np.int64),
        np.array([vocabulary[word] for one in asked for word in one.weights], np.int32),
        np.array([weight for one in asked for weight in one.weights.values()], np.int64),
        asked[0].most if asked else 1,
    )
