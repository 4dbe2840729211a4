"""How soon presence names a relay that subscribes to a known topic: `python -m benchmarks.presence_model`.

Relays are up and away for times that are drawn exponentially, and everybody sees in which epochs each is up.
Colluders see whether the subscriber is there while one of them watches: at the top of the tree that leads to
its mailbox, or as its host. The topic is known and has no other subscriber, so that one day is tied to the
next. A relay is named when, by what was seen, it is the subscriber with 90 %.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable

import numpy as np

from hushcast_protocol.base.epochs import EPOCHS_A_DAY

RELAYS = 500
TOPS = 22  # of a tree of so many
UP, DOWN = 48.0, 8.0  # epochs in the mean
DAYS = (4, 7, 14, 60)
SURE = 0.9

Watch = Callable[[np.random.Generator, int, float], np.ndarray]
"""Draws on which of so many days colluders watch, who are such a share of the relays."""


def _a_mailbox_that_stays(rng: np.random.Generator, days: int, bad: float) -> np.ndarray:
    return np.full(days, rng.random() < 1 - (1 - bad) ** TOPS)


def _a_mailbox_a_day(rng: np.random.Generator, days: int, bad: float) -> np.ndarray:
    return rng.random(days) < 1 - (1 - bad) ** TOPS


def _a_host_that_stays(rng: np.random.Generator, days: int, bad: float) -> np.ndarray:
    return np.full(days, rng.random() < bad)


def _a_host_a_day(rng: np.random.Generator, days: int, bad: float) -> np.ndarray:
    return rng.random(days) < bad


KINDS: dict[str, Watch] = {
    "a mailbox that stays": _a_mailbox_that_stays,
    "a mailbox a day": _a_mailbox_a_day,
    "a host that stays": _a_host_that_stays,
    "a host a day": _a_host_a_day,
}


def presence(rng: np.random.Generator, relays: int, epochs: int) -> np.ndarray:
    """Draw in which epochs each relay is up."""
    up = np.zeros((relays, epochs), bool)
    for row in up:
        moment, is_up = 0.0, rng.random() < UP / (UP + DOWN)
        while moment < epochs:
            until = moment + rng.exponential(UP if is_up else DOWN)
            row[round(moment) : min(round(until), epochs)] = is_up
            moment, is_up = until, not is_up
    return up


def named(watch: Watch, bad: float, trials: int) -> dict[int, float]:
    """Return in which share of trials the subscriber was named within so many days."""
    rng = np.random.default_rng(1)
    found = dict.fromkeys(DAYS, 0)
    for _ in range(trials):
        up = presence(rng, round(RELAYS * (1 - bad)), max(DAYS) * EPOCHS_A_DAY)
        watched = np.repeat(watch(rng, max(DAYS), bad), EPOCHS_A_DAY)
        differs = np.logical_and(up != up[0], watched)
        for days in DAYS:
            # Honest relays that were up whenever the subscriber was seen, and only then.
            alike = int((~differs[:, : days * EPOCHS_A_DAY].any(axis=1)).sum())
            found[days] += 1 / alike >= SURE
    return {days: count / trials for days, count in found.items()}


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--trials", type=int, default=200)
    trials: int = parser.parse_args().trials
    print("| colluding | what it has | " + " | ".join(f"{days} days" for days in DAYS) + " |")
    print("|---" * (2 + len(DAYS)) + "|")
    for bad in (0.1, 0.2):
        for what, watch in KINDS.items():
            shares = " | ".join(f"{share:.0%}" for share in named(watch, bad, trials).values())
            print(f"| {bad:.0%} | {what} | {shares} |", flush=True)


if __name__ == "__main__":
    main()
