"""The lab's experiments: batches are one sample, the attack without Spark believes what the other does."""

import functools
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from pyspark.sql import SparkSession

from benchmarks.lab.networks import Lab, numbers_of
from hushcast_analytics.adversaries import Adversary, colluders
from hushcast_analytics.attacks.catalogue import ATTACKS
from hushcast_analytics.examination import Examination
from hushcast_analytics.trial_summary import pooled

pytestmark = pytest.mark.spark


@pytest.fixture(scope="module")
def examined(spark: SparkSession) -> Callable[[Lab, Adversary], Examination]:
    """Give a lab's view to all who ask for it."""
    from benchmarks.lab.attacks import case_of

    return functools.cache(lambda lab, adversary: Examination(case_of(spark, lab, adversary), adversary))


@pytest.mark.parametrize(
    ("attack", "depth", "origins", "shards"),
    [
        ("traffic-share", 2, 2, 1),
        ("parent-of-interior by hosts", 2, 2, 1),
        pytest.param("traffic-share by hosts", 2, 2, 1, marks=pytest.mark.soak),
        pytest.param("first-spy by hosts", 2, 2, 1, marks=pytest.mark.soak),
        pytest.param("predecessor by hosts", 2, 1, 2, marks=pytest.mark.soak),
        pytest.param("traffic-share", 3, 1, 2, marks=pytest.mark.soak),
        pytest.param("first-spy", 2, 2, 1, marks=pytest.mark.soak),
        pytest.param("parent-of-interior", 3, 1, 2, marks=pytest.mark.soak),
        pytest.param("predecessor", 3, 1, 2, marks=pytest.mark.soak),
    ],
)
def test_without_spark_attacks_believe_the_same(
    spark: SparkSession,
    examined: Callable[[Lab, Adversary], Examination],
    attack: str,
    depth: int,
    origins: int,
    shards: int,
) -> None:
    from benchmarks.lab import rare_hits

    # A shard has as many relays as a network without any.
    asked = Lab(runs=2, topics=6, relays=60 * shards, depth=depth, listed=False, messages=8, origins=origins)
    attack, _, by_hosts = attack.partition(" by ")
    lab = replace(asked, shards=shards, seed=3, hosted=bool(by_hosts))
    adversary = Adversary((0.2,), seed=3)
    trials = examined(lab, adversary).measured([ATTACKS[attack]]).collect()
    found = {(row["run"], row["trial"]): (row["belief"], row["hit"]) for row in trials}
    members = colluders(adversary, lab.relay_names(spark), lab.rosters(spark)).collect()
    attacked, _ = rare_hits.ATTACKS[attack]
    expected: dict[tuple[str, str], tuple[float, float]] = {}
    for number in range(lab.runs):
        colluding = numbers_of([row["node"] for row in members if row["run"] == f"3.{number}"])
        for trial in attacked(lab, number, colluding):
            expected[f"3.{number}@0.2", trial.name] = (trial.belief, trial.hit)
    assert found.keys() == expected.keys()
    for name, figures in found.items():
        assert figures == pytest.approx(expected[name], abs=1e-9), name
    assert len({round(belief, 9) for belief, _ in found.values()}) > 1


@pytest.mark.soak
def test_batches_are_one_sample(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    from benchmarks.lab import attacks
    from benchmarks.lab.attacks import Experiment, Findings, results
    from benchmarks.lab.rare_hits import interval

    # Both ways measure the same batches: what is seen of each is computed once.
    for name in ("case_of", "Examination"):
        monkeypatch.setattr(attacks, name, functools.cache(getattr(attacks, name)))
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
    without_spark = interval(*(np.array([row[name] for row in rows]) for name in ("n", "beliefs")))
    assert without_spark == pytest.approx((both["belief_low"], both["belief"], both["belief_high"]))
