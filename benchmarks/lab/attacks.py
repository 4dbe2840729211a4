"""The experiments of docs/attack-lab.md: `python -m benchmarks.lab.attacks NAME… [--trials N]`."""

from __future__ import annotations

import argparse
import gc
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial
from math import inf
from typing import Any

from pyspark.sql import Row, SparkSession

from benchmarks.lab.networks import SCANNER, Lab, is_first_device
from hushcast_analytics.adversaries import Adversary, colluders
from hushcast_analytics.attacks.catalogue import ATTACKS, Attack, Subject
from hushcast_analytics.attacks.linkage_attacks import FOLLOWED_WITHIN, second_device
from hushcast_analytics.attacks.trained_attack import TrainingFeatures
from hushcast_analytics.checkpoints import kept
from hushcast_analytics.examination import Case, Examination
from hushcast_analytics.spark_session import open_session
from hushcast_analytics.trace_schemas import OBSERVATIONS
from hushcast_analytics.trial_summary import pooled, runs_of

TOPICS = 20  # a run: trials that share their colluders, which costs little precision and saves much work
SHAPES = ("parent-of-interior", "install-depth")
PASSIVE = (*SHAPES, "trail-popcount", "predecessor", "traffic-share", "trained")

PAPER = Lab(runs=0, topics=TOPICS, relays=500, depth=3, listed=True)
HARDENED_2000 = Lab(runs=0, topics=TOPICS, relays=2000, depth=2, listed=False, origins=2)
HARDENED = Lab(runs=0, topics=TOPICS, relays=500, depth=2, listed=False, origins=2)
SHARDS = replace(HARDENED_2000, shards=4)
OPEN, HIDDEN, NEAR = (
    TrainingFeatures(),
    TrainingFeatures(path=False),
    TrainingFeatures(path=False, chains=False),
)
AUTHORS = ("origin-choice", "timing")


# An adversary that is told which subscriptions are first devices', and within how many epochs others follow.
PLAYED = ATTACKS | {
    f"second-device-{epochs}": replace(
        ATTACKS["second-device"],
        name=f"second-device-{epochs}",
        rule=partial(second_device, within=epochs, is_first=is_first_device),
    )
    for epochs in (0, 12, FOLLOWED_WITHIN)
}


@dataclass(frozen=True)
class Experiment:
    """Attacks on networks of one kind; `trials` unless the command line says otherwise.

    Trials are topics, but for attacks on messages, of which each topic has several. With `over`, the figures
    are those known after each so many epochs.
    """

    lab: Lab
    attacks: tuple[str, ...]
    trials: int = 2000
    shares: tuple[float, ...] = (0.1, 0.2)
    active: bool = False
    learning: TrainingFeatures = OPEN  # what the trained attack looks at
    over: int = 0


OVERLAY = (0.01, 0.05, 0.1, 0.2)  # the shares of the oracle's table, whose trees fill up from the left
FULL = replace(PAPER, shape="full")
# What the command line may change of a lab.
OPTIONS = ("relays", "topics", "depth", "messages", "origins", "trees", "shards")
CHURNING = replace(HARDENED, down=8.0, epochs=96)
TWO_TOPICS = replace(HARDENED, topics_each=2)
TRAINED = ("trained", "traffic-share")
LINKS = ("renewal-times", "shared-mailbox")
DEVICES = replace(TWO_TOPICS, begun_within=24)  # a topic that persons begin within a day, on two devices each
TOPICS_OF = ("dictionary", "statistical-disclosure")

