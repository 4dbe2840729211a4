"""The lab's experiments: batches are one sample, the attack without Spark believes what the other does."""

from dataclasses import replace
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from hushcast_analytics.adversaries import Adversary, colluders
from hushcast_analytics.attacks.catalogue import ATTACKS
from hushcast_analytics.examine import Examination
from hushcast_analytics.lab.networks import Lab, numbers_of
from hushcast_analytics.summary import pooled

pytestmark = pytest.mark.spark

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(autouse=True)
def benchmarks_can_be_imported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(ROOT)


@pytest.mark.parametrize(("depth", "origins"), [(2, 2), (3, 1)])
def test_traffic_share_without_spark_believes_the_same(spark: SparkSession, depth: int, origins: int) -> None:
    from benchmarks.attack_lab import case_of
    from benchmarks.traffic_share import beliefs

    lab = Lab(runs=2, topics=6, relays=60, depth=depth, listed=False, messages=8, origins=origins, seed=3)
    adversary = Adversary((0.2,), seed=3)
    examination = Examination(case_of(spark, lab, adversary), adversary)
    trials = examination.measured([ATTACKS["traffic-share"]]).collect()
    found = {(row["run"], int(row["trial"])): row["belief"] for row in trials}
    members = colluders(adversary, lab.relay_names(spark), lab.rosters(spark)).collect()
    expected: dict[tuple[str, int], float] = {}
    for number in range(lab.runs):
        colluding = numbers_of([row["node"] for row in members if row["run"] == f"3.{number}"])
        expected |= {(f"3.{number}@0.2", topic): belief for topic, belief in beliefs(lab, number, colluding)}
    assert found == pytest.approx(expected, abs=1e-9)
    assert len({round(belief, 9) for belief in found.values()}) > 2


def test_batches_are_one_sample(spark: SparkSession) -> None:
    from benchmarks.attack_lab import Experiment, Findings, results

    lab = Lab(runs=0, topics=3, relays=40, depth=2, listed=True)
    experiment = Experiment(lab, ("parent-of-interior",), shares=(0.2,))
    findings = Findings()
    for seed in (1, 2):
        findings.add(spark, experiment, replace(lab, runs=2, seed=seed))
    rows = findings.runs["topic", 0]
    assert sorted(row["run"] for row in rows) == ["1.0@0.2", "1.1@0.2", "2.0@0.2", "2.1@0.2"]
    (both,) = pooled(spark.createDataFrame(rows))
    (line,) = results(spark, experiment, trials=6, seed=1, batches=2)
    assert f"{both['trials']} trials" in line
    assert f"named {both['accuracy']:.5f} ({both['accuracy_low']:.5f}–{both['accuracy_high']:.5f})" in line
