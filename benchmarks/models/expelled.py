"""Whom hidden subscriptions name, on trees without daemons: `python -m benchmarks.models.expelled`.

A hundred relays and 24 trials, three for each of eight subscriptions; each copy of a probe that a relay is
given is lost by chance once in 500 times, or once in a hundred. Rows: ten relays lose a share of what they
are given; or nobody does; or colluders lose just what comes from one honest relay, where they stand above it.
"""

from __future__ import annotations

import argparse
import random

from hushcast_protocol.authorities.expulsion import LossTrial, losers
from hushcast_protocol.overlay.coverage import ProbeCopy, judge, judged, ways
from hushcast_protocol.overlay.tree import plan

NAMES = [number.to_bytes(32, "big") for number in range(1, 101)]
VICTIM = NAMES[-1]
TRIALS = 24


def trial(
    rng: random.Random, probes: int, bad: set[bytes], share: float, chance: float, frame: bool
) -> LossTrial:
    """Return what one subscription tells of a tree of its own."""
    all_ways = ways([plan(NAMES, 2, rng.randbytes(16))], NAMES)
    outcomes = []
    for _ in range(probes):
        origins, came_by = rng.sample(NAMES, 2), set()
        for origin in origins:
            before = None
            for relay in all_ways[origin].relays:
                loses = before == VICTIM if frame else rng.random() < share
                if (relay in bad and loses) or rng.random() < chance:
                    break
                before = relay
            else:
                came_by.add(all_ways[origin].relays[-1])
        copies = {origin: all_ways[origin] for origin in origins}
        for origin, arrived in judged(copies, origins, came_by).items():
            outcomes.append(ProbeCopy(copies[origin].relays, arrived, 0.0))
    return judge(outcomes).losses


def row(runs: int, probes: int, count: int, share: float, chance: float, frame: bool = False) -> None:
    """Print how many bad relays a run names in the mean, and how many honest ones all runs do."""
    bad, found, honest = set(NAMES[:count]), 0, 0
    for number in range(runs):
        rng = random.Random(number)  # noqa: S311 - must replay
        trials = [trial(rng, probes, bad, share, chance, frame) for _ in range(TRIALS)]
        named = {loser.relay for loser in losers(trials)}
        found += len(named & bad)
        honest += len(named - bad)
    what = "frame one" if frame else f"lose {share:g}"
    print(
        f"| {count} {what} | {chance:g} | {probes} | {found / runs:.1f} | {honest} in {runs} runs |",
        flush=True,
    )


def main() -> None:
    """Print all rows."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=10)
    runs = parser.parse_args().runs
    print("| relays | lost by chance | probes a trial | named | honest ones named |")
    for share in (1.0, 0.5, 0.2, 0.1):
        for probes in (300, 1200):
            row(runs, probes, 10, share, 0.002)
    for chance in (0.002, 0.01):
        row(runs, 1200, 0, 0.0, chance)
    for count in (10, 20, 30):
        row(runs, 300, count, 0.0, 0.002, frame=True)


if __name__ == "__main__":
    main()
