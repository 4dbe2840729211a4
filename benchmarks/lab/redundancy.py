"""What depth, origins and trees cost and save: `python -m benchmarks.lab.redundancy [--relays N]`.

On the attack lab's networks, without Spark: a share of the relays confirms messages and loses them, nobody
probes, nothing is mended.
"""

from __future__ import annotations

import argparse
from dataclasses import replace

import numpy as np

from benchmarks.lab.asked import Asked
from benchmarks.lab.drawing import Run

DROPPING = (0.1, 0.2)
RUNS = 20


def delivered(asked: Asked, share: float) -> float:
    """Return the share of messages that reach the root some way."""
    lost = 0
    for number in range(asked.runs):
        draws = np.random.default_rng((asked.seed, number, int(1000 * share)))
        droppers = draws.permutation(asked.relays)[: int(share * asked.relays)].astype(np.int32)
        bad: dict[tuple[int, int], int] = {}
        for rows in Run(replace(asked, dropping="silent"), number, droppers).passing(scan=False):
            for message in zip(rows["topic"].tolist(), rows["number"].tolist(), strict=True):
                bad[message] = bad.get(message, 0) + 1
        lost += sum(ways == asked.origins * asked.trees for ways in bad.values())
    return 1 - lost / (asked.runs * asked.topics * asked.messages)


def transmissions(asked: Asked) -> float:
    """Return how many transmissions a message takes where nobody drops any."""
    sent = sum(
        int(rows["forwarded"].sum())
        for number in range(asked.runs)
        for rows in Run(asked, number).passing(scan=False)
    )
    return sent / (asked.runs * asked.topics * asked.messages)


def main() -> None:
    """Print a row for each depth and number of trees and origins."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--relays", type=int, default=500)
    relays = parser.parse_args().relays
    print("| depth | links of a mailbox | trees | origins | transmissions | 10 % drop | 20 % drop |")
    for depth in (1, 2, 3, 4):
        for trees, origins in ((1, 1), (1, 2), (1, 3), (2, 1), (2, 2)):
            asked = Asked(
                RUNS,
                topics=20,
                relays=relays,
                depth=depth,
                listed=False,
                messages=50,
                origins=origins,
                trees=trees,
            )
            shares = " | ".join(f"{delivered(asked, share):.1%}" for share in DROPPING)
            width = asked.seating.width * trees
            print(
                f"| {depth} | {width} | {trees} | {origins} | {transmissions(asked):.1f} | {shares} |",
                flush=True,
            )


if __name__ == "__main__":
    main()