EXPERIMENTS = {
    "oracle": Experiment(FULL, SHAPES, 4000, OVERLAY),
    "oracle-deeper": Experiment(replace(FULL, depth=4), SHAPES[:1], 4000, OVERLAY),
    "oracle-same": Experiment(replace(FULL, epochs=24, renewal="same"), SHAPES[:1], 800, OVERLAY),
    "oracle-fresh": Experiment(replace(FULL, epochs=24, renewal="fresh"), ("predecessor",), 800, OVERLAY),
    # As other simulations had it: trees from the left, and nobody knows from where an instruction came.
    "trained-near": Experiment(FULL, ("trained",), 3000, learning=NEAR),
    "trained-near-50": Experiment(replace(FULL, messages=50), TRAINED, 800, learning=NEAR),
    "trained-0": Experiment(FULL, ("trained",), 3000, learning=HIDDEN),
    "trained-50": Experiment(replace(FULL, messages=50), TRAINED, 600, learning=HIDDEN),
    "trained-100": Experiment(replace(FULL, messages=100), TRAINED, 600, learning=HIDDEN),
    "paper": Experiment(replace(PAPER, messages=20), PASSIVE, 300),
    "paper-fresh": Experiment(replace(PAPER, epochs=24, renewal="fresh"), ("predecessor",), 100, (0.1, 0.2)),
    "paper-scan": Experiment(replace(PAPER, scan=True), ("active-scan",), 200, active=True),
    "hardened": Experiment(replace(HARDENED, messages=20), PASSIVE, 4000),
    "hardened-2000": Experiment(replace(HARDENED_2000, messages=20), PASSIVE, 400),
    "hardened-fresh": Experiment(replace(HARDENED, epochs=24, renewal="fresh"), ("predecessor",), 100),
    "hardened-fresh-2000": Experiment(
        replace(HARDENED_2000, epochs=24, renewal="fresh"), ("predecessor",), 60
    ),
    "hardened-scan": Experiment(replace(HARDENED, scan=True), ("active-scan",), 200, active=True),
    "hardened-scan-2000": Experiment(replace(HARDENED_2000, scan=True), ("active-scan",), 60, active=True),
    "hardened-deeper": Experiment(replace(HARDENED, messages=20, depth=3), PASSIVE, 300),
    "hardened-two-trees": Experiment(replace(HARDENED, messages=20, trees=2), PASSIVE, 300),
    "hardened-three-origins": Experiment(replace(HARDENED, messages=20, origins=3), PASSIVE, 300),
    "hardened-silent": Experiment(replace(HARDENED, messages=20, dropping="silent"), PASSIVE, 300, (0.1,)),
    "hardened-refusing": Experiment(
        replace(HARDENED, messages=20, dropping="refusing"), PASSIVE, 300, (0.1,)
    ),
    "publishers-paper": Experiment(replace(PAPER, messages=100), ("first-spy",), 600),
    "publishers-hardened": Experiment(replace(HARDENED, messages=100), ("first-spy",), 600),
    "publishers-2000": Experiment(replace(HARDENED_2000, messages=100), ("first-spy",), 600),
    "publishers-refusing": Experiment(
        replace(HARDENED, messages=100, dropping="refusing"), ("first-spy",), 600, (0.1,)
    ),
    "authors": Experiment(replace(HARDENED, messages=600, one_author=True), AUTHORS, 200),
    "authors-avoiding": Experiment(
        replace(HARDENED, messages=3000, one_author=True, avoiding=True), AUTHORS[:1], 40
    ),
    "authors-churn": Experiment(
        replace(CHURNING, messages=5, one_author=True), AUTHORS[1:], 40, (0.1,), over=24
    ),
    "presence-relays": Experiment(CHURNING, ("presence",), 60, (0.1,), over=12),
    "presence-clients": Experiment(replace(CHURNING, clients=100), ("presence",), 40, (0.1,), over=24),
    "renewal-apart": Experiment(TWO_TOPICS, LINKS, 200),
    "renewal-together": Experiment(replace(TWO_TOPICS, together=True), LINKS, 200),
    "mailbox-shared": Experiment(replace(TWO_TOPICS, shared=True), LINKS, 200),
    "devices": Experiment(DEVICES, ("second-device", f"second-device-{FOLLOWED_WITHIN}"), 2000, (0.1,)),
    "devices-12": Experiment(replace(DEVICES, followed_within=12), ("second-device-12",), 2000, (0.1,)),
    "devices-at-once": Experiment(replace(DEVICES, followed_within=0), ("second-device-0",), 2000, (0.1,)),
    "shards": Experiment(replace(SHARDS, messages=20), PASSIVE, 400),
    "shards-fresh": Experiment(replace(SHARDS, epochs=24, renewal="fresh"), ("predecessor",), 60),
    "shards-scan": Experiment(replace(SHARDS, scan=True), ("active-scan",), 100, active=True),
    "shards-publishers": Experiment(replace(SHARDS, messages=100), ("first-spy",), 600),
    "shards-authors": Experiment(replace(SHARDS, messages=300, one_author=True), AUTHORS, 100),
    "shards-subscriptions": Experiment(replace(SHARDS, messages=50), TOPICS_OF, 100),
    "subscriptions-paper": Experiment(replace(PAPER, messages=50), TOPICS_OF, 200),
    "subscriptions-hardened": Experiment(replace(HARDENED, messages=50), TOPICS_OF, 200),
}

