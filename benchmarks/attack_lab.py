"""The experiments of docs/attack-lab.md: `python -m benchmarks.attack_lab NAME… [--trials N]`."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from dataclasses import dataclass, replace

from pyspark.sql import SparkSession

from hushcast_analytics.adversaries import Adversary
from hushcast_analytics.attacks.catalogue import ATTACKS
from hushcast_analytics.attacks.trained import Learning
from hushcast_analytics.examine import Case, Examination, kept
from hushcast_analytics.lab.networks import SCANNER, Lab
from hushcast_analytics.session import open_session
from hushcast_analytics.summary import summarised

TOPICS = 20  # a run: trials that share their colluders, which costs little precision and saves much work
SHAPES = ("parent-of-interior", "install-depth")
PASSIVE = (*SHAPES, "trail-popcount", "predecessor", "traffic-share", "trained")

PAPER = Lab(runs=0, topics=TOPICS, relays=500, depth=3, listed=True)
HARDENED = Lab(runs=0, topics=TOPICS, relays=500, depth=2, listed=False)


@dataclass(frozen=True)
class Experiment:
    """Attacks on networks of one kind; `trials` unless the command line says otherwise."""

    lab: Lab
    attacks: tuple[str, ...]
    trials: int = 2000
    shares: tuple[float, ...] = (0.1, 0.2)
    active: bool = False
    path: bool = True  # whether the trained attack sees which instructions came from outside


OVERLAY = (0.01, 0.05, 0.1, 0.2)  # the shares of the oracle's table, whose trees fill up from the left
CHURN = {"down": 8.0, "epochs": 120}

EXPERIMENTS = {
    "oracle": Experiment(replace(PAPER, shape="full"), SHAPES, shares=OVERLAY),
    "oracle-deeper": Experiment(replace(PAPER, shape="full", depth=4), SHAPES[:1], shares=OVERLAY),
    "oracle-fresh": Experiment(
        replace(PAPER, shape="full", epochs=24, fresh=True), ("predecessor",), 200, OVERLAY
    ),
    "paper": Experiment(PAPER, (*SHAPES, "trained")),
    # As other simulations had it: trees from the left, and nobody knows from where an instruction came.
    "trained-0": Experiment(replace(PAPER, shape="full"), ("trained",), 4000, path=False),
    "trained-50": Experiment(
        replace(PAPER, shape="full", messages=50), ("trained", "traffic-share"), 4000, path=False
    ),
    "trained-100": Experiment(
        replace(PAPER, shape="full", messages=100), ("trained", "traffic-share"), 4000, path=False
    ),
    "paper-50": Experiment(replace(PAPER, messages=50), PASSIVE),
    "paper-100": Experiment(replace(PAPER, messages=100), PASSIVE),
    "paper-scan": Experiment(replace(PAPER, scan=True), ("active-scan",), 400, active=True),
    "hardened": Experiment(replace(HARDENED, messages=20), PASSIVE, 10_000),
    "hardened-scan": Experiment(replace(HARDENED, scan=True), ("active-scan",), 2000, active=True),
    "hardened-fresh": Experiment(
        replace(HARDENED, epochs=24, fresh=True), ("predecessor",), 1000
    ),
    "publishers-paper": Experiment(replace(PAPER, messages=50), ("first-spy",), 1000),
    "publishers-hardened": Experiment(replace(HARDENED, messages=50), ("first-spy",), 1000),
    "authors": Experiment(
        replace(HARDENED, messages=3000, one_author=True, avoiding=True), ("origin-choice", "timing"), 100
    ),
    "presence-relays": Experiment(replace(HARDENED, **CHURN), ("presence",), 100, (0.1,)),
    "presence-clients": Experiment(replace(HARDENED, clients=100, **CHURN), ("presence",), 100, (0.1,)),
    "renewal-apart": Experiment(replace(HARDENED, topics_each=2), ("renewal-times", "shared-mailbox"), 400),
    "renewal-together": Experiment(
        replace(HARDENED, topics_each=2, together=True), ("renewal-times", "shared-mailbox"), 400
    ),
    "mailbox-shared": Experiment(
        replace(HARDENED, topics_each=2, shared=True), ("renewal-times", "shared-mailbox"), 400
    ),
    "subscriptions-paper": Experiment(
        replace(PAPER, messages=50), ("dictionary", "statistical-disclosure"), 1000
    ),
    "subscriptions-hardened": Experiment(
        replace(HARDENED, messages=50), ("dictionary", "statistical-disclosure"), 1000
    ),
}  # fmt: skip


def case_of(spark: SparkSession, lab: Lab) -> Case:
    """Return the traces of a lab; truths are kept, as many questions are asked of them."""
    return Case(lab.observations(spark), kept(lab.truths(spark)), lab.rosters(spark), lab.relays, lab.depth)


def results(spark: SparkSession, experiment: Experiment, trials: int, seed: int) -> Iterator[str]:
    """Yield a line for each attack and share of colluders."""
    lab = replace(experiment.lab, runs=max(2, trials // TOPICS), seed=seed)
    adversary = Adversary(experiment.shares, active=experiment.active, clients=(SCANNER,), seed=seed)
    examination = Examination(case_of(spark, lab), adversary, Learning(path=experiment.path))
    subjects = dict.fromkeys(ATTACKS[name].subject for name in experiment.attacks)
    for subject in subjects:
        attacks = [ATTACKS[name] for name in experiment.attacks if ATTACKS[name].subject == subject]
        for row in summarised(kept(examination.measured(attacks))):
            yield (
                f"{row['attack']:<22} {row['colluding']:>5.0%} {row['trials']:>7} trials  "
                f"named {row['accuracy']:.4f} ({row['accuracy_low']:.4f}–{row['accuracy_high']:.4f})  "
                f"belief {row['belief']:.5f} ({row['belief_low']:.5f}–{row['belief_high']:.5f})  "
                f"bound {row['bound']:.5f}  entropy {row['entropy_bits']:.2f}  degree {row['degree']:.2f}"
            )


def main() -> None:
    """Run the experiments named on the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="+", choices=list(EXPERIMENTS), metavar="NAME")
    parser.add_argument("--trials", type=int)
    parser.add_argument("--relays", type=int)
    parser.add_argument("--depth", type=int)
    parser.add_argument("--messages", type=int)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--master", default="local[2]")
    asked = parser.parse_args()
    # Plans of a hundred steps over little data: to compile them takes longer than to interpret them.
    spark = open_session(
        asked.master,
        "attack lab",
        spark_sql_shuffle_partitions="4",
        spark_sql_codegen_wholeStage="false",
        spark_sql_codegen_factoryMode="NO_CODEGEN",
    )
    changes = {name: getattr(asked, name) for name in ("relays", "depth", "messages")}
    for name in asked.names:
        experiment = EXPERIMENTS[name]
        lab = replace(experiment.lab, **{name: value for name, value in changes.items() if value is not None})
        print(f"{name}: {lab.relays} relays, depth {lab.depth}", flush=True)
        for line in results(
            spark, replace(experiment, lab=lab), asked.trials or experiment.trials, asked.seed
        ):
            print(f"  {line}", flush=True)
    spark.stop()


if __name__ == "__main__":
    main()
