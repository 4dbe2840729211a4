"""How soon presence names a relay that subscribes without trees: `python -m benchmarks.models.without_trees`.

As in `presence`, of relays that are the sole subscriber of a known topic. Who sees when one is there:

- its first host always; its second while that is used, and once on a day after, when the rest is fetched;
- a keeper that is drawn for an audit, or asked as those before it do not know, at one moment of a day;
- all keepers, when the second host is used first: it asks for a whole day at once;
- on a first day that is cut, relays of the topic's shard, of which one is asked each epoch who is there: as
  if nobody else asked there.

First by what is seen alone; then by all that can be reckoned, as in `told_moments`: that no keeper hears an
audit on a day is a little less likely of who was there.
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass

import numpy as np

from benchmarks.models.presence import AWAY_EPOCHS, DAYS, DOWN, RELAYS, SURE, UP, away_times, presence
from hushcast_protocol.base.epochs import EPOCHS_A_DAY
from hushcast_protocol.base.keeping_rule import MAX_KEEPERS

KNOWS = UP / (UP + DOWN) * 0.84  # of keepers, those that answer and were there as a day ended: 72 %
FETCHED_WITHIN = 0.5  # of a day, at its beginning: when an owner comes for what is left at a host


@dataclass(frozen=True)
class Seen:
    """What colluders see of one subscriber."""

    watched: np.ndarray
    """The epochs in which they see whether it is there."""
    audits: dict[int, int]
    """By the day, the epoch of an audit that they hear."""


def heard(bad: float) -> float:
    """Return how likely colluders hear an audit: keepers are asked until one knows, as colluders say."""
    return bad / (1 - (1 - bad) * (1 - KNOWS))


def _first_there(me: np.ndarray, begin: int, end: int | None = None) -> int | None:
    there = np.flatnonzero(me[begin:end])
    return begin + int(there[0]) if len(there) else None


def seen(rng: np.random.Generator, up: np.ndarray, bad: float, is_cut: bool) -> Seen:
    """Draw what colluders see of the first relay."""
    me, epochs = up[0], up.shape[1]
    first_is_bad, second_is_bad = rng.random(2) < bad
    a_keeper_is_bad = rng.random() >= (1 - bad) ** MAX_KEEPERS
    watched = np.full(epochs, first_is_bad)
    is_new = True
    for begin, end in away_times(up[rng.integers(1, len(up))]):
        if second_is_bad:
            watched[begin + AWAY_EPOCHS : end] = True
            after = (end // EPOCHS_A_DAY + 1) * EPOCHS_A_DAY
            after += int(rng.integers(int(FETCHED_WITHIN * EPOCHS_A_DAY)))
            if (fetched := _first_there(me, after)) is not None:
                watched[fetched] = True
        used = _first_there(me, begin + AWAY_EPOCHS, end)
        if is_new and used is not None:
            is_new = False
            if a_keeper_is_bad:
                watched[begin + AWAY_EPOCHS : used + 1] = True
    if is_cut:
        watched[:EPOCHS_A_DAY] |= me[:EPOCHS_A_DAY] & (rng.random(EPOCHS_A_DAY) < bad)
    audits = {}
    for day in range(1, epochs // EPOCHS_A_DAY):
        moment = day * EPOCHS_A_DAY + int(rng.integers(EPOCHS_A_DAY))
        if me[moment] and rng.random() < heard(bad):
            audits[day] = moment
    return Seen(watched, audits)


def weights(up: np.ndarray, one: Seen, days: int, bad: float, is_reckoned: bool) -> np.ndarray:
    """Return how likely each relay is the subscriber, by what was seen of so many days; in any unit."""
    epochs = days * EPOCHS_A_DAY
    alike = ~np.logical_and(up != up[0], one.watched)[:, :epochs].any(axis=1)
    found = alike.astype(float)
    for day in range(1, days):
        if (moment := one.audits.get(day)) is not None:
            found *= up[:, moment]
        elif is_reckoned:
            there = up[:, day * EPOCHS_A_DAY : (day + 1) * EPOCHS_A_DAY].mean(axis=1)
            found *= 1 - heard(bad) * there
    return found


def named(bad: float, is_cut: bool, trials: int) -> dict[bool, dict[int, float]]:
    """Return in which share of trials the subscriber was named within so many days, reckoned or not."""
    rng = np.random.default_rng(1)
    found = {reckoned: dict.fromkeys(DAYS, 0) for reckoned in (False, True)}
    for _ in range(trials):
        up = presence(rng, round(RELAYS * (1 - bad)), max(DAYS) * EPOCHS_A_DAY)
        one = seen(rng, up, bad, is_cut)
        for is_reckoned, counts in found.items():
            for days in DAYS:
                likely = weights(up, one, days, bad, is_reckoned)
                counts[days] += bool(likely[0] >= SURE * likely.sum())
    return {kind: {days: count / trials for days, count in one.items()} for kind, one in found.items()}


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--trials", type=int, default=200)
    trials: int = parser.parse_args().trials
    print("| colluding | days | by | " + " | ".join(f"{days} days" for days in DAYS) + " |")
    print("|---" * (3 + len(DAYS)) + "|")
    for bad in (0.1, 0.2):
        for is_cut in (False, True):
            for is_reckoned, by_days in named(bad, is_cut, trials).items():
                shares = " | ".join(f"{share:.0%}" for share in by_days.values())
                kind, by = "cut" if is_cut else "whole", "all that shows" if is_reckoned else "what is seen"
                print(f"| {bad:.0%} | {kind} | {by} | {shares} |", flush=True)


if __name__ == "__main__":
    main()