BY_HOSTS = (
    *("hardened", "hardened-2000", "hardened-fresh", "hardened-scan", "publishers-hardened", "authors"),
    *("renewal-apart", "subscriptions-hardened", "shards"),
)
EXPERIMENTS |= {
    f"{name}-hosts": replace(EXPERIMENTS[name], lab=replace(EXPERIMENTS[name].lab, hosted=True))
    for name in BY_HOSTS
}


def case_of(spark: SparkSession, lab: Lab, adversary: Adversary) -> Case:
    """Return the traces of a lab, of observations those of colluders alone.

    Truths are kept, as many questions are asked of them.
    """
    nothing = spark.createDataFrame([], OBSERVATIONS)  # no adversary here chooses by what it has seen
    watched = colluders(adversary, lab.relay_names(spark), nothing)
    observations = lab.observations(spark, watched)
    return Case(observations, kept(lab.truths(spark)), lab.rosters(spark), lab.spanned, lab.depth, lab.shards)


class Findings:
    """What batches of runs gave: networks of one batch are in memory at once, of all only these sums."""

    def __init__(self) -> None:
        """Begin with nothing.

        `runs` are each run's sums, by subject and by after how many epochs, 0 for all. `wrong` is the last of
        these moments at which the right one did not stand alone at the top, 0 if it always did, by attack,
        share, run and trial.
        """
        self.runs: defaultdict[tuple[Subject, int], list[Row]] = defaultdict(list)
        self.wrong: dict[tuple[str, float, str, str], int] = {}

    def add(self, spark: SparkSession, experiment: Experiment, lab: Lab) -> None:
        """Add the runs of one lab."""
        adversary = Adversary(experiment.shares, active=experiment.active, clients=(SCANNER,), seed=lab.seed)
        examination = Examination(case_of(spark, lab, adversary), adversary, experiment.learning)
        for subject, attacks in asked_of(experiment).items():
            if not experiment.over:
                self.runs[subject, 0] += runs_of(examination.measured(attacks)).collect()
            for moment in moments(experiment):
                trials = kept(examination.measured(attacks, until=moment - 1))
                self.runs[subject, moment] += runs_of(trials).collect()
                for trial in trials.select("attack", "colluding", "run", "trial", "right").collect():
                    key = (trial["attack"], trial["colluding"], trial["run"], trial["trial"])
                    self.wrong[key] = self.wrong.get(key, 0) if trial["right"] else moment


def asked_of(experiment: Experiment) -> dict[Subject, list[Attack]]:
    """Return the experiment's attacks by their subject."""
    found: defaultdict[Subject, list[Attack]] = defaultdict(list)
    for name in experiment.attacks:
        found[PLAYED[name].subject].append(PLAYED[name])
    return found


def moments(experiment: Experiment) -> range:
    """Return after how many epochs an experiment looks, if not after all alone."""
    return range(experiment.over, experiment.lab.epochs + 1, experiment.over) if experiment.over else range(0)


