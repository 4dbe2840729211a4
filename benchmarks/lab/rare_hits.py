"""Many trials of attacks that are sure and mostly wrong: `python -m benchmarks.lab.rare_hits ATTACK`.

They are measured by their rare hits, which takes tens of thousands of trials. On the attack lab's networks,
without Spark, and belief for belief the analyser's (`tests/analytics/test_lab_benchmarks.py`).
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from benchmarks.lab.asked import Asked
from benchmarks.lab.drawing import ROOT, Columns, Numbers, Run
from benchmarks.lab.networks import BETWEEN_DROPS, HOP
from hushcast_analytics.attacks.traffic_attacks import levels
from hushcast_analytics.measures import DIGITS
from hushcast_analytics.trial_summary import variance_of_mean
from hushcast_protocol.base.intervals import Z

Reals = npt.NDArray[np.float64]
Flags = npt.NDArray[np.bool_]

SHARES = (0.1, 0.2)
TOPICS = 100  # a run
PROCESSES = 2


class Trial(NamedTuple):
    """What `measures.measured` says of a trial: `belief` in the one asked for, and chance of a `hit`."""

    name: str
    belief: float
    hit: float


class Tally(NamedTuple):
    """Of one run: its trials, and the sums over them."""

    trials: int
    belief: float
    hit: float


class Watched(NamedTuple):
    """A topic of an honest `owner`, and what colluders hold of its tree and its messages."""

    topic: int
    owner: int
    ours: Flags  # of all relays, who colludes
    seats: Columns
    seen: list[Columns]

    @property
    def inner(self) -> Flags:
        """Which seats are colluders' that have children and a relay above them."""
        seats = self.seats
        return self.ours[seats["node"]] & (seats["children"] > 0) & (seats["above"] != ROOT)

    @property
    def below(self) -> Numbers:
        """Relays directly below a colluder: no roots."""
        above = self.seats["above"]
        return self.seats["node"][(above != ROOT) & self.ours[above]]

    def trial(self, weights: Reals) -> Trial:
        """Return the trial of a posterior in proportion to weights of relays; equal ones if all are 0."""
        honest = np.where(self.ours, 0.0, weights)
        posterior = honest if honest.any() else (~self.ours).astype(float)
        posterior = (posterior / posterior.sum()).round(DIGITS)
        top = posterior == posterior.max()
        return Trial(str(self.topic), float(posterior[self.owner]), float(top[self.owner] / top.sum()))


def watched(asked: Asked, number: int, colluding: Numbers) -> Iterator[Watched]:
    """Yield a run's topics with honest subscribers.

    `asked` has mailboxes as roots, one tree a subscription, one epoch and no droppers.
    """
    run = Run(asked, number, colluding)
    ours = np.zeros(asked.relays, bool)
    ours[colluding] = True
    ways = run.passing(scan=False)
    for topic, (owner, seats) in enumerate(zip(run.owners, run.seated(), strict=True)):
        seen = [next(ways) for _ in range(asked.origins)]
        if not ours[owner]:
            yield Watched(topic, owner, ours, seats, seen)


def parent_of_interior(asked: Asked, number: int, colluding: Numbers) -> Iterator[Trial]:
    """Yield the trials: topics with an honest subscriber."""
    for topic in watched(asked, number, colluding):
        votes = np.bincount(topic.seats["above"][topic.inner], minlength=asked.relays).astype(float)
        votes[topic.below] = 0
        yield topic.trial(votes)


def predecessor(asked: Asked, number: int, colluding: Numbers) -> Iterator[Trial]:
    """Yield the trials: topics with an honest subscriber, of one tree each."""
    weight = np.float64(asked.spanned / asked.seating.width)
    for topic in watched(asked, number, colluding):
        yield topic.trial(weight ** np.bincount(topic.seats["above"][topic.inner], minlength=asked.relays))


def traffic_share(asked: Asked, number: int, colluding: Numbers) -> Iterator[Trial]:
    """Yield the trials: topics with an honest subscriber."""
    for topic in watched(asked, number, colluding):
        node, above = topic.seats["node"], topic.seats["above"]
        ratios = np.zeros(asked.relays)
        ratios[topic.below] = -2 * np.log(asked.spanned)
        known = np.unique(np.concatenate([way["number"] for way in topic.seen]))
        total = len(known) / (1 - (1 - len(colluding) / asked.relays) ** asked.depth)
        passed = np.zeros(asked.relays)
        for way in topic.seen:
            np.add.at(passed, way["node"], way["forwarded"])
        under = topic.ours[node] & (above != ROOT)
        np.add.at(ratios, above[under], _ratio(asked, passed[node[under]], total))
        ratios[topic.ours] = -np.inf
        yield topic.trial(np.exp(ratios - ratios.max()))


