"""Answers of the engine beside those of the pure code, at random: byte for byte.

python tests/located/proving.py [BATCHES] [SEED]
"""

from __future__ import annotations

import sys
import time
from pathlib import Path
from random import Random

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parents[1]))
    import helper_folders  # noqa: F401

from spatial_world import World

from hushcast_located.prover import Prover
from hushcast_protocol.base.wire import encode
from hushcast_protocol.spatial.verification_object import wanted


def try_batch(random: Random) -> int:
    """Hold the engine's answers for one batch against the pure code's; return how many there were."""
    most, several = random.choice((0, 1, 5, 30, 60)), random.choice((1, 4, 30))
    world = World.draw(random, most=most, intervals=1, subscriptions=several)
    expected = [(encode(answer), len(wanted(answer.proof))) for answer in world.answers[0]]
    assert list(Prover(world.feeds[0]).answers(world.subscriptions)) == expected
    return len(expected)


def main(batches: int, seed: int) -> None:
    random = Random(seed)
    began = time.perf_counter()
    answers = sum(try_batch(random) for _ in range(batches))
    print(f"{batches:,} batches: {answers:,} answers are the same, {time.perf_counter() - began:.0f} s")


if __name__ == "__main__":
    given = [int(one) for one in sys.argv[1:]]
    main(*given, *(10_000, 1)[len(given) :])
