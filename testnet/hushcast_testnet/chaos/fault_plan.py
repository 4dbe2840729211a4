"""The fault schedule: which fault hits which daemon when and how long, all drawn from one seed in advance."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, get_args

Kind = Literal["stop", "kill", "restart", "pause", "cut", "delay", "lose", "skew"]
KINDS: tuple[Kind, ...] = get_args(Kind)
EVERY = 6.0  # mean seconds between faults unless chosen otherwise
SHORTEST, LONGEST = 1.0, 12.0  # seconds that a fault lasts
REST = 3.0  # seconds between a fault's end and the daemon's next; none is broken while it starts
BROKEN_SHARE = 0.34  # of all daemons, at most, at the same time
DELAY = (0.05, 1.0)  # seconds one way
LOSS = (0.01, 0.25)  # share of packets
SKEW_SHARE = 0.25  # of an epoch, at most, ahead or behind: clocks set by people are minutes off, not days


@dataclass(frozen=True, slots=True)
class Fault:
    """One fault: from `begin` to `end`, seconds from the start of the run.

    `amount` is seconds for `delay` and `skew`, a share for `lose`, 0 for all others.
    """

    kind: Kind
    target: str
    begin: float
    end: float
    amount: float = 0.0


def plan(
    seed: int,
    seconds: float,
    targets: Sequence[str],
    kinds: Sequence[Kind] = KINDS,
    every: float = EVERY,
    longest: float = LONGEST,
    epoch: float = 60.0,
) -> list[Fault]:
    """Return the faults of one run, by their beginnings; the same arguments give the same.

    About `seconds` / `every` of them, at random moments, each kind as often as any other. A daemon has one
    fault at a time and a rest after it, at most `BROKEN_SHARE` of all daemons have one at once (but always
    one may), and all have ended after `seconds`.
    """
    chance = random.Random(f"hushcast chaos {seed}")  # noqa: S311 - must replay; no secret comes of it
    count = max(1, round(seconds / every))
    longest = min(longest, seconds / 2)
    broken_at_once = max(1, int(len(targets) * BROKEN_SHARE))
    moments = sorted(chance.uniform(0, seconds - longest) for _ in range(count))
    bag: list[Kind] = []
    last: dict[str, Fault] = {}  # of each daemon
    faults: list[Fault] = []
    now = 0.0
    for moment in moments:
        now = max(now, moment)
        while not (free := _free(targets, last, now, broken_at_once)):
            now = min(time for fault in last.values() for time in (fault.end, fault.end + REST) if time > now)
        if not bag:
            bag = chance.sample(kinds, len(kinds))
        kind = bag.pop()
        lasts = 0.0 if kind == "restart" else chance.uniform(min(SHORTEST, longest), longest)
        fault = Fault(kind, chance.choice(free), now, now + lasts, _amount(kind, epoch, chance))
        if fault.end > seconds:
            break
        faults.append(fault)
        last[fault.target] = fault
    return faults


def _free(targets: Sequence[str], last: dict[str, Fault], now: float, at_once: int) -> list[str]:
    """Return the daemons that may be broken now: none if enough are."""
    if sum(now < fault.end for fault in last.values()) >= at_once:
        return []
    return [target for target in targets if target not in last or last[target].end + REST <= now]


def _amount(kind: Kind, epoch: float, chance: random.Random) -> float:
    if kind == "delay":
        return round(chance.uniform(*DELAY), 3)
    if kind == "lose":
        return round(chance.uniform(*LOSS), 3)
    if kind == "skew":
        return round(chance.uniform(-SKEW_SHARE, SKEW_SHARE) * epoch, 3)
    return 0.0
