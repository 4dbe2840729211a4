"""How soon presence names a relay that subscribes to a known topic: `python -m benchmarks.models.presence`.

Relays are up and away for times that are drawn exponentially, and everybody sees in which epochs each is up.
Colluders see whether the subscriber is there while one of them watches: at the top of the tree that leads to
its mailbox, or as its host. In the tree, whatever its root, they see when they are told of the next day, and
of another host, at drawn moments; as trees were mended before, beside a relay that lost its seat in each
epoch. Where a day is left with the host beforehand, they see no more than that the subscriber was there at
some time before. That a moment drawn goes by says that the subscriber may be away: that is not counted. The
topic is known and has no other subscriber, so that one day is tied to the next, and its probes are read. A
relay is named when, by what was seen, it is the subscriber with 90 %.

A second table is of what it costs that nobody is told again: how many relays have no lease when a message is
dropped there, and how many messages are lost. A third is of what it costs that they are told of another host
at drawn moments: for how much of the time what comes waits.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from hushcast_protocol.base.epochs import EPOCHS_A_DAY
from hushcast_protocol.overlay.renewals import RENEWS_FROM, next_renewal

RELAYS = 500
TOPS = 22  # of a tree of so many
UP, DOWN = 48.0, 8.0  # epochs in the mean
DAYS = (4, 7, 14, 60)
SURE = 0.9

SEAT_LOST = 3  # epochs away after which a relay loses its seat

AWAY_EPOCHS = 2  # that the first host is away until the second is used
PROBES = 24  # of a subscription in an epoch, each at two origins
ORIGINS = 2
LED_DAYS = 20  # days over which it is counted who has a lease
HOSTED_DAYS = 8000  # days over which it is counted how long what comes waits for a host

SEALED_FOR = 1  # epochs after that of a moment in which a parcel sealed for it is taken
AHEAD = 2  # days before one begins from which on it is left with the host


@dataclass(frozen=True)
class Sights:
    """What colluders see: epochs in which they see whether the subscriber is there, and times of which they
    hear at an epoch that it was there within them."""

    watched: np.ndarray
    within: tuple[tuple[int, int, int], ...] = ()
    """When they hear, and the first and the last epoch of each."""


Watch = Callable[[np.random.Generator, np.ndarray, float], np.ndarray | Sights]
"""Draws in which epochs colluders watch, by those in which honest relays are up, the first of them the
subscriber; colluders are a share of the relays."""


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


def _until_back(watched: np.ndarray, me: np.ndarray, begin: int) -> None:
    """Watch from an epoch on until the subscriber is there."""
    back = np.flatnonzero(me[begin:])
    watched[begin : begin + int(back[0]) + 1 if len(back) else None] = True


def _a_day_told_in_its_time_or_when_back(rng: np.random.Generator, up: np.ndarray, bad: float) -> np.ndarray:
    """All relays of a tree are told of the next day, at a moment that they know, or as soon as can be."""
    watched = np.zeros(up.shape[1], bool)
    moment = EPOCHS_A_DAY // 2 + int(rng.integers(EPOCHS_A_DAY // 4))
    for begin in range(moment, up.shape[1], EPOCHS_A_DAY):
        _until_back(watched, up[0], begin)
    return watched


def told_at(rng: np.random.Generator, me: np.ndarray, begin: float, end: float) -> int | None:
    """Draw the epoch in which a subscriber tells what is to be known at `end`; `None`: not before it."""
    moment = begin
    while end - (moment := next_renewal(moment, end, rng.random())) > 1 / 60:
        if moment < len(me) and me[int(moment)]:
            return int(moment)
    return None


def _next_days_told(together: int = 1, within: float = 1 - RENEWS_FROM) -> Watch:
    """All relays of a tree are told of the next days at a drawn moment; or, too late, when it is back.

    So many days are told `together`, `within` so many days before those end that are known.
    """

    def watch(rng: np.random.Generator, up: np.ndarray, bad: float) -> np.ndarray:
        watched = np.zeros(up.shape[1], bool)
        for known in range(1 + int(rng.integers(together)), _days(up) + 1, together):
            end = float(known * EPOCHS_A_DAY)
            if (moment := told_at(rng, up[0], max(0.0, end - within * EPOCHS_A_DAY), end)) is not None:
                watched[moment] = True
            elif known < _days(up):
                _until_back(watched, up[0], int(end))
        return watched

    return watch


def left_at(rng: np.random.Generator, me: np.ndarray, host: np.ndarray, day: int) -> tuple[int, int] | None:
    """Draw when what is to be known at the end of a day is left with the host, and told by it.

    It is left at a drawn moment at which both are there, from an eighth of the day before on, and told at one
    drawn then, of the day. Where the host is away for as long as the seals hold it is left once more. `None`:
    it was not told in time.
    """
    end = float(day * EPOCHS_A_DAY)
    told_from = end - EPOCHS_A_DAY * (1 - RENEWS_FROM)
    moment = max(0.0, end - EPOCHS_A_DAY * (AHEAD - RENEWS_FROM))
    while True:
        # In what is left of the day before the last, then of the last.
        until = end - EPOCHS_A_DAY if moment < end - EPOCHS_A_DAY - 1 / 60 else end
        moment = next_renewal(moment, until, rng.random())
        if end - moment <= 1 / 60:
            return None
        if moment >= len(me) or not (me[int(moment)] and host[int(moment)]):
            continue
        told = next_renewal(max(moment, told_from), end, rng.random())
        for epoch in range(int(told), min(int(told) + SEALED_FOR + 1, len(me))):
            if host[epoch]:
                return int(moment), epoch
        moment = told + SEALED_FOR + 1


def _days_left(rng: np.random.Generator, up: np.ndarray, bad: float) -> Sights:
    """A day is left with the host at a drawn moment, and told by it; or, too late, when it is back.

    That it was left again, as the host was away, is not seen: who hears of the day once cannot tell.
    """
    watched = np.zeros(up.shape[1], bool)
    within = []
    host = up[rng.integers(1, len(up))]
    for day in range(1, _days(up) + 1):
        begin = max(0, int((day - AHEAD + RENEWS_FROM) * EPOCHS_A_DAY))
        if (found := left_at(rng, up[0], host, day)) is not None:
            within.append((found[1], begin, found[1]))
        elif day < _days(up):
            _until_back(watched, up[0], day * EPOCHS_A_DAY)
    return Sights(watched, tuple(within))


def away_times(up: np.ndarray) -> list[tuple[int, int]]:
    """Return from when to when one relay is away, each time for longer than the second host waits."""
    edges = np.flatnonzero(np.diff(np.concatenate([[True], up, [True]]).astype(int)))
    times = zip(edges[::2].tolist(), edges[1::2].tolist(), strict=True)
    return [(begin, end) for begin, end in times if end - begin > AWAY_EPOCHS]


def _two_hosts(rng: np.random.Generator, up: np.ndarray, bad: float) -> np.ndarray:
    first_is_bad, second_is_bad = rng.random(2) < bad
    watched = np.full(up.shape[1], first_is_bad)
    if second_is_bad:
        for begin, end in away_times(up[rng.integers(1, len(up))]):
            watched[begin + AWAY_EPOCHS : end] = True
    return watched


def _another_host_told_at_once(rng: np.random.Generator, up: np.ndarray, bad: float) -> np.ndarray:
    """Top relays are told of the second host, and of the first again when it is back: or the subscriber."""
    watched = np.zeros(up.shape[1], bool)
    if rng.random() < (1 - bad) ** TOPS:
        return watched
    me = up[0]
    for begin, end in away_times(up[rng.integers(1, len(up))]):
        there = np.flatnonzero(me[begin + AWAY_EPOCHS : end])
        watched[begin + AWAY_EPOCHS : begin + AWAY_EPOCHS + int(there[0]) + 1 if len(there) else end] = True
        if len(there):
            _until_back(watched, me, end)
    return watched


def turn_at(rng: np.random.Generator, me: np.ndarray, begin: float, end: float) -> int | None:
    """Draw the epoch in which a subscriber tells of another host, as daemons do; `None`: not before `end`."""
    moment = begin
    while moment < end:
        midnight = (int(moment) // EPOCHS_A_DAY + 1) * float(EPOCHS_A_DAY)
        moment = next_renewal(moment, midnight, rng.random()) if midnight - moment > 1 / 60 else midnight
        if moment < end and me[int(moment)]:
            return int(moment)
    return None


def turned(rng: np.random.Generator, up: np.ndarray, bad: float) -> np.ndarray:
    """The second has a link from when the first is away until top relays are told that it is back."""
    told, linked = np.zeros(up.shape[1], bool), np.zeros(up.shape[1], bool)
    me, epochs, leads = up[0], up.shape[1], False
    times = away_times(up[rng.integers(1, len(up))])
    for number, (begin, end) in enumerate(times):
        linked[begin + AWAY_EPOCHS : end] = True
        if not leads and (moment := turn_at(rng, me, begin + AWAY_EPOCHS, end)) is not None:
            told[moment] = leads = True
        if leads:
            until = times[number + 1][0] + AWAY_EPOCHS if number + 1 < len(times) else epochs
            moment = turn_at(rng, me, end, min(until, epochs))
            linked[end : moment if moment is not None else until] = True
            if moment is not None:
                told[moment], leads = True, False
    first_is_bad, second_is_bad = rng.random(2) < bad
    a_top_is_bad = rng.random() >= (1 - bad) ** TOPS
    return first_is_bad | (second_is_bad & linked) | (a_top_is_bad & told)


def _probes(rng: np.random.Generator, up: np.ndarray, bad: float) -> np.ndarray:
    return np.asarray(rng.random(up.shape[1]) < 1 - (1 - bad) ** (ORIGINS * PROBES))


def _seen(one: np.ndarray | Sights) -> Sights:
    return one if isinstance(one, Sights) else Sights(one)


def _together(*watches: Watch) -> Watch:
    def watch(rng: np.random.Generator, up: np.ndarray, bad: float) -> Sights:
        all_ = [_seen(one(rng, up, bad)) for one in watches]
        within = tuple(time for one in all_ for time in one.within)
        return Sights(np.logical_or.reduce([one.watched for one in all_]), within)

    return watch


KINDS: dict[str, Watch] = {
    "a mailbox that stays": _a_mailbox_that_stays,
    "a mailbox a day": _a_mailbox_a_day,
    "a host that stays": _a_host_that_stays,
    "a host a day": _a_host_a_day,
    "a tree mended each epoch": _a_tree_mended_each_epoch,
    "its probes": _probes,
    "a next day told in its time, or when back": _a_day_told_in_its_time_or_when_back,
    "a next day told at a drawn moment": _next_days_told(),
    "another host told as soon as can be": _another_host_told_at_once,
    "two hosts": _two_hosts,
    "two hosts, and next days, if nobody told of other hosts": _together(_two_hosts, _next_days_told()),
    "two hosts, next days, and other hosts told as soon as can be": _together(
        _two_hosts, _next_days_told(), _another_host_told_at_once
    ),
    "two hosts, told of at drawn moments": turned,
    "these, and next days": _together(turned, _next_days_told()),
    "next days left with the host": _days_left,
    "these, and next days left with the host": _together(turned, _days_left),
    "these, and next days known from half a day before": _together(turned, _next_days_told(within=0.5)),
    "these, and two days told together, within two": _together(turned, _next_days_told(together=2, within=2)),
    "these, and three days told together, within two": _together(
        turned, _next_days_told(together=3, within=2)
    ),
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
        seen = _seen(watch(rng, up, bad))
        differs = np.logical_and(up != up[0], seen.watched)
        for days in DAYS:
            epochs = days * EPOCHS_A_DAY
            # Honest relays that were up whenever the subscriber was seen, and only then.
            alike = ~differs[:, :epochs].any(axis=1)
            for heard, first, last in seen.within:
                if heard < epochs:
                    alike &= up[:, first : last + 1].any(axis=1)
            found[days] += 1 / int(alike.sum()) >= SURE
    return {days: count / trials for days, count in found.items()}


def without_lease(is_told_again: bool, is_left: bool = False) -> float:
    """Return the share of relays, of those that are up in an epoch, that have no lease then.

    All that are up are told of a day, once; or, each epoch again, those that were not. A day that is left
    with the host is told to those alone that had a seat when it was left.
    """
    rng = np.random.default_rng(2)
    up = presence(rng, RELAYS, (LED_DAYS + 2) * EPOCHS_A_DAY)
    always = np.ones(up.shape[1], bool)
    lacking = there = 0
    for day in range(1, LED_DAYS + 1):
        moment = told_at(rng, always, (day + RENEWS_FROM) * EPOCHS_A_DAY, (day + 1) * float(EPOCHS_A_DAY))
        known = up[:, moment].copy()
        if is_left and (left := left_at(rng, always, always, day + 1)) is not None:
            known = up[:, left[1]] & up[:, max(0, left[0] - SEAT_LOST + 1) : left[0] + 1].any(axis=1)
        for epoch in range((day + 1) * EPOCHS_A_DAY, (day + 2) * EPOCHS_A_DAY):
            lacking += int((up[:, epoch] & ~known).sum())
            there += int(up[:, epoch].sum())
            if is_told_again:
                known |= up[:, epoch]
    return lacking / there


def _print_leases() -> None:
    heads = ("who was away is told", "relays without a lease", "lost of a copy", "of both", "handed on: both")
    print(f"| {' | '.join(heads)} |")
    print("|---|---|---|---|---|")
    told = (("each epoch", True, False), ("of the next day", False, False), ("by the host", False, True))
    for what, again, left in told:
        lacking = without_lease(again, left)
        both = f"{lacking**ORIGINS:.2%} | {lacking ** (4 * ORIGINS):.5%}"
        print(f"| {what} | {lacking:.1%} | {lacking:.1%} | {both} |")


def waiting(is_drawn: bool) -> float:
    """Return for which share of the time the host that a tree leads to is away; its subscriber is there.

    Relays are told of the other one as soon as it is used, or at a drawn moment.
    """
    rng = np.random.default_rng(3)
    up = presence(rng, 2, HOSTED_DAYS * EPOCHS_A_DAY)
    used = leads = away = waits = 0
    moment = 0.0
    for epoch in range(up.shape[1]):
        away = 0 if up[0, epoch] else away + 1
        before, used = used, 0 if not away else 1 if away > AWAY_EPOCHS and up[1, epoch] else used
        if used != before:
            midnight = (epoch // EPOCHS_A_DAY + 1) * float(EPOCHS_A_DAY)
            moment = next_renewal(float(epoch), midnight, rng.random()) if is_drawn else epoch
        if used != leads and moment < epoch + 1:
            leads = used
        waits += not up[leads, epoch]
    return float(waits / up.shape[1])


def _print_waiting() -> None:
    print("| relays are told of the other host | what comes waits |")
    print("|---|---|")
    print(f"| never, there is one alone | {DOWN / (UP + DOWN):.1%} of the time |")
    print(f"| as soon as it is used | {waiting(is_drawn=False):.1%} |")
    print(f"| at a drawn moment | {waiting(is_drawn=True):.1%} |")


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--trials", type=int, default=200)
    trials: int = parser.parse_args().trials
    print("| colluding | what it has | " + " | ".join(f"{days} days" for days in DAYS) + " |")
    print("|---" * (2 + len(DAYS)) + "|")
    for bad in (0.1, 0.2):
        for what, watch in KINDS.items():
            shares = " | ".join(f"{share:.0%}" for share in named(watch, bad, trials).values())
            print(f"| {bad:.0%} | {what} | {shares} |", flush=True)
    print()
    _print_leases()
    print()
    _print_waiting()


if __name__ == "__main__":
    main()
