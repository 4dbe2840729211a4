"""Many trials of one attack: `python -m benchmarks.traffic_share`.

`traffic-share` on the attack lab's networks, without Spark, and belief for belief the analyser's
(`tests/analytics/test_lab_benchmarks.py`). An attack that is sure and wrong is measured by its rare hits, and
needs tens of thousands of trials.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from typing import NamedTuple

import numpy as np

from hushcast_analytics.attacks.traffic import levels
from hushcast_analytics.lab.asked import Asked
from hushcast_analytics.lab.drawing import ROOT, Columns, Numbers, Run
from hushcast_analytics.summary import Z, variance_of_mean

SHARES = (0.1, 0.2)
TOPICS = 100  # a run


class Tally(NamedTuple):
    """Of one run: its trials, and the beliefs in their subscribers, added up."""

    trials: int
    beliefs: float


def beliefs(asked: Asked, number: int, colluding: Numbers) -> Iterator[tuple[int, float]]:
    """Yield each topic with an honest subscriber, and the attack's belief in that subscriber.

    `asked` has one tree a subscription, one epoch and no droppers.
    """
    run = Run(asked, number, colluding)
    ours = np.zeros(asked.relays, bool)
    ours[colluding] = True
    ways = run.passing(scan=False)
    for topic, (owner, seats) in enumerate(zip(run.owners, run.seated(), strict=True)):
        seen = [next(ways) for _ in range(asked.origins)]
        if not ours[owner]:
            yield topic, float(_posterior(asked, ours, seats, seen)[owner])


def _posterior(asked: Asked, ours: np.ndarray, seats: Columns, seen: list[Columns]) -> np.ndarray:
    """Return the probability of each relay, from the colluders' seats and what they saw."""
    node, above = seats["node"], seats["above"]
    ratios = np.zeros(asked.relays)
    below = node[(above != ROOT) & ours[above]]
    ratios[below] = -2 * np.log(asked.relays)
    known = np.unique(np.concatenate([way["number"] for way in seen]))
    if len(known):
        total = len(known) / (1 - (1 - ours.sum() / asked.relays) ** asked.depth)
        passed = np.zeros(asked.relays)
        for way in seen:
            np.add.at(passed, way["node"], way["forwarded"])
        under = ours[node] & (above != ROOT)
        np.add.at(ratios, above[under], _ratio(asked, passed[node[under]], total))
    ratios[ours] = -np.inf
    weights = np.exp(ratios - ratios.max())
    return weights / weights.sum()


def _ratio(asked: Asked, messages: np.ndarray, total: float) -> np.ndarray:
    """Log likelihood ratio of being the root, as `attacks.traffic` has it."""
    (top, top_share), *lower = levels(asked.relays, asked.depth)

    def log_rate(expected: float, share: float) -> np.ndarray:
        return np.log(expected) + messages * np.log(share) - total * share

    if not lower:
        return np.full(len(messages), np.log(top))
    others = [log_rate(size / asked.relays, share) for size, share in lower]
    return log_rate(top, top_share) - np.logaddexp.reduce(others)


def tally(asked: Asked, share: float, number: int) -> Tally:
    """Return one run's sums; the colluders are random relays."""
    draws = np.random.default_rng((asked.seed, number, int(1000 * share)))
    colluding = draws.permutation(asked.relays)[: int(share * asked.relays)].astype(np.int32)
    found = [belief for _, belief in beliefs(asked, number, colluding)]
    return Tally(len(found), sum(found))


def interval(tallies: list[Tally]) -> tuple[float, float, float]:
    """Return the mean belief over trials between the ends of its 95 % interval, as `summary.pooled` does."""
    sums = np.array(tallies)
    n, mean = int(sums[:, 0].sum()), sums[:, 1].sum() / sums[:, 0].sum()
    products = sums.T @ sums
    width = Z * variance_of_mean(len(sums), n, mean, products[1, 1], products[0, 1], products[0, 0]) ** 0.5
    return max(0.0, mean - width), mean, mean + width


def main() -> None:
    """Print a line for each share of colluders."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--relays", type=int, default=2000)
    parser.add_argument("--runs", type=int, default=1000)
    parser.add_argument("--depth", type=int, default=2)
    parser.add_argument("--origins", type=int, default=2)
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    asked = Asked(**vars(given), topics=TOPICS, listed=False, messages=20)
    with ProcessPoolExecutor() as processes:
        for share in SHARES:
            tallies = list(processes.map(partial(tally, asked, share), range(given.runs), chunksize=10))
            chance = 1 / (given.relays - int(share * given.relays))
            low, mean, high = (end / chance for end in interval(tallies))
            trials = sum(one.trials for one in tallies)
            print(f"{share:.0%} {trials} trials: {mean:.2f} ({low:.2f}–{high:.2f}) of chance", flush=True)


if __name__ == "__main__":
    main()
