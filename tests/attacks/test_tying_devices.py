"""Who sees when subscriptions to a topic begin ties two devices of a person hardly better than by chance.

A model of moments alone, with the constants of daemons: persons with two devices each begin one known topic
within the same hours. The adversary sees the moment at which each subscription begins, and knows which is a
person's first and which a second; how long a second one takes it knows as a distribution. It names for each
second one the likeliest first. That daemons draw so is tried in `tests/local/test_device_circle.py`, and the
same attack by relays, on leases, is the experiment `devices` of `benchmarks/lab/attacks.py`.
"""

from __future__ import annotations

import random
from bisect import bisect
from collections.abc import Callable

import pytest

from hushcast_local.devices.subscription_plan import FOLLOWED_WITHIN

PERSONS = [4, 10, 30]
EPOCHS = 24  # within which all of them begin the topic
ROUNDS = 4_000
BINS = 40

Second = Callable[[random.Random, float], float]
"""Draws when a second device begins what the first began at a moment, in epochs."""


def as_devices_do(draw: random.Random, first: float) -> float:
    """The first tells with the next epoch's beat; the second begins at a moment drawn after it heard."""
    return int(first) + 1 + draw.random() + draw.uniform(0, FOLLOWED_WITHIN)


def at_once(draw: random.Random, first: float) -> float:
    """As if each change were told and followed within a minute."""
    return first + draw.uniform(0, 1 / 60)


def accuracy(persons: int, second: Second, epochs: float = EPOCHS) -> float:
    """Return how often the adversary is right."""
    draw = random.Random(persons)
    begun = []
    for _ in range(ROUNDS * 10 // persons):
        firsts = [draw.uniform(0, epochs) for _ in range(persons)]
        begun.append((firsts, [second(draw, first) for first in firsts]))
    delays = sorted(
        late - early for firsts, seconds in begun for early, late in zip(firsts, seconds, strict=True)
    )
    width = delays[-1] / BINS

    def likely(delay: float) -> int:
        if not 0 <= delay <= delays[-1]:
            return 0
        begin = int(delay / width) * width
        return bisect(delays, begin + width) - bisect(delays, begin)

    right = trials = 0
    for firsts, seconds in begun:
        for first, late in zip(firsts, seconds, strict=True):
            best = max(likely(late - one) for one in firsts)
            among = [one for one in firsts if likely(late - one) == best]
            right += draw.choice(among) == first
            trials += 1
    return right / trials


@pytest.mark.parametrize("persons", PERSONS)
def test_two_devices_are_tied_no_better_than_half_as_often_again_as_by_chance(persons: int) -> None:
    assert accuracy(persons, as_devices_do) * persons <= 1.5


@pytest.mark.parametrize(("epochs", "least", "most"), [(6, 1.0, 1.2), (48, 1.8, 2.1)])
def test_they_are_tied_less_often_where_persons_come_together_and_more_often_over_days(
    epochs: int, least: float, most: float
) -> None:
    assert least < accuracy(30, as_devices_do, epochs) * 30 <= most


@pytest.mark.parametrize("persons", PERSONS)
def test_without_drawn_moments_they_would_be_tied_nearly_always(persons: int) -> None:
    assert accuracy(persons, at_once) > 0.9