def _ratio(asked: Asked, messages: Reals, total: float) -> Reals:
    """Log likelihood ratio of being the root, as `traffic_attacks.traffic_share` has it."""
    (top, top_share), *lower = levels(asked.spanned, asked.depth)

    def log_rate(expected: float, share: float) -> Reals:
        return np.log(expected) + messages * np.log(share) - total * share

    if not lower:
        return np.full(len(messages), np.log(top))
    others = [log_rate(size / asked.spanned, share) for size, share in lower]
    return log_rate(top, top_share) - np.logaddexp.reduce(others)


def first_spy(asked: Asked, number: int, colluding: Numbers) -> Iterator[Trial]:
    """Yield the trials: messages of honest authors.

    `asked` has mailboxes as roots, one tree a subscription, one epoch, no droppers and no clients.
    """
    run = Run(asked, number, colluding)
    ours = np.zeros(asked.relays, bool)
    ours[colluding] = True
    chance = 1 / (asked.relays - len(colluding))
    ways = run.passing(scan=False)
    for topic, published in enumerate(run.publications(scan=False)):
        seen = [next(ways) for _ in range(asked.origins)]
        rows = {name: np.concatenate([way[name] for way in seen]) for name in seen[0]}
        order = np.argsort(rows["origin"] * BETWEEN_DROPS + rows["hop"] * HOP, kind="stable")
        numbers, first = np.unique(rows["number"][order], return_index=True)
        named = dict(zip(numbers.tolist(), rows["before"][order][first].tolist(), strict=True))
        for message, author in zip(published["number"].tolist(), published["author"].tolist(), strict=True):
            if not ours[author]:
                candidate = named.get(message, ROOT)  # that it was dropped at a colluder names nobody
                belief = chance if candidate == ROOT else float(candidate == author)
                yield Trial(f"message-{topic}-0-{message}", belief, belief)


ATTACKS = {
    "parent-of-interior": (parent_of_interior, 0),
    "predecessor": (predecessor, 0),
    "traffic-share": (traffic_share, 20),
    "first-spy": (first_spy, 100),
}
"""Each with how many messages a topic has."""


def tally(attack: str, asked: Asked, share: float, number: int) -> Tally:
    """Return one run's sums; the colluders are random relays."""
    draws = np.random.default_rng((asked.seed, number, int(1000 * share)))
    colluding = draws.permutation(asked.relays)[: int(share * asked.relays)].astype(np.int32)
    trials, _ = ATTACKS[attack]
    found = list(trials(asked, number, colluding))
    return Tally(len(found), sum(trial.belief for trial in found), sum(trial.hit for trial in found))


def interval(trials: Reals, sums: Reals) -> tuple[float, float, float]:
    """Return a mean over trials between the ends of its 95 % interval, from each run's trials and sum.

    As `trial_summary.pooled` has that of belief: runs are what is independent, not trials.
    """
    n, mean = int(trials.sum()), sums.sum() / trials.sum()
    squares, cross, sizes = float(sums @ sums), float(sums @ trials), float(trials @ trials)
    width = Z * variance_of_mean(len(sums), n, mean, squares, cross, sizes) ** 0.5
    return max(0.0, mean - width), mean, min(1.0, mean + width)


def main() -> None:
    """Print a line for each share of colluders."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("attack", choices=list(ATTACKS))
    parser.add_argument("--relays", type=int, default=2000)
    parser.add_argument("--runs", type=int, default=1500)
    parser.add_argument("--depth", type=int, default=2)
    parser.add_argument("--origins", type=int, default=2)
    parser.add_argument("--shards", type=int, default=1)
    parser.add_argument("--hosted", action="store_true")
    parser.add_argument("--seed", type=int, default=1)
    given = vars(parser.parse_args())
    attack = given.pop("attack")
    asked = Asked(**given, topics=TOPICS, listed=False, messages=ATTACKS[attack][1])
    with ProcessPoolExecutor(PROCESSES) as processes:
        for share in SHARES:
            work = partial(tally, attack, asked, share)
            tallies = list(processes.map(work, range(asked.runs), chunksize=10))
            chance = 1 / (asked.relays - int(share * asked.relays))
            trials, *sums = np.array(tallies, float).T
            figures = []
            for word, summed in zip(("belief", "named"), sums, strict=True):
                low, mean, high = (end / chance for end in interval(trials, summed))
                figures.append(f"{word} {mean:.3f} ({low:.3f}–{high:.3f}) of chance")
            print(f"{attack} {share:.0%} {trials.sum():.0f} trials  {'  '.join(figures)}", flush=True)


if __name__ == "__main__":
    main()
