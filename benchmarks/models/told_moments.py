"""What the moments themselves show at which next days are told: `python -m benchmarks.models.told_moments`.

As in `presence`, of relays that are the sole subscriber of a known topic, a tenth of all colluding, but by
all that top relays can reckon: who is there has told by an eighth of the day and some hours, so who tells
late was away before, and who does not tell at all was away at all moments. So each relay weighs as likely as
what was seen of each day is for it. It is named when it weighs nine tenths of all.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable

import numpy as np

from benchmarks.models.presence import DAYS, RELAYS, SURE, presence, turned
from hushcast_protocol.base.epochs import EPOCHS_A_DAY
from hushcast_protocol.overlay.renewals import LATEST, LOOKS, RENEWS_FROM

COLLUDING = 0.1
WITHIN_AN_EPOCH = (0.1, 0.3, 0.5, 0.7, 0.9)  # shares of it that moments are taken to lie at


def _by(share: np.ndarray) -> np.ndarray:
    """Return how likely a moment comes within a share of what is left (`next_renewal`)."""
    return np.where(share >= LATEST, 1.0, 1 - np.exp(-LOOKS * np.clip(share, 0, None)))


def _next(begin: float) -> np.ndarray:
    """Return for each epoch of a day how likely the moment after `begin`, in epochs, lies in it."""
    epochs, left = np.arange(EPOCHS_A_DAY), EPOCHS_A_DAY - begin
    return np.where(epochs + 1 > begin, _by((epochs + 1 - begin) / left) - _by((epochs - begin) / left), 0.0)


FIRST = _next(RENEWS_FROM * EPOCHS_A_DAY)
AFTER = np.array(
    [np.mean([_next(epoch + share) for share in WITHIN_AN_EPOCH], axis=0) for epoch in range(EPOCHS_A_DAY)]
)


def drawn_anew(up: np.ndarray) -> np.ndarray:
    """Return how likely each relay tells in each epoch of a day, where what it misses is drawn anew."""
    arrives, tells = np.tile(FIRST, (len(up), 1)), np.zeros(up.shape)
    for epoch, after in enumerate(AFTER):
        tells[:, epoch] = arrives[:, epoch] * up[:, epoch]
        goes = (arrives[:, epoch] - tells[:, epoch]) / max(1 - after[epoch], 1e-9)
        arrives[:, epoch + 1 :] += goes[:, None] * after[epoch + 1 :]
    return tells


def drawn_once(up: np.ndarray) -> np.ndarray:
    """Return the same where each day has one moment, whoever misses it."""
    return np.asarray(FIRST * up)


def _seen(rng: np.random.Generator, up: np.ndarray, tells: np.ndarray) -> tuple[int, np.ndarray]:
    """Draw when the first relay tells of the next day, of epochs up to midnight, where it is late; return how
    likely that is for each."""
    none = np.clip(1 - tells.sum(axis=1), 1e-9 * ~up[:, -1], 1.0)
    all_ = np.column_stack([tells, none])
    epoch = int(rng.choice(EPOCHS_A_DAY + 1, p=all_[0] / all_[0].sum()))
    return epoch, all_[:, epoch]


def named(tell: Callable[[np.ndarray], np.ndarray], is_when_back: bool, trials: int) -> dict[int, float]:
    """Return in which share of trials the subscriber was named within so many days.

    What is late is told when it is back, or is not told at all.
    """
    rng = np.random.default_rng(1)
    found = dict.fromkeys(DAYS, 0)
    for _ in range(trials):
        up = presence(rng, round(RELAYS * (1 - COLLUDING)), max(DAYS) * EPOCHS_A_DAY)
        hosts = turned(rng, up, COLLUDING)
        seen = list[tuple[int, np.ndarray]]()
        for begin in range(0, up.shape[1], EPOCHS_A_DAY):
            end = begin + EPOCHS_A_DAY
            epoch, likely = _seen(rng, up[:, begin:end], tell(up[:, begin:end]))
            seen.append((begin + epoch, likely))
            back = np.flatnonzero(up[0, end:])
            if epoch == EPOCHS_A_DAY and is_when_back and len(back):
                at = end + int(back[0])
                seen.append((at, (up[:, at] & ~up[:, end:at].any(axis=1)).astype(float)))
        differs = np.logical_and(up != up[0], hosts)
        for days in DAYS:
            weights = (~differs[:, : days * EPOCHS_A_DAY].any(axis=1)).astype(float)
            for at, likely in seen:
                if at < days * EPOCHS_A_DAY:
                    weights *= likely / likely.max()
            found[days] += weights[0] >= SURE * weights.sum()
    return {days: count / trials for days, count in found.items()}


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--trials", type=int, default=200)
    trials: int = parser.parse_args().trials
    print("| next days are told | " + " | ".join(f"{days} days" for days in DAYS) + " |")
    print("|---" * (1 + len(DAYS)) + "|")
    for what, tell, is_when_back in (
        ("at moments drawn anew, late when back: what there is", drawn_anew, True),
        ("at moments drawn anew, late not at all", drawn_anew, False),
        ("at one moment, or not at all", drawn_once, False),
    ):
        shares = " | ".join(f"{share:.0%}" for share in named(tell, is_when_back, trials).values())
        print(f"| {what} | {shares} |", flush=True)


if __name__ == "__main__":
    main()
