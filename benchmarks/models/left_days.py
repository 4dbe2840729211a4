"""What it would hide to leave days with hosts: `python -m benchmarks.models.left_days`.

An owner leaves the tree of a day to come with a host, sealed for moments drawn then, and the host tells it
at the first of these at which it is there, whether or not the owner is. What colluders see else, and when a
relay is named, is as in `presence`: its hosts are those of there, in order. Of a day that was told they learn
no more than that the owner was there at some time since it could be left: nor do they where the owner told it
itself in time, as it is told once, by the same relay, at moments drawn alike. Who left its host for the other
tells it with that. What nobody told the owner tells when it is back: that counts as seen, and as its absence
until then, as in `presence`.

Left with the host in use alone the owner shows itself to nobody else; left with both it visits the second,
too, once a day at a drawn moment, which that one sees. A second table is of relays without a lease: who has
no seat as the tree is planned, or is away, or has a next hop that is, as it is told.
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from benchmarks.models.presence import (
    AWAY_EPOCHS,
    DAYS,
    LED_DAYS,
    RELAYS,
    SEALED_FOR,
    SEAT_LOST,
    TOPS,
    Sights,
    Watch,
    named,
    presence,
    turn_at,
)
from hushcast_protocol.base.epochs import EPOCHS_A_DAY
from hushcast_protocol.overlay.renewals import RENEWS_FROM, next_renewal

COLLUDING = 0.1


@dataclass(frozen=True)
class Leaving:
    """How days are left: so many ahead, told at so many moments on the day before, and on the day."""

    ahead: int
    before: int
    on: int
    is_both: bool = False

    def begin(self, day: int) -> float:
        """Return the epoch from which on a day may be left."""
        return max(0.0, (day - self.ahead + RENEWS_FROM) * EPOCHS_A_DAY)

    def moments(self, rng: np.random.Generator, day: int, now: float) -> list[float]:
        """Draw when a day is told that is left now."""
        end = float(day * EPOCHS_A_DAY)
        moment, drawn = max(now, end - (1 - RENEWS_FROM) * EPOCHS_A_DAY), []
        for _ in range(self.before):
            moment = next_renewal(moment, end, rng.random())
            drawn.append(moment)
        moment = end
        for _ in range(self.on):
            moment = next_renewal(moment, end + EPOCHS_A_DAY, rng.random())
            drawn.append(moment)
        return drawn


def _in_use(first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """Return which host is used in each epoch."""
    used, away, now = np.zeros(len(first), int), 0, 0
    for epoch in range(len(first)):
        away = 0 if first[epoch] else away + 1
        now = 0 if not away else 1 if away > AWAY_EPOCHS and second[epoch] else now
        used[epoch] = now
    return used


def _turns(rng: np.random.Generator, me: np.ndarray, used: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return when relays are told of the other host, and when there is a link to the second."""
    told, linked = np.zeros(len(me), bool), used == 1
    edges = [0, *(np.flatnonzero(np.diff(used)) + 1).tolist(), len(me)]
    leads = 0
    for begin, end in pairwise(edges):
        if used[begin] == leads:
            continue
        if (moment := turn_at(rng, me, begin, end)) is not None:
            told[moment], leads = True, int(used[begin])
        if used[begin] == 0:  # the link to the second ends when all know
            linked[begin : end if moment is None else moment] = True
    return told, linked


def _first_told(host: np.ndarray, moments: list[float]) -> int | None:
    """Return when a host tells first."""
    for moment in moments:
        for epoch in range(int(moment), min(int(moment) + SEALED_FOR + 1, len(host))):
            if host[epoch]:
                return epoch
    return None


