"""What hosts learn of the owners of boxes: `python -m benchmarks.lab.boxes NAME… [--days D] [--topics T]`.

Networks of the generator, whose owners use hosts by the daemons' own `HostList`; attacks are the analyser's.
Colluders are always there; all others are up for 48 epochs and away for 8, in the mean.
"""

from __future__ import annotations

import argparse
import gc
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from pyspark.sql import DataFrame, SparkSession, Window
from pyspark.sql import functions as F

from hushcast_analytics.adversaries import Adversary
from hushcast_analytics.attacks.catalogue import ATTACKS
from hushcast_analytics.checkpoints import kept
from hushcast_analytics.examination import Case, Examination
from hushcast_analytics.generator.box_hosts import relay_names
from hushcast_analytics.generator.generator_jobs import observations, truths
from hushcast_analytics.generator.scenario import GeneratorScenario
from hushcast_analytics.spark_session import open_session
from hushcast_analytics.trace_schemas import EPOCHS_A_DAY
from hushcast_protocol.base.intervals import wilson

RELAYS = GeneratorScenario(nodes=500, subscribers=1, clients=0, down=8.0, hosts=2)
SHARES = (0.1, 0.2)
SURE = 0.9  # belief in the right one from which it counts as named


@dataclass(frozen=True)
class BoxExperiment:
    """Attacks on boxes of one kind; each topic is one subscription, of which trials are the honest ones."""

    asked: GeneratorScenario
    attacks: tuple[str, ...] = ("box-presence", "detach")
    topics: int = 400


EXPERIMENTS = {
    "one": BoxExperiment(replace(RELAYS, hosts=1)),
    "two": BoxExperiment(RELAYS),
    "daily": BoxExperiment(replace(RELAYS, hosts=1, fresh_boxes=True)),
    "kept-away": BoxExperiment(replace(RELAYS, kept_away=True)),
    "clients": BoxExperiment(replace(RELAYS, clients=200)),
    # Two subscriptions each, in the mean.
    "tied-one": BoxExperiment(replace(RELAYS, hosts=1, clients=200), ("survivors",)),
    "tied-two": BoxExperiment(replace(RELAYS, clients=200), ("survivors",)),
}


def examined(spark: SparkSession, asked: GeneratorScenario, share: float) -> Examination:
    """Return what a share of the relays, which are always there, has of the boxes of a network."""
    watched = replace(asked, watchers=round(share * asked.nodes))
    seen, told = kept(observations(spark, watched)), kept(truths(spark, watched))
    names = [name.hex() for name in relay_names(watched)[: watched.watchers]]
    case = Case(seen, told, seen.where("kind = 'roster'"), asked.nodes, asked.behaviour.depth)
    # Of no others: the share of them that collude is none.
    return Examination(case, Adversary((0.0,), clients=tuple(names)))


def results(spark: SparkSession, experiment: BoxExperiment, days: tuple[int, ...]) -> Iterator[str]:
    """Yield a line for each attack, share of colluders and number of days."""
    asked = replace(experiment.asked, topics=experiment.topics, epochs=max(days) * EPOCHS_A_DAY)
    for share in SHARES:
        examination = examined(spark, asked, share)
        for end in days:
            attacks = [ATTACKS[name] for name in experiment.attacks]
            until = None if end == max(days) else end * EPOCHS_A_DAY - 1
            for row in counted(examination.measured(attacks, until)):
                low, high = wilson(row["sure"] / row["trials"], row["trials"])
                yield (
                    f"{row['attack']:<14} {share:>4.0%} after {end:>2} days: {row['trials']} trials, named "
                    f"{row['sure'] / row['trials']:6.1%} ({low:.1%} to {high:.1%}), at the top "
                    f"{row['hits'] / row['trials']:6.1%}, belief {row['belief']:.4f}"
                )
            if "survivors" in experiment.attacks:
                tied, pairs = tied_pairs(examination, until)
                low, high = wilson(tied / pairs, pairs / 2)  # each pair is asked about from both sides
                span = f"{low:.1%} to {high:.1%}"
                yield f"tied           {share:>4.0%} of {pairs // 2} pairs {tied / pairs:.1%} ({span})"
        gc.collect()


def tied_pairs(examination: Examination, until: int | None = None) -> tuple[int, int]:
    """Return how many topics `survivors` ties to another of the same owner, and how many there are to tie.

    One is tied that it believes in at least half as much as in any of several alike.
    """
    rule = ATTACKS["survivors"].rule
    assert rule is not None
    targets = examination.trials("link").targets
    size = Window.partitionBy("run", "trial")
    asked = targets.withColumn("least", 0.5 / F.count("*").over(size))
    believed = rule(examination.view("link", until)).withColumnRenamed("candidate", "target")
    found = asked.join(believed, ["run", "trial", "target"], "left")
    (row,) = found.agg(F.count_if(F.col("probability") >= F.col("least")), F.count("*")).collect()
    return row[0], row[1]


def counted(trials: DataFrame) -> list[dict[str, Any]]:
    """Return for each attack: `trials`, how many named surely (`sure`), `hits`, and mean `belief`."""
    sums = trials.groupBy("attack").agg(
        F.count("*").alias("trials"),
        F.count_if(F.col("belief") >= SURE).alias("sure"),
        F.sum("hit").alias("hits"),
        F.avg("belief").alias("belief"),
    )
    return [row.asDict() for row in sums.orderBy("attack").collect()]


def main() -> None:
    """Run the experiments named on the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="+", choices=list(EXPERIMENTS), metavar="NAME")
    parser.add_argument("--days", default="14,60")
    parser.add_argument("--topics", type=int)
    parser.add_argument("--relays", type=int)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--master", default="local[2]")
    given = parser.parse_args()
    spark = open_session(given.master, "boxes", spark_sql_shuffle_partitions="4", spark_driver_memory="2g")
    for name in given.names:
        experiment = EXPERIMENTS[name]
        asked = replace(experiment.asked, seed=given.seed, nodes=given.relays or experiment.asked.nodes)
        experiment = replace(experiment, asked=asked, topics=given.topics or experiment.topics)
        print(f"{name}: {experiment.topics} subscriptions, {asked.nodes} relays", flush=True)
        for line in results(spark, experiment, tuple(map(int, given.days.split(",")))):
            print(f"  {line}", flush=True)
    spark.stop()


if __name__ == "__main__":
    main()
