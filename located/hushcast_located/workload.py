"""Subscriptions and messages as in the experiments of Yan and others 2017 (section 4.1), drawn from a seed.

Points of interest that bring words and a place: words by Zipf's law as Mandelbrot mended it, since keywords
are without the few words that every text has; places around towns in a country as wide as theirs, of which
the largest have most. A message has 41 words, a subscription one to five.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from hushcast_located.crowd import Crowd, Ints, Numbers, arranged
from hushcast_protocol.spatial.located_messages import LocatedMessage
from hushcast_protocol.spatial.places import SCALE, chord, place_of
from hushcast_protocol.spatial.weight_table import WeightTable

WORDS = 100_000  # different words of all points
SHIFT = 10  # ranks that are left out: the most frequent word is one of a hundred, and in a third of messages
KEYWORDS = 41  # of a message
MOST_KEYWORDS = 5  # of a subscription
BYTES = 330  # of a message's text: 41 words of eight letters
DISTANCE = 4500.0  # kilometres, the greatest distance between two subscriptions
TOWNS = 300
_COUNTRY = ((25.0, 49.0), (-124.0, -67.0))  # degrees: the least box around 48 of the United States
_SPREAD = 0.15  # degrees around the middle of a town

Floats = npt.NDArray[np.float64]


@dataclass
class Workload:
    """Draws messages and subscriptions; the towns and the words are the same for both."""

    random: np.random.Generator

    def __post_init__(self) -> None:
        (south, north), (west, east) = _COUNTRY
        self._towns = self.random.uniform((south, west), (north, east), (TOWNS, 2))
        self._sizes = _zipf(TOWNS)
        self._words = np.cumsum(_zipf(WORDS, SHIFT))
        self._names = sorted(_name(number) for number in range(WORDS))
        self._ranks = self.random.permutation(WORDS)  # so that frequent words stand anywhere in the order

    def messages(self, count: int, number: int) -> list[LocatedMessage]:
        """Draw messages of the batch of this number."""
        return [
            LocatedMessage(number, str(at), place_of(*place), self._said(KEYWORDS), self.random.bytes(BYTES))
            for at, place in enumerate(self._places(count).tolist())
        ]

    def crowd(self, count: int, table: WeightTable) -> Crowd:
        """Draw subscriptions, each with an alpha of 0.5 and a threshold of 0.7."""
        lengths = self.random.integers(1, MOST_KEYWORDS + 1, count)
        owners = np.repeat(np.arange(count), lengths)
        words = self._draw(len(owners))
        rows = _on_the_sphere(self._places(count)), same_shares(500, 700, count)
        return arranged(self._names, rows, (owners, words), table)

    def _places(self, count: int) -> Floats:
        """Draw places, in rows of degrees."""
        towns = self.random.choice(TOWNS, count, p=self._sizes)
        return self._towns[towns] + self.random.normal(0, _SPREAD, (count, 2))

    def _said(self, count: int) -> tuple[str, ...]:
        """Draw so many different words."""
        found: dict[int, None] = {}
        while len(found) < count:
            found.update(dict.fromkeys(self._draw(count).tolist()))
        return tuple(sorted(self._names[word] for word in list(found)[:count]))

    def _draw(self, count: int) -> Ints:
        ranks = np.searchsorted(self._words, self.random.random(count) * self._words[-1])
        drawn: Ints = self._ranks[np.minimum(ranks, WORDS - 1)]
        return drawn


def _zipf(count: int, shift: int = 0) -> Floats:
    """Return shares that are as one to their ranks and the shift."""
    shares = 1 / np.arange(1 + shift, count + 1 + shift)
    of_all: Floats = shares / shares.sum()
    return of_all


def _name(number: int) -> str:
    """Return a word of eight letters that nobody else has."""
    letters = ""
    for _ in range(8):
        number, at = divmod(number, 26)
        letters += chr(ord("a") + at)
    return letters


def _on_the_sphere(degrees: Floats) -> Numbers:
    north, east = np.radians(degrees).T
    flat = np.cos(north)
    places: Floats = np.stack([flat * np.cos(east), flat * np.sin(east), np.sin(north)]) * SCALE
    return np.round(places).astype(np.int32)


def same_shares(alpha: int, threshold: int, count: int) -> Numbers:
    """Return alpha and threshold, in thousandths, for so many subscriptions."""
    shares: Numbers = np.repeat(np.array([[alpha], [threshold]], np.int32), count, axis=1)
    return shares


def greatest_distance() -> int:
    """Return the distance from which a place counts nothing, as a table has it."""
    return chord(DISTANCE)
