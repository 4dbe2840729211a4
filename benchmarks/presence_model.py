"""How soon presence names a relay that subscribes to a known topic: `python -m benchmarks.presence_model`.

Relays are up and away for times that are drawn exponentially, and everybody sees in which epochs each is up.
Colluders see whether the subscriber is there while one of them watches: at the top of the tree that leads to
its mailbox, or as its host. So they do in the tree, whatever its root: beside a relay that lost its seat they
are told so, when the subscriber is there. The topic is known and has no other subscriber, so that one day is
tied to the next. A relay is named when, by what was seen, it is the subscriber with 90 %.
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

SEAT_LOST = 3  # epochs away after which a relay loses its seat

Watch = Callable[[np.random.Generator, np.ndarray, float], np.ndarray]
"""Draws in which epochs colluders watch, by those in which others are up; they are a share of the relays."""


def _days(up: np.ndarray) -> int:
    return int(up.shape[1]) // EPOCHS_A_DAY


def _a_mailbox_that_stays(rng: np.random.Generator, up: np.ndarray, bad: float) -> np.ndarray:
    return np.full(up.shape[1], rng.random() < 1 - (1 - bad) ** TOPS)


def _a_mailbox_a_day(rng: np.random.Generator, up: np.ndarray, bad: float) -> np.ndarray:
    return np.repeat(rng.random(_days(up)) < 1 - (1 - bad) ** TOPS, EPOCHS_A_DAY)


def _a_host_that_stays(rng: np.random.Generator, up: np.ndarray, bad: float) -> np.ndarray:
    return np.full(up.shape[1], rng.random() < bad)


def _a_host_a_day(rng: np.random.Generator, up: np.ndarray, bad: float) -> np.ndarray:
    return np.repeat(rng.random(_days(up)) < bad, EPOCHS_A_DAY)


def _a_tree_mended_each_epoch(rng: np.random.Generator, up: np.ndarray, bad: float) -> np.ndarray:
    """Whoever has a relay below it that lost its seat, or above it, is told where the tree is mended."""
    bad_tops = rng.binomial(TOPS, bad)
    near = rng.random(len(up)) < bad_tops / TOPS
    bad_leaves = RELAYS - len(up) - bad_tops
    tops = rng.choice(len(up), TOPS - bad_tops, replace=False)
    near[tops] = rng.random(len(tops)) < 1 - (1 - 1 / TOPS) ** bad_leaves
    lost = up[near, :-SEAT_LOST].copy()
    for later in range(1, SEAT_LOST + 1):
        lost &= ~up[near, later : up.shape[1] - SEAT_LOST + later]
    return np.concatenate([np.zeros(SEAT_LOST, bool), lost.any(axis=0)])


def _a_tree_told_once_a_day(rng: np.random.Generator, up: np.ndarray, bad: float) -> np.ndarray:
    """All relays of a tree are told of the next day, at a moment of the subscription's own."""
    return np.arange(up.shape[1]) % EPOCHS_A_DAY == EPOCHS_A_DAY // 2 + rng.integers(EPOCHS_A_DAY // 4)


KINDS: dict[str, Watch] = {
    "a mailbox that stays": _a_mailbox_that_stays,
    "a mailbox a day": _a_mailbox_a_day,
    "a host that stays": _a_host_that_stays,
    "a host a day": _a_host_a_day,
    "a tree mended each epoch": _a_tree_mended_each_epoch,
    "a tree told once a day": _a_tree_told_once_a_day,
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
        differs = np.logical_and(up != up[0], watch(rng, up, bad))
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
