"""Measures: by hand on small cases, by scikit-learn and scipy on drawn ones."""

import math
import random

import numpy as np
import pytest
from pyspark.sql import Row, SparkSession
from pyspark.sql import functions as F

from hushcast_analytics.measures import measured
from hushcast_analytics.posteriors import POSTERIOR
from hushcast_analytics.trial_summary import summarised
from hushcast_protocol.base.intervals import wilson

pytestmark = pytest.mark.spark

Named = dict[str, float]


def measures(
    spark: SparkSession, cases: dict[str, tuple[Named, list[str], int]], run: str = "r"
) -> dict[str, Row]:
    """Measure trials, each by its named candidates, its targets and the number of candidates."""
    rows = [(run, trial, name, p) for trial, (named, _, _) in cases.items() for name, p in named.items()]
    targets = [(run, trial, target) for trial, (_, those, _) in cases.items() for target in those]
    sizes = [(run, trial, h, 1 / h) for trial, (_, _, h) in cases.items()]
    found = measured(
        *(
            table.withColumn("attack", F.lit("some"))
            for table in (
                spark.createDataFrame(rows, POSTERIOR),
                spark.createDataFrame(targets, "run string, trial string, target string"),
                spark.createDataFrame(sizes, "run string, trial string, candidates long, bound double"),
            )
        )
    )
    return {row["trial"]: row for row in found.collect()}


def test_by_hand(spark: SparkSession) -> None:
    found = measures(
        spark,
        {
            "nothing learnt": ({}, ["a"], 8),
            "named": ({"a": 1.0}, ["a"], 8),
            "wrong": ({"b": 1.0}, ["a"], 5),
            "half": ({"a": 0.5}, ["a"], 5),  # four others share the rest: an eighth each
            "in two": ({"a": 0.5, "b": 0.5}, ["a"], 4),
            "behind": ({"a": 0.1, "b": 0.5}, ["a"], 4),  # the other two have 0.2 each
            "either": ({"a": 0.5, "b": 0.3}, ["a", "b"], 4),
        },
    )

    def row(name: str, *columns: str) -> list[float]:
        return [found[name][column] for column in columns]

    ranks = ("hit", "belief", "named", "right", "inverse_rank", "ndcg", "anonymity_set")
    shape = ("entropy_bits", "degree", "effective_set", "min_entropy_bits", "guessing_entropy")
    eighth = sum(1 / i for i in range(1, 9)) / 8
    gain = sum(1 / math.log2(1 + i) for i in range(1, 9)) / 8
    assert row("nothing learnt", *ranks) == pytest.approx([1 / 8, 1 / 8, 0, 0, eighth, gain, 8])
    assert row("nothing learnt", *shape) == pytest.approx([3, 1, 8, 3, 4.5])
    assert row("named", *ranks) == pytest.approx([1, 1, 1, 1, 1, 1, 1])
    assert row("named", *shape) == pytest.approx([0, 0, 1, 0, 1])
    later = sum(1 / math.log2(1 + i) for i in range(2, 6)) / 4
    assert row("wrong", *ranks) == pytest.approx([0, 0, 1, 0, (1 / 2 + 1 / 3 + 1 / 4 + 1 / 5) / 4, later, 4])
    assert row("half", *shape) == pytest.approx([2, 2 / math.log2(5), 4, 1, 0.5 + 0.125 * (2 + 3 + 4 + 5)])
    assert row("half", *ranks) == pytest.approx([1, 0.5, 1, 1, 1, 1, 1])
    assert row("in two", *ranks) == pytest.approx([0.5, 0.5, 0, 0, 0.75, (1 + 1 / math.log2(3)) / 2, 2])
    assert row("behind", "inverse_rank", "guessing_entropy") == pytest.approx(
        [1 / 4, 0.5 * 1 + 0.2 * 2 + 0.2 * 3 + 0.1 * 4]
    )
    assert row("either", "hit", "belief", "inverse_rank", "ndcg") == pytest.approx([1, 0.8, 0.75, 1])


