"""Adversaries: who colludes, and that a view holds what their daemons wrote and nothing else."""

from collections.abc import Callable
from dataclasses import replace

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from benchmarks.lab.networks import SCANNER, Lab
from hushcast_analytics.adversaries import Adversary, Choice, colluders
from hushcast_analytics.attacks.catalogue import ATTACKS
from hushcast_analytics.checkpoints import kept
from hushcast_analytics.examination import Case, Examination, case_of
from hushcast_analytics.profile_runs import AnalysisPlan, ProfileRuns

pytestmark = pytest.mark.spark

LAB = Lab(runs=2, topics=2, relays=24, depth=2, listed=True, messages=2, scan=True, seed=7)
ADVERSARY = Adversary((0.25, 0.5), active=True, clients=(SCANNER,))


@pytest.fixture(scope="module")
def case(spark: SparkSession) -> Case:
    """The lab's networks, drawn once."""
    tables = (kept(table) for table in (LAB.observations(spark), LAB.truths(spark), LAB.rosters(spark)))
    return Case(*tables, LAB.relays, LAB.depth)


def nodes(table: DataFrame) -> set[tuple[str, ...]]:
    return {tuple(map(str, row)) for row in table.collect()}


@pytest.mark.parametrize("chosen", ["random", "degree", "sybil"])
def test_the_choice_depends_on_seed_and_names_alone(spark: SparkSession, case: Case, chosen: Choice) -> None:
    relays = spark.createDataFrame(
        [("r", f"{i * 37 % 100:02}") for i in range(100)], "run string, node string"
    )
    seen = case.observations
    adversary = Adversary((0.1, 0.255), chosen, seed=3)
    found = nodes(colluders(adversary, relays, seen))
    assert sum(share == "0.1" for _, _, share in found) == 10
    assert sum(share == "0.255" for _, _, share in found) == 25
    assert nodes(colluders(adversary, relays.orderBy("node").repartition(7), seen)) == found
    if chosen != "degree":
        assert nodes(colluders(replace(adversary, seed=4), relays, seen)) != found


def test_a_sybil_block_is_one(spark: SparkSession) -> None:
    names = [f"{i:02x}" for i in range(256)]
    relays = spark.createDataFrame([("r", name) for name in names], "run string, node string")
    block = {name for _, name, _ in nodes(colluders(Adversary((0.1,), "sybil"), relays, relays))}
    places = sorted(names.index(name) for name in block)
    gaps = [(b - a) % 256 for a, b in zip(places, places[1:] + places[:1], strict=True)]
    assert len(places) == 25
    assert sorted(gaps)[:-1] == [1] * 24


def test_those_with_most_peers_are_chosen_by_degree(spark: SparkSession) -> None:
    rows = [("r", "hub", f"n{i}") for i in range(5)] + [("r", "n0", "hub")]
    seen = spark.createDataFrame(rows, "run string, node string, next string").selectExpr(
        "*", "'sent' as kind", "cast(null as string) as previous"
    )
    relays = spark.createDataFrame([("r", n) for n in ("hub", "n0", "n1", "n2")], "run string, node string")
    assert {name for _, name, _ in nodes(colluders(Adversary((0.25,), "degree"), relays, seen))} == {"hub"}


@pytest.fixture(scope="module")
def examination(case: Case) -> Examination:
    return Examination(case, ADVERSARY)


def posteriors(examination: Examination) -> set[tuple[str, ...]]:
    """What all attacks on subscribers believe, and who the colluders are."""
    found = nodes(examination.view("topic").members)
    for name in ("parent-of-interior", "install-depth", "traffic-share", "active-scan", "first-spy"):
        rows = examination.posterior(ATTACKS[name])
        found |= nodes(rows.select(F.lit(name), "run", "trial", "candidate", F.round("probability", 9)))
    return found


@pytest.fixture(scope="module")
def honest_view(examination: Examination) -> set[tuple[str, ...]]:
    return posteriors(examination)


def untrue(case: Case, members: DataFrame) -> Case:
    """Every honest subscription, and every publication's author, is another's; depths and days are wrong."""
    theirs = members.select("node").distinct().withColumn("theirs", F.lit(True))
    other = F.lower(F.lpad(F.hex(F.pmod(F.xxhash64("node"), F.lit(1 << 32))), 8, "0"))
    moved = F.col("kind").isin("subscribed", "published") & F.col("theirs").isNull()
    columns = case.truths.columns
    truths = case.truths.join(theirs, "node", "left").withColumn(
        "node", F.when(moved, other).otherwise(F.col("node"))
    )
    return replace(case, truths=truths.withColumn("depth", F.lit(99)).select(columns))


def unseen(case: Case, members: DataFrame) -> Case:
    """Honest relays saw something else."""
    theirs = members.select("node").distinct().withColumn("theirs", F.lit(True))
    columns = case.observations.columns
    marked = case.observations.join(theirs, "node", "left")
    honest = F.col("theirs").isNull()
    changed = marked.withColumn("next", F.when(honest, F.lit("elsewhere")).otherwise(F.col("next")))
    changed = changed.withColumn("previous", F.when(honest, F.lit("elsewhere")).otherwise(F.col("previous")))
    return replace(case, observations=changed.where("theirs or message is null").select(columns))


@pytest.mark.parametrize("change", [untrue, unseen])
def test_neither_truth_nor_what_honest_nodes_saw_enters(
    case: Case,
    examination: Examination,
    honest_view: set[tuple[str, ...]],
    change: Callable[[Case, DataFrame], Case],
) -> None:
    relays = examination.view("topic").members
    members = relays.union(relays.select("run", F.lit(SCANNER)))
    # Relays that collude under one share and not under another are left alone.
    assert posteriors(Examination(change(case, members), ADVERSARY)) == honest_view
    assert len(honest_view) > 50


def test_what_the_view_holds_was_written_by_members(examination: Examination) -> None:
    view = examination.view("topic")
    rows = view.observations.select("run", "node").distinct()
    assert rows.join(view.members, ["run", "node"], "left_anti").count() == 0
    assert (
        view.own.count() >= 2 * 2 * 2 * 24
    )  # a scan: shares, runs, topics, relays; and what members published


def test_of_a_network_of_shards_all_relays_are_told(spark):
    """The adversary has its share of all, so that is what is watched and said, not that of a shard."""
    started = [("run", f"relay {number}", "started", "relay", None, None) for number in range(9)]
    trees = [
        (
            "run",
            f"relay {number}",
            "installed",
            None,
            {f"relay {number}": None, "other": f"relay {number}"},
            1,
        )
        for number in range(4)
    ]
    columns = "run string, node string, kind string, role string, tree map<string, string>, depth int"
    truths = spark.createDataFrame([*started, *trees], columns)
    observations = spark.createDataFrame([], "run string, kind string, mark string, epoch int")
    case = case_of(observations, truths)
    assert (case.relays, case.shards, case.everybody) == (2, 4, 9)
    runs = ProfileRuns("hardened", case, AnalysisPlan((0.12, 0.1), ()))
    assert (runs.shares, runs.unwatched) == ((0.12,), (0.1,))