def results(
    spark: SparkSession, experiment: Experiment, trials: int, seed: int, batches: int = 1
) -> Iterator[str]:
    """Yield a line for each attack and share of colluders, and when most targets are named.

    Each batch has so many trials, and runs of its own: those of the next seed. All are one sample.
    """
    lab, findings = experiment.lab, Findings()
    for batch in range(batches):
        findings.add(spark, experiment, replace(lab, runs=max(2, trials // lab.topics), seed=seed + batch))
        gc.collect()  # a batch's tables live in the JVM for as long as Python knows of them
    for (subject, moment), runs in findings.runs.items():
        known = f"after {moment:>3} epochs: " if moment else ""
        for row in pooled(spark.createDataFrame(runs)):
            yield f"{known}{line(row, lab, subject)}"
    if experiment.over:
        yield from named_after(findings, moments(experiment))


def line(row: dict[str, Any], lab: Lab, subject: Subject) -> str:
    """Return an attack's figures, the first two also as multiples of chance."""
    honest = lab.people - int(row["colluding"] * lab.relays)
    chance = 1 / honest if subject in ("message", "author", "topic") else row["bound"]
    if lab.begun_within:  # of h persons, each with two subscriptions, one has to be right
        chance = 2 * chance / (1 + chance)
    figures = []
    for word, name in (("named", "accuracy"), ("belief", "belief")):
        low, mean, high = (row[name + bound] for bound in ("_low", "", "_high"))
        times = f"{mean / chance:.2f} ({low / chance:.2f}–{high / chance:.2f}) of chance"
        figures.append(f"{word} {mean:.5f} ({low:.5f}–{high:.5f}), {times}")
    return (
        f"{row['attack']:<22} {row['colluding']:>4.0%} {row['trials']:>7} trials  {'  '.join(figures)}  "
        f"bound {row['bound']:.5f}  entropy {row['entropy_bits']:.2f}  degree {row['degree']:.2f}"
    )


def named_after(findings: Findings, looked: range) -> Iterator[str]:
    """Yield how many epochs it takes until a quarter, half and three quarters of the targets are named.

    A target is named from the moment on from which it stands alone at the top to the end.
    """
    for attack, share in sorted({key[:2] for key in findings.wrong}):
        last = sorted(moment for key, moment in findings.wrong.items() if key[:2] == (attack, share))
        named = [moment + looked.step if moment < looked[-1] else inf for moment in last]
        quarters = (named[len(named) * part // 4] for part in (1, 2, 3))
        yield f"{attack} {share:.0%}: named after {', '.join(map(str, quarters))} epochs (quartiles)"


def main() -> None:
    """Run the experiments named on the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="+", choices=list(EXPERIMENTS), metavar="NAME")
    parser.add_argument("--trials", type=int)
    for name in OPTIONS:
        parser.add_argument(f"--{name}", type=int)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument(
        "--batches", type=int, default=1, help="of so many trials, with the seeds that follow"
    )
    parser.add_argument("--master", default="local[2]")
    asked = parser.parse_args()
    # Plans of a hundred steps over little data: to compile them takes longer than to interpret them.
    spark = open_session(
        asked.master,
        "attack lab",
        spark_sql_shuffle_partitions="4",
        spark_sql_codegen_wholeStage="false",
        spark_sql_codegen_factoryMode="NO_CODEGEN",
        spark_sql_adaptive_enabled="false",  # a third less time: nothing here is large or skewed
        spark_driver_memory="2g",
        spark_cleaner_periodicGC_interval="1min",  # what a batch kept goes when the JVM looks for garbage
    )
    changes = {name: getattr(asked, name) for name in OPTIONS}
    for name in asked.names:
        experiment = EXPERIMENTS[name]
        lab = replace(experiment.lab, **{name: value for name, value in changes.items() if value is not None})
        print(f"{name}: {', '.join(f'{getattr(lab, option)} {option}' for option in OPTIONS)}", flush=True)
        trials = asked.trials or experiment.trials
        for line in results(spark, replace(experiment, lab=lab), trials, asked.seed, asked.batches):
            print(f"  {line}", flush=True)
    spark.stop()


if __name__ == "__main__":
    main()
