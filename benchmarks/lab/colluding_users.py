"""Subscribers who collude: `python -m benchmarks.lab.colluding_users PROFILE [--users 0,1,5,20]`.

The analyser on many generated networks of one topic each, so that A_s, the number of colluding subscribers
(VB §3), is what was asked for; and for roots that are relays a model in plain Python, which shares no code
with the project.
"""

from __future__ import annotations

import argparse
import random
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from statistics import fmean
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from hushcast_analytics.adversaries import Adversary
from hushcast_analytics.attacks.catalogue import ATTACKS
from hushcast_analytics.checkpoints import kept
from hushcast_analytics.examination import Case, Examination
from hushcast_analytics.generator.publications import numbers
from hushcast_analytics.generator.scenario import GeneratorScenario
from hushcast_analytics.generator.trace_rows import TraceRows
from hushcast_analytics.spark_session import open_session
from hushcast_analytics.trace_schemas import OBSERVATIONS, TRUTHS
from hushcast_analytics.trial_summary import summarised

NAMED = ("parent-of-interior", "install-depth")
"""Attacks that the model has, too."""
OTHERS = ("traffic-share", "trained")
TASKS = 8  # of a table


@dataclass(frozen=True)
class UserRuns:
    """So many networks, each with a topic of its own; `clients` subscribe where there are some."""

    profile: str
    relays: int = 300
    subscribers: int = 25
    runs: int = 200
    messages: int = 20
    clients: int | None = None
    depth: int = 2
    seed: int = 1

    def scenario(self, run: int) -> GeneratorScenario:
        """Return one of the networks."""
        return GeneratorScenario(
            self.relays,
            self.subscribers,
            publications=self.messages,
            profile=self.profile,
            depth=self.depth,
            clients=self.clients,
            seed=self.seed * 1_000_003 + run,
            run=str(run),
        )

    def case(self, spark: SparkSession) -> Case:
        """Return the traces of all networks, as an adversary is shown them."""
        return Case(
            kept(self._rows(spark, "observations")),
            kept(self._rows(spark, "truths")),
            kept(self._rows(spark, "rosters")),
            self.relays,
            self.depth,
        )

    def _rows(self, spark: SparkSession, table: str) -> DataFrame:
        def make(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            for batch in batches:
                for run in batch.column(0).to_pylist():
                    yield from _RUN_ROWS[table](self.scenario(run))

        schema = TRUTHS if table == "truths" else OBSERVATIONS
        return spark.range(0, self.runs, 1, TASKS).mapInArrow(make, schema)

    def figures(self, spark: SparkSession, shares: tuple[float, ...], users: int) -> list[dict[str, Any]]:
        """Return what attacks find with so many colluding subscribers, as `summarised`."""
        examination = Examination(self.case(spark), Adversary(shares, seed=self.seed, users=users))
        topic = [ATTACKS[name] for name in (*NAMED, *(OTHERS if self.messages else ()))]
        rows = summarised(examination.measured(topic))
        return rows + (summarised(examination.measured([ATTACKS["first-spy"]])) if self.messages else [])


def _seen(asked: GeneratorScenario) -> Iterator[pa.RecordBatch]:
    rows = TraceRows(asked)
    for subscriber in range(asked.subscribers):
        yield from rows.seen_of_install(0, 0, subscriber)
    if asked.publications:
        yield from rows.seen_of_messages(0, 0, np.array(numbers(asked, 0, 0), np.int64))


def _told(asked: GeneratorScenario) -> Iterator[pa.RecordBatch]:
    rows = TraceRows(asked)
    yield from rows.truth_of_presence(0)
    for subscriber in range(asked.subscribers):
        yield from rows.truth_of_install(0, 0, subscriber)
    if asked.publications:
        yield from rows.truth_of_messages(0, 0, np.array(numbers(asked, 0, 0), np.int64))


_RUN_ROWS: Mapping[str, Callable[[GeneratorScenario], Iterable[pa.RecordBatch]]] = {
    "observations": _seen,
    "truths": _told,
    "rosters": lambda asked: TraceRows(asked).seen_of_rosters(0),
}


def draw_hits(
    asked: UserRuns, share: float, users: int, trials: int, seed: int = 1
) -> tuple[dict[str, float], float]:
    """Return how often the attacks of `NAMED` name a subscriber, and how often a guess does, by the model."""
    rng = random.Random(seed)  # noqa: S311
    found: dict[str, list[float]] = {name: [] for name in NAMED}
    guesses = []
    for _ in range(trials):
        bad = set(rng.sample(range(asked.relays), int(share * asked.relays)))
        wanted = rng.sample(range(asked.relays), asked.subscribers)
        free = [node for node in wanted if node not in bad]
        bad |= set(free[:users])
        honest = set(free[users:])
        if not honest:
            continue
        guess = len(honest) / (asked.relays - len(bad))
        guesses.append(guess)
        for name, hit in zip(NAMED, _hits(asked, rng, bad, wanted, honest, guess), strict=True):
            found[name].append(hit)
    return {name: fmean(hits) for name, hits in found.items()}, fmean(guesses)


def _hits(
    asked: UserRuns, rng: random.Random, bad: set[int], wanted: list[int], honest: set[int], guess: float
) -> tuple[float, float]:
    trees = {root: _tree(asked.relays, asked.depth, root, rng) for root in wanted}
    own = {link for root in wanted if root not in honest for link in trees[root].items()}
    votes: dict[int, set[int]] = defaultdict(set)
    tops: dict[int, set[int]] = defaultdict(set)
    below: set[int] = set()
    for root in wanted:
        inner = set(trees[root].values())
        for node, above in trees[root].items():
            if len(honest) == 1 and above in bad and (above, trees[root].get(above)) not in own:
                below.add(node)
            if node in bad and (node, above) not in own:
                if node in inner:
                    votes[above].add(node)
                if above == root:
                    tops[above].add(node)
    by_shape = _named({node: who for node, who in votes.items() if node not in bad | below}, honest, guess)
    met = {node: who for node, who in tops.items() if node not in bad}
    return by_shape, _named(met, honest, guess) if met else by_shape


def _named(votes: dict[int, set[int]], honest: set[int], guess: float) -> float:
    if not votes:
        return guess
    most = max(map(len, votes.values()))
    first = [node for node, who in votes.items() if len(who) == most]
    return sum(node in honest for node in first) / len(first)


def _tree(relays: int, depth: int, root: int, rng: random.Random) -> dict[int, int]:
    """Deal all other relays out in a random order, level by level, evenly."""
    order = [node for node in range(relays) if node != root]
    rng.shuffle(order)
    width = next(b for b in range(1, relays) if sum(b**i for i in range(1, depth + 1)) >= len(order))
    above, begin = [root], 0
    tree: dict[int, int] = {}
    while begin < len(order):
        level = order[begin : begin + len(above) * width]
        tree |= {node: above[place % len(above)] for place, node in enumerate(level)}
        above, begin = level, begin + len(level)
    return tree


def main() -> None:
    """Print a line for each attack and number of colluding subscribers, with the model beside it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("profile", choices=["paper", "hardened"])
    parser.add_argument("--users", default="0,1,5,20")
    parser.add_argument("--colluding", type=float, default=0.01)
    for name, value in (("relays", 300), ("subscribers", 25), ("runs", 200), ("messages", 20), ("seed", 1)):
        parser.add_argument(f"--{name}", type=int, default=value)
    parser.add_argument("--clients", type=int)
    parser.add_argument("--trials", type=int, default=4000, help="of the model")
    parser.add_argument("--master", default="local[2]")
    given = parser.parse_args()
    asked = replace(
        UserRuns(given.profile, clients=given.clients),
        **{name: getattr(given, name) for name in ("relays", "subscribers", "runs", "messages", "seed")},
    )
    spark = open_session(given.master, "colluding users", rows=0)
    for users in map(int, given.users.split(",")):
        hits: dict[str, float] = {}
        if asked.scenario(0).listed:
            hits, _ = draw_hits(asked, given.colluding, users, given.trials, given.seed)
        for row in asked.figures(spark, (given.colluding,), users):
            model = f"  model {hits[row['attack']]:.4f}" if row["attack"] in hits else ""
            print(
                f"A_s {users:>2}  {row['attack']:<20} {row['trials']:>6} trials"
                f"  named {row['accuracy']:.4f} ({row['accuracy_low']:.4f}–{row['accuracy_high']:.4f})"
                f"  belief {row['belief']:.4f} ({row['belief_low']:.4f}–{row['belief_high']:.4f})"
                f"  bound {row['bound']:.4f}{model}",
                flush=True,
            )
    spark.stop()


if __name__ == "__main__":
    main()
