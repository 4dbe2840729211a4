"""Subscriptions that cover others, at random: nothing that the true one wants may be missed.

    python tests/protocol/spatial/covering.py [CASES] [SEED]

tells how many there were, how often what is told wants a message for each that the true one wants, and how
often nothing could cover: 100,000 cases unless told otherwise.
"""

from __future__ import annotations

import math
import sys
from dataclasses import dataclass
from random import Random

from spatial_world import ALPHAS, THRESHOLDS

from hushcast_protocol.base.errors import UsageError
from hushcast_protocol.spatial.places import Place, chord, place_of, square
from hushcast_protocol.spatial.similarity import WeightedSubscription, in_order
from hushcast_protocol.spatial.subscription_blur import cover

MESSAGES = 40  # of each case


@dataclass
class Excess:
    """Messages that the true subscriptions wanted, those that the told ones did, and refusals."""

    cases: int = 0
    refused: int = 0
    true: int = 0
    told: int = 0


def near(random: Random, place: tuple[float, float], kilometres: float) -> Place:
    """A place about so far away."""
    latitude, longitude = place
    off = random.gauss(0, kilometres / 111)
    flat = max(math.cos(math.radians(latitude)), 0.01)
    east = longitude + random.gauss(0, kilometres / 111) / flat
    return place_of(max(-90.0, min(90.0, latitude + off)), (east + 180) % 360 - 180)


def try_case(random: Random, excess: Excess) -> None:
    """Cover one subscription; hold what is told against some messages, many of them at the border."""
    most = random.choice((10, 100, 1000))
    home = random.choice(((60.17, 24.94), (0.0, 179.999), (89.99, 10.0), (-33.0, 151.0)))
    weights = {f"w{at}": random.choice((1, 7, 1000, random.randrange(1, 9000))) for at in range(5)}
    words = random.sample(sorted(weights), random.randint(1, 5))
    own = in_order({word: weights[word] for word in words})
    alpha, threshold = random.choice((0, 1000, *ALPHAS)), random.choice((*THRESHOLDS, 1, 1000))
    true = WeightedSubscription(near(random, home, most / 10), own, alpha, threshold, chord(most))
    blur = random.choice((None, most / 100, most / 20, most / 4))
    count = random.choice((None, 1, 2, 3))
    excess.cases += 1
    try:
        told = cover(true, blur, count)
    except UsageError:
        excess.refused += 1
        return
    shown = WeightedSubscription(
        told.place,
        in_order({word: own[word] for word in told.words}),
        told.alpha,
        told.threshold,
        true.most,
    )
    for _ in range(MESSAGES):
        said = {word for word in weights if random.random() < random.choice((0.1, 0.5, 0.9))}
        away = random.choice((0.01, 0.2, 0.5, 1.0)) * most
        place = near(random, home, away)
        wanted = true.reaches(sum(own[word] for word in said if word in own), square(true.place, place))
        common = sum(shown.weights[word] for word in said if word in shown.weights)
        is_told = shown.reaches(common, square(told.place, place))
        assert is_told or not wanted, "what is told misses what is wanted"
        excess.true += wanted
        excess.told += is_told


def main(cases: int, seed: int) -> None:
    random, excess = Random(seed), Excess()
    for _ in range(cases):
        try_case(random, excess)
    print(
        f"{excess.cases:,} cases, {excess.refused:,} refused: {excess.true:,} messages wanted, 0 missed, "
        f"{excess.told:,} asked for, {excess.told / excess.true:.2f} for each"
    )


if __name__ == "__main__":
    given = [int(one) for one in sys.argv[1:]]
    main(*given, *(100_000, 1)[len(given) :])
