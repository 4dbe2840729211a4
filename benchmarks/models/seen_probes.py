"""How soon probes name a relay that subscribes to a known topic: `python -m benchmarks.models.seen_probes`.

As in `presence`, but colluders are told nothing when the subscriber is away: a probe enters at two
random relays, and one of them that knows the topic sees that its sender is there. The topic has no other
subscriber.
"""

from __future__ import annotations

import argparse

import numpy as np

from benchmarks.models.presence import RELAYS, SURE, presence
from hushcast_protocol.base.epochs import EPOCHS_A_DAY

ORIGINS = 2
DAYS = (14, 60)


def named(a_day: float, bad: float, trials: int) -> dict[int, float]:
    """Return in which share of trials so many probes a day named the subscriber within so many days."""
    rng = np.random.default_rng(1)
    found = dict.fromkeys(DAYS, 0)
    chance = 1 - np.exp(-a_day / EPOCHS_A_DAY * (1 - (1 - bad) ** ORIGINS))  # that one is seen in an epoch
    for _ in range(trials):
        up = presence(rng, round(RELAYS * (1 - bad)), max(DAYS) * EPOCHS_A_DAY)
        seen = up[0] & (rng.random(up.shape[1]) < chance)
        # The subscriber was up whenever it was seen; who was up for long and not seen is less likely it.
        likely = np.cumsum(np.where(up, np.where(seen, np.log(chance), np.log1p(-chance)), 0.0), axis=1)
        was_away = np.cumsum(seen & ~up, axis=1) > 0
        for days in DAYS:
            last = days * EPOCHS_A_DAY - 1
            odds = np.where(was_away[:, last], 0.0, np.exp(likely[:, last] - likely[0, last]))
            found[days] += float(odds[0] / odds.sum()) >= SURE
    return {days: count / trials for days, count in found.items()}


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--trials", type=int, default=100)
    trials: int = parser.parse_args().trials
    print("| colluding | probes a day | " + " | ".join(f"{days} days" for days in DAYS) + " |")
    for bad in (0.1, 0.2):
        for a_day in (1, 2, 4, 6, 12, 24, 576):
            shares = " | ".join(f"{share:.0%}" for share in named(a_day, bad, trials).values())
            print(f"| {bad:.0%} | {a_day} | {shares} |", flush=True)


if __name__ == "__main__":
    main()
