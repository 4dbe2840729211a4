"""What an adversary has of topics that it knows, whether messages pass or not, and of others."""

import random
from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import reduce
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from benchmarks.lab.networks import Lab
from hushcast_analytics.adversaries import Adversary
from hushcast_analytics.attacks.catalogue import ATTACKS
from hushcast_analytics.checkpoints import kept
from hushcast_analytics.errors import TracesError
from hushcast_analytics.examination import Case, Examination, case_of
from hushcast_analytics.generator.generator_jobs import observations, truths
from hushcast_analytics.generator.scenario import GeneratorScenario
from hushcast_analytics.marks import lease_mark, marks
from hushcast_analytics.trial_summary import summarised
from hushcast_protocol.overlay import leases
from overlay import exposed

pytestmark = pytest.mark.spark

SHARE = 0.1
TOPICS, NODES = 100, 120
LARGE = GeneratorScenario(nodes=NODES, subscribers=1, topics=TOPICS, profile="paper", depth=3, authors=1)


def figures(case: Case, adversary: Adversary, names: Iterable[str]) -> dict[str, dict[str, Any]]:
    """What each of these attacks achieves, all in one job."""
    measured = Examination(case, adversary).measured([ATTACKS[name] for name in names])
    return {row["attack"]: row for row in summarised(measured)}


def generated(spark: SparkSession, runs: Sequence[GeneratorScenario]) -> Case:
    """Several runs at once: Spark takes as long to plan for one as for all."""
    seen = reduce(DataFrame.unionByName, [observations(spark, asked) for asked in runs])
    told = reduce(DataFrame.unionByName, [truths(spark, asked) for asked in runs])
    kinds = "kind in ('installed', 'passed', 'received', 'sent', 'roster')"
    return case_of(kept(seen.where(kinds)), kept(told))


def test_marks_are_the_daemons(spark: SparkSession) -> None:
    rng = random.Random(1)
    pairs = [(rng.randbytes(16), rng.randbytes(32)) for _ in range(20)]
    for trunk, relay in pairs:
        assert lease_mark(trunk, relay) == leases.lease_mark(trunk, relay)
    rows = [(trunk.hex(), relay.hex()) for trunk, relay in pairs] + [("no hex", "aa"), ("aa", "client-1")]
    table = spark.createDataFrame(rows, "token string, node string")
    found = [row["mark"] for row in table.select("token", marks("token", "node").alias("mark")).collect()]
    assert found == [leases.lease_mark(*pair).hex() for pair in pairs] + [None, None]


def test_generated_leases_have_the_marks_of_their_topics(spark: SparkSession) -> None:
    asked = GeneratorScenario(nodes=12, subscribers=2, topics=3, epochs=25)
    told = truths(spark, asked).where("kind = 'installed'").collect()
    trunks = {(row["topic"], row["day"]): bytes.fromhex(row["tokens"][0]) for row in told}
    assert len(trunks) == 3 * 2
    seen = observations(spark, asked).where("kind = 'installed'").collect()
    expected = {
        (row["node"], row["day"], leases.lease_mark(trunk, bytes.fromhex(row["node"])).hex())
        for row in seen
        for (_, day), trunk in trunks.items()
        if day == row["day"]
    }
    assert {(row["node"], row["day"], row["mark"]) for row in seen} == expected
    assert len(seen) == len(expected) * 2 == 12 * 3 * 2 * 2


def test_what_passes_is_not_needed_to_find_a_topics_leases(spark: SparkSession) -> None:
    """`install-depth` with no message, two and twenty a topic, and by a model without any code of ours."""
    expected = exposed(NODES, 3, SHARE, 2000, True, random.Random(1))
    runs = [replace(LARGE, publications=n * TOPICS, run=f"{n}") for n in (0, 2, 20)]
    measured = Examination(generated(spark, runs), Adversary((SHARE,))).measured([ATTACKS["install-depth"]])
    each = measured.withColumn("attack", F.substring_index("run", "@", 1))  # a figure of each run
    found = {int(row["attack"]): row for row in summarised(each)}
    assert found.keys() == {0, 2, 20}
    for row in found.values():
        assert row["trials"] > 0.8 * TOPICS
        assert row["accuracy_low"] < expected < row["accuracy_high"]
    for row in found.values():
        assert found[20]["accuracy_low"] < row["accuracy"] < found[20]["accuracy_high"]


LAB = Lab(runs=4, topics=10, relays=60, depth=2, listed=True, messages=3, seed=3)


def test_of_topics_that_it_does_not_know_it_recognises_nothing(spark: SparkSession) -> None:
    tables = (kept(table) for table in (LAB.observations(spark), LAB.truths(spark), LAB.rosters(spark)))
    case = Case(*tables, LAB.relays, LAB.depth)
    names = ("install-depth", "trained", "dictionary")
    none, half, all_of_them = (
        figures(case, Adversary((0.2,), topics_known=share), (*names, *others))
        for share, *others in ((0.0, "first-spy"), (0.5,), (1.0, "first-spy"))
    )
    for name in names:
        assert none[name]["degree"] == pytest.approx(1), name  # all candidates alike
        assert none[name]["accuracy"] < half[name]["accuracy"] < all_of_them[name]["accuracy"], name
    # Whoever has a message needs no topic to see from where it came.
    assert none["first-spy"]["belief"] == pytest.approx(all_of_them["first-spy"]["belief"])
    half_known = Examination(case, Adversary((0.2, 0.3), topics_known=0.5)).view("topic").questions
    known: dict[str, set[tuple[str, str]]] = {}
    for row in half_known.collect():
        run, _, share = row["run"].rpartition("@")
        known.setdefault(share, set()).add((run, row["trial"]))
    assert known["0.2"] == known["0.3"]
    assert 8 < len(known["0.2"]) < 32


@pytest.mark.parametrize("share", [-0.1, 1.1])
def test_a_share_of_topics_is_one(share: float) -> None:
    with pytest.raises(ValueError, match="topics known"):
        Adversary((0.1,), topics_known=share)


def test_leases_without_marks_are_refused(spark: SparkSession, tmp_path: Path) -> None:
    """Tables of an earlier version have none: no lease would be found, and all would seem well."""
    seen, told = LAB.observations(spark), LAB.truths(spark)
    old = seen.drop("mark").withColumn("mark", F.lit(None).cast("string")).select(seen.columns)
    with pytest.raises(TracesError, match="without marks"):
        case_of(old, told)
    assert case_of(seen, told).relays == LAB.relays