def _left_at(
    rng: np.random.Generator,
    begin: float,
    end: float,
    me: np.ndarray,
    hosts: np.ndarray,
    used: np.ndarray | None,
    number: int,
) -> float | None:
    """Draw when a day that begins at `end` is left: with the host in use, or with the one of this number."""
    moment = begin
    while end - moment > 1 / 60:
        midnight = min(end, (int(moment) // EPOCHS_A_DAY + 1) * float(EPOCHS_A_DAY))
        if midnight - moment <= 1 / 60:
            moment = midnight
            continue
        moment = next_renewal(moment, midnight, rng.random())
        host = hosts[number if used is None else used[int(moment)]]
        if me[int(moment)] and host[int(moment)]:
            return moment
    return None


def left_with(leaving: Leaving) -> Watch:
    """Watch a subscriber that leaves its days."""

    def watch(rng: np.random.Generator, up: np.ndarray, bad: float) -> Sights:
        me, hosts = up[0], up[rng.choice(np.arange(1, len(up)), 2, replace=False)]
        used = _in_use(*hosts)
        told, linked = _turns(rng, me, used)
        first_is_bad, second_is_bad = rng.random(2) < bad
        a_top_is_bad = rng.random() >= (1 - bad) ** TOPS
        watched = first_is_bad | (second_is_bad & linked) | (a_top_is_bad & told)
        within = []
        for day in range(1, len(me) // EPOCHS_A_DAY):
            end = day * EPOCHS_A_DAY
            known: list[int] = []
            for number in range(1 + leaving.is_both):
                moment = _left_at(
                    rng, leaving.begin(day), end, me, hosts, None if leaving.is_both else used, number
                )
                if moment is None:
                    continue
                watched[int(moment)] |= number == 1 and second_is_bad
                host = hosts[number if leaving.is_both else used[int(moment)]]
                if (first := _first_told(host, leaving.moments(rng, day, moment))) is not None:
                    known.append(first)
                # Or with a turn to the other host, which shows anyway.
                known += [one for one in np.flatnonzero(told[:end]).tolist() if one >= moment]
            if known:
                within.append((min(known), int(leaving.begin(day)), min(known)))
            elif a_top_is_bad:
                back = np.flatnonzero(me[end:])
                watched[end : end + int(back[0]) + 1 if len(back) else len(me)] = True
        return Sights(watched, tuple(within) if a_top_is_bad else ())

    return watch


KINDS = {
    "two days ahead, with the host in use, for three moments": Leaving(2, 2, 1),
    "for one moment, on the day before": Leaving(2, 1, 0),
    "one day ahead, for three moments": Leaving(1, 2, 1),
    "three days ahead, for three moments": Leaving(3, 2, 1),
    "two days ahead, with both hosts, for one moment each": Leaving(2, 1, 0, is_both=True),
    "with both hosts, for three moments each": Leaving(2, 2, 1, is_both=True),
}


def without_lease(leaving: Leaving) -> float:
    """Return the share of relays, of those that are up in an epoch, that have no lease then.

    The host is up at the first moment, and the owner tells nobody again.
    """
    rng = np.random.default_rng(2)
    up = presence(rng, RELAYS, (LED_DAYS + 5) * EPOCHS_A_DAY)
    lacking = there = 0
    for day in range(leaving.ahead, LED_DAYS + leaving.ahead):
        begin = leaving.begin(day)
        left = next_renewal(begin, begin + (1 - RENEWS_FROM) * EPOCHS_A_DAY, rng.random())
        told = int(leaving.moments(rng, day, left)[0])
        seated = up[:, max(0, int(left) - SEAT_LOST + 1) : int(left) + 1].any(axis=1)
        tops = rng.choice(np.flatnonzero(seated), TOPS, replace=False)
        known = seated & up[:, told] & up[tops[rng.integers(0, TOPS, RELAYS)], told]
        of_day = up[:, day * EPOCHS_A_DAY : (day + 1) * EPOCHS_A_DAY]
        lacking += int((of_day & ~known[:, None]).sum())
        there += int(of_day.sum())
    return lacking / there


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--trials", type=int, default=200)
    trials: int = parser.parse_args().trials
    print("| days are left | " + " | ".join(f"{days} days" for days in DAYS) + " |")
    print("|---" * (1 + len(DAYS)) + "|")
    for what, leaving in KINDS.items():
        shares = " | ".join(f"{share:.0%}" for share in named(left_with(leaving), COLLUDING, trials).values())
        print(f"| {what} | {shares} |", flush=True)
    print()
    print("| planned ahead | relays without a lease |")
    print("|---|---|")
    for ahead in (1, 2, 3):
        print(f"| {ahead} days | {without_lease(Leaving(ahead, 2, 1)):.1%} |")


if __name__ == "__main__":
    main()
