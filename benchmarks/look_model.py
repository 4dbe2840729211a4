"""How many publications are lost though publishers look for them: `python -m benchmarks.look_model`.

Relays and keepers are drawn anew for each publication; a share of them is bad: they lose what they take, or
lose it and say that they keep it. A publication is lost if no honest keeper has it after the last look. Not
counted are those all of whose keepers are bad: no look helps them.
"""

from __future__ import annotations

import argparse
from typing import NamedTuple

import numpy as np

from hushcast_local.second_looks import DROPPED_ANEW
from hushcast_overlay.routes.kept_looks import ASKED
from hushcast_protocol.base.keeping_rule import MAX_KEEPERS

ORIGINS = 2
OF = 10_000  # publications, of which it is told how many are lost


class Lost(NamedTuple):
    """Of `OF` publications, how many are lost without looks and with them, and the drops anew for each."""

    without: float
    after_looks: float
    drops: float


def lost(bad: float, is_lying: bool, trials: int, asked: int = ASKED) -> Lost:
    """Return what becomes of so many publications where a share of the relays is bad."""
    rng = np.random.default_rng(1)
    keepers = rng.random((trials, MAX_KEEPERS)) < bad  # in the order in which a look draws them
    counted = ~keepers.all(axis=1)
    keepers = keepers[counted]
    kept = ~(rng.random((len(keepers), ORIGINS)) < bad).all(axis=1)
    without = OF * float((~kept).mean())
    left, drops = np.ones(len(keepers), bool), 0
    for _ in range(DROPPED_ANEW):
        drawn = rng.permuted(keepers, axis=1)[:, :asked]
        shown = np.where(drawn, is_lying, kept[:, None])
        left &= ~shown.all(axis=1)
        drops += int(left.sum())
        kept |= left & ~(rng.random((len(keepers), ORIGINS)) < bad).all(axis=1)
    return Lost(without, OF * float((~kept).mean()), drops / len(keepers))


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--trials", type=int, default=2_000_000)
    trials: int = parser.parse_args().trials
    print(f"| bad | keepers asked | lost of {OF:,} without looks | with them | they lie | drops anew |")
    for bad in (0.1, 0.2):
        for asked in (ASKED, ASKED + 1, MAX_KEEPERS):
            honest, lying = (lost(bad, is_lying, trials, asked) for is_lying in (False, True))
            figures = f"{honest.without:.1f} | {honest.after_looks:.2f} | {lying.after_looks:.2f}"
            print(f"| {bad:.0%} | {asked} | {figures} | {honest.drops:.2f} |", flush=True)


if __name__ == "__main__":
    main()
