"""Within how many days probes find relays that lose messages: `python -m benchmarks.models.coverage`.

Trees without daemons, one subscriber; each copy that a relay is given is lost by chance once in 500 times. It
is judged once a day, and suspects are made leaves. Rows: how many probes a day; what bad relays lose; whether
the ways of messages that keepers show count, too, by the relay that handed each in. A bad origin hands in
nothing. `found` is the median day on which nine of ten bad relays are suspects; `passes` the share of copies
that pass relays of the tree, their origin left out, on the day given.
"""

from __future__ import annotations

import argparse
import random
from collections.abc import Iterable
from statistics import fmean, median

from hushcast_protocol.overlay.coverage import (
    MessageForm,
    ProbeCopy,
    ProbePath,
    judge,
    judged,
    ways,
    weight,
)
from hushcast_protocol.overlay.tree import mend, plan

CHANCE = 0.002
DAYS = 60
FOUND = 0.9  # share of the bad relays
MAX_SHUNNED = 0.25  # share of the relays, as daemons have it
PLAIN, LARGE = MessageForm(1024, 8), MessageForm(4096, 8)


class Life:
    """One subscription over days."""

    def __init__(self, rng: random.Random, relays: int, bad: float, part: float) -> None:
        """`part` of the messages have the form that bad relays lose; 1: they lose all."""
        self._rng = rng
        self._names = [number.to_bytes(32, "big") for number in range(1, relays + 1)]
        self._part = part
        self.bad = set(rng.sample(self._names, round(bad * relays)))
        self._tree = plan(self._names, 2, rng.randbytes(16))
        self._held: list[ProbeCopy] = []
        self.suspects: set[bytes] = set()

    def day(self, probes: int, messages: int) -> None:
        """Let a day go by."""
        all_ways = ways([self._tree], self._names)
        for number in range(probes + messages):
            self._message(all_ways, is_probe=number < probes)
        self.suspects = set(judge(self._held).suspects)
        shunned = self.suspects if len(self.suspects) <= MAX_SHUNNED * len(self._names) else ()
        self._tree = mend(self._tree, self._names, shunned, self._rng.randbytes(16))

    def _message(self, all_ways: dict[bytes, ProbePath], is_probe: bool) -> None:
        form = LARGE if self._rng.random() < self._part else PLAIN
        losing = self.bad if form == LARGE else set()
        origins = self._rng.sample(self._names, 2)
        copies = {origin: all_ways[origin] for origin in origins}
        came = {way.relays[-1] for way in copies.values() if self._passes(way.relays, losing)}
        if is_probe:
            told = judged(copies, origins, came)
            weights = {origin: weight(origin, all_ways, 2) for origin in told}
        else:  # of the two only who handed it in first is known
            told = {one: not copies[one].tops.isdisjoint(came) for one in origins if one not in losing}
            told = dict(list(told.items())[:1])
            weights = dict.fromkeys(told, 1.0)
        self._held += [ProbeCopy(copies[one].relays, told[one], 0.0, weights[one], form) for one in told]

    def _passes(self, way: Iterable[bytes], losing: set[bytes]) -> bool:
        return not any(relay in losing or self._rng.random() < CHANCE for relay in way)

    def found(self) -> float:
        """Return the share of the bad relays that are suspects."""
        return len(self.bad & self.suspects) / len(self.bad)

    def passes(self) -> float:
        """Return the share of copies of the form that is lost that good origins' trees do not lose."""
        good = [one for one in self._names if one not in self.bad]
        return fmean(self.bad.isdisjoint(self._tree.way(one)) for one in good)


def row(runs: int, relays: int, bad: float, part: float, probes: int, messages: int, day: int) -> None:
    """Print one row."""
    found_at: list[float] = []
    passes, honest = [], 0
    for number in range(runs):
        life = Life(random.Random(number), relays, bad, part)  # noqa: S311 - must replay
        at = float("inf")
        for today in range(1, DAYS + 1):
            life.day(probes, messages)
            if today == day:
                passes.append(life.passes())
                honest += len(life.suspects - life.bad)
            if life.found() >= FOUND:
                at = min(at, today)
                if today >= day:
                    break
        found_at.append(at)
    print(
        f"| {relays} | {bad:.0%} | {part:.0%} | {probes} | {messages} | {median(found_at):.0f}"
        f" | {fmean(passes):.1%} | {honest / runs:.1f} |",
        flush=True,
    )


def main() -> None:
    """Print all rows."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--relays", type=int, default=100)
    parser.add_argument("--day", type=int, default=7)
    given = parser.parse_args()
    print("| relays | bad | lose of what is sent | probes a day | messages | found, days | passes | honest |")
    for bad in (0.1, 0.2):
        for part in (1.0, 0.2):
            for messages in (0, 100):
                for probes in (2, 6, 12, 18, 24, 48, 96):
                    row(given.runs, given.relays, bad, part, probes, messages, given.day)


if __name__ == "__main__":
    main()
