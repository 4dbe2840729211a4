"""Subscriptions that nobody made, as lines: the workloads that brokers are measured with."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import accumulate

PLACES = 65_536
_KINDS = 500
_SHARES = (0.001, 0.003, 0.01, 0.03)  # of a number's places that a condition takes
_TOWNS = ((9_000, 6), (30_000, 3), (52_000, 1))  # where people live, and how many of ten
_AROUND = 1_500  # places from a town's middle: one standard deviation
ATTRIBUTES = ["alt:0..65535", "kind", "lat:0..65535", "lon:0..65535"]

Place = Callable[[random.Random], int]


@dataclass(frozen=True)
class FilterWorkload:
    """How many lines, subscribers and topics; whether conditions lie around three towns, or evenly spread."""

    subscriptions: int
    subscribers: int
    topics: int
    towns: bool
    seed: int


def lines(asked: FilterWorkload) -> Iterator[str]:
    """Yield lines as `brokers.subscription_lines` reads them, the same for the same seed.

    Topics are as popular as words are, the n-th 1/n times as much as the first (Zipf).
    """
    chance = random.Random(asked.seed)  # noqa: S311 - to be drawn again the same
    place = in_towns if asked.towns else anywhere
    popular = list(accumulate(1 / rank for rank in range(1, asked.topics + 1)))
    for _ in range(asked.subscriptions):
        (topic,) = chance.choices(range(asked.topics), cum_weights=popular)
        line = {
            "source": f"subscriber {chance.randrange(asked.subscribers)}",
            "topic": f"events {topic + 1}",
            "attributes": ATTRIBUTES,
            "where": _where(chance, place),
        }
        yield json.dumps(line)


def _where(chance: random.Random, place: Place) -> str:
    named = sorted(chance.sample(("alt", "kind", "lat", "lon"), chance.randint(1, len(ATTRIBUTES))))
    return ", ".join(_condition(chance, place, name) for name in named)


def _condition(chance: random.Random, place: Place, name: str) -> str:
    if name == "kind":
        return f"kind = {kind(chance)}"
    low, high = ends(chance, place)
    return f"{name} in [{low}, {high}]"


def kind(chance: random.Random) -> str:
    """Draw a label: a few are common, most are rare."""
    return f"kind {min(int(chance.paretovariate(0.7)), _KINDS)}"


def ends(chance: random.Random, place: Place) -> tuple[int, int]:
    """Draw the ends of a condition on a number, around a place."""
    width = int(PLACES * chance.choice(_SHARES) * chance.uniform(0.5, 1.5))
    low = min(max(place(chance) - chance.randint(0, width), 0), PLACES - 1 - width)
    return low, low + width


def anywhere(chance: random.Random) -> int:
    """Draw a place, each as likely."""
    return chance.randrange(PLACES)


def in_towns(chance: random.Random) -> int:
    """Draw a place near one of three towns, the first of which most people live in."""
    (town,) = chance.choices([at for at, _ in _TOWNS], [people for _, people in _TOWNS])
    return min(max(int(chance.gauss(town, _AROUND)), 0), PLACES - 1)
