"""After how many probes a relay is found that loses one form alone: `python -m benchmarks.models.forms`.

A hundred relays in a tree without daemons, ten of which lose all probes of one form and no others; each copy
that a relay is given is lost by chance once in 500 times. The form is that of a share of the messages. Then
the same of hidden subscriptions, whose probes have any form, as nothing comes to them.
"""

from __future__ import annotations

import argparse
import random
from collections.abc import Callable
from statistics import median

from hushcast_protocol.authorities.expulsion import losers
from hushcast_protocol.content.likeness import OTHERS, Likeness, draw_likeness
from hushcast_protocol.content.payload_sizes import PADDED_SIZES
from hushcast_protocol.overlay.coverage import (
    Judgement,
    MessageForm,
    ProbeCopy,
    ProbePath,
    judge,
    judged,
    share,
    ways,
    weight,
)
from hushcast_protocol.overlay.tree import plan

NAMES = [number.to_bytes(32, "big") for number in range(1, 101)]
BAD = set(NAMES[:10])
CHANCE = 0.002
LOOKS = (50, 100, 200, 300, 400, 576, 800, 1152, 1728, 2304, 3456)  # probes; 576 are those of a day
DAY = 576
TRIALS = 24  # three of each of eight hidden subscriptions
_PLAIN, _LOST = PADDED_SIZES[0], PADDED_SIZES[1]


class Dice:
    """Draws that replay."""

    def __init__(self, rng: random.Random) -> None:
        self.randomness: Callable[[int], bytes] = rng.randbytes
        self.below: Callable[[int], int] = rng.randrange


def outcomes_of(
    rng: random.Random, all_ways: dict[bytes, ProbePath], size: int, is_lost: bool
) -> list[ProbeCopy]:
    """Return what one probe tells."""
    origins, came_by = rng.sample(NAMES, 2), set()
    for origin in origins:
        way = all_ways[origin].relays
        if not any((is_lost and relay in BAD) or rng.random() < CHANCE for relay in way):
            came_by.add(way[-1])
    copies = {origin: all_ways[origin] for origin in origins}
    return [
        ProbeCopy(copies[origin].relays, arrived, 0.0, weight(origin, all_ways, 2), MessageForm(size, 8))
        for origin, arrived in judged(copies, origins, came_by).items()
    ]


def row(runs: int, part: float) -> None:
    """Print when half of those that can be told are found, who else is named, and what coverage says."""
    needed: list[float] = []
    honest, shares, harmed = 0, [], []
    for number in range(runs):
        rng = random.Random(number)  # noqa: S311 - must replay
        dice = Dice(rng)
        all_ways = ways([plan(NAMES, 2, rng.randbytes(16))], NAMES)
        # Who stands under another one that loses the same cannot be told from an honest relay.
        plain = {relay for relay in BAD if BAD.isdisjoint(all_ways[relay].relays[1:])}
        came = [Likeness(_LOST, frozenset())] * round(100 * part)
        came += [Likeness(_PLAIN, frozenset())] * (100 - len(came))
        held: list[ProbeCopy] = []
        found_at, sent = float("inf"), 0
        judgement = Judgement()
        for until in LOOKS:
            for _ in range(until - sent):
                size = draw_likeness(came, (), (), dice).size
                held += outcomes_of(rng, all_ways, size, size == _LOST)
            sent = until
            judgement = judge(held)
            if found_at == float("inf") and 2 * len(plain & set(judgement.suspects)) >= len(plain):
                found_at = until
            if until == DAY:
                shares.append(share(held)[0])
                honest += len(set(judgement.suspects) - BAD)
        needed.append(found_at)
        harmed.append(sum(not BAD.isdisjoint(way.relays) for way in all_ways.values()) / len(NAMES) * part)
    middle = median(needed)
    print(
        f"| {part:.0%} | {1 - sum(harmed) / runs:.1%} | {sum(shares) / runs:.1%} | {middle:.0f}"
        f" | {honest} in {runs} runs |",
        flush=True,
    )


def hidden(runs: int, probes: int, least: int) -> None:
    """Print how many are named of those that lose what has a size, or more, by hidden subscriptions."""
    found = honest = 0
    for number in range(runs):
        rng = random.Random(number)  # noqa: S311 - must replay
        trials = []
        for _ in range(TRIALS):
            all_ways = ways([plan(NAMES, 2, rng.randbytes(16))], NAMES)
            held: list[ProbeCopy] = []
            for _ in range(probes):
                size = draw_likeness((), (), (), Dice(rng)).size
                held += outcomes_of(rng, all_ways, size, size >= least)
            trials.append(judge(held).losses)
        named = {loser.relay for loser in losers(trials)}
        found, honest = found + len(named & BAD), honest + len(named - BAD)
    print(f"| {least // 1024} KiB | {probes} | {found / runs:.1f} | {honest} in {runs} runs |", flush=True)


def main() -> None:
    """Print all rows."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=10)
    runs = parser.parse_args().runs
    print(f"one probe in {OTHERS} has any form")
    print("| share of the form | copies that come | coverage says after a day | found after | honest named |")
    for part in (1.0, 0.5, 0.2, 0.1, 0.05, 0.02):
        row(runs, part)
    print("| lose what has at least | probes a trial | named, of 10 | honest ones named |")
    for least in PADDED_SIZES:
        for probes in (300, 1200):
            hidden(max(1, runs // 3), probes, least)


if __name__ == "__main__":
    main()