def test_against_scikit_learn_and_scipy(spark: SparkSession) -> None:
    # Only `make test-all` installs them.
    from scipy.stats import entropy
    from sklearn.metrics import label_ranking_average_precision_score, ndcg_score

    rng = random.Random(5)
    cases: dict[str, tuple[Named, list[str], int]] = {}
    expected = {}
    for number in range(25):
        h = rng.randint(2, 12)
        names = [f"c{i}" for i in range(h)]
        weights = [rng.choice((1, 1, 2, 5)) for _ in names]
        p = np.array(weights) / sum(weights)
        # Some of those who share the lowest probability stay unnamed.
        quiet = {n for n, w in zip(names, weights, strict=True) if w == min(weights) and rng.random() < 0.7}
        quiet = quiet if len(quiet) > 0 else set()
        targets = rng.sample(names, rng.randint(1, min(2, h)))
        cases[str(number)] = (
            {n: float(q) for n, q in zip(names, p, strict=True) if n not in quiet},
            targets,
            h,
        )
        relevant = np.array([[int(n in targets) for n in names]])
        ordered = np.sort(p)[::-1]
        expected[str(number)] = {
            "ndcg": ndcg_score(relevant, p[None, :]),
            "entropy_bits": entropy(p, base=2),
            "guessing_entropy": float((ordered * np.arange(1, h + 1)).sum()),
            "min_entropy_bits": -math.log2(p.max()),
            "worst": label_ranking_average_precision_score(relevant, p[None, :]),
        }
    found = measures(spark, cases)
    for name, wanted in expected.items():
        for measure in ("ndcg", "entropy_bits", "guessing_entropy", "min_entropy_bits"):
            assert found[name][measure] == pytest.approx(wanted[measure]), (name, measure)
        if len(cases[name][1]) == 1:
            # scikit-learn puts the true one last among equals, we in the middle of them.
            assert found[name]["inverse_rank"] >= wanted["worst"] - 1e-9


def test_wilson_by_a_published_example() -> None:
    low, high = wilson(0.5, 10)  # Agresti and Coull, 1998
    assert (low, high) == pytest.approx((0.2366, 0.7634), abs=1e-4)
    assert wilson(0, 0) == (0, 1)


def test_trials_of_one_run_count_for_less(spark: SparkSession) -> None:
    """Runs in which all is named beside runs in which nothing is: as many trials as runs, no more."""
    columns = (
        "attack string, colluding double, run string, trial string, hit double, belief double, named int, "
        "right int, candidates long, bound double, "
        "inverse_rank double, ndcg double, entropy_bits double, degree double, effective_set double, "
        "min_entropy_bits double, guessing_entropy double, anonymity_set long"
    )
    rows = [
        (
            "some",
            0.1,
            f"r{run}",
            str(trial),
            float(run % 2),
            float(run % 2),
            1,
            run % 2,
            9,
            0.1,
            *[1.0] * 7,
            1,
        )
        for run in range(20)
        for trial in range(50)
    ]
    (figures,) = summarised(spark.createDataFrame(rows, columns))
    low, high = wilson(0.5, 19)
    assert figures["trials"] == 1000
    assert (figures["accuracy"], figures["precision"], figures["recall"]) == (0.5, 0.5, 0.5)
    assert (figures["accuracy_low"], figures["accuracy_high"]) == pytest.approx((low, high), abs=0.01)


def test_one_trial_says_nothing_of_belief_in_others(spark: SparkSession) -> None:
    names = ("bound", "inverse_rank", "ndcg", "entropy_bits", "degree", "effective_set", "min_entropy_bits")
    figures = dict.fromkeys((*names, "candidates", "guessing_entropy"), 0.5)
    trial = {
        "attack": "some",
        "colluding": 0.1,
        "run": "r",
        "hit": 1.0,
        "belief": 0.5,
        "named": 1,
        "right": 1,
    }
    (row,) = summarised(spark.createDataFrame([Row(**trial, anonymity_set=2, **figures)]))
    assert (row["belief_low"], row["belief"], row["belief_high"]) == (0.0, 0.5, 1.0)
