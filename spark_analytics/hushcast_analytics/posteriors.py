"""Posteriors: an attack's beliefs, one row for each candidate that it distinguishes from the others.

Candidates without a row share the remaining probability equally. So an attack that learnt nothing writes no
row, and 100,000 candidates cost nothing.
"""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import DoubleType, StringType, StructField, StructType

from hushcast_analytics.adversaries import AdversaryView
from hushcast_analytics.checkpoints import little_in_one, small

POSTERIOR = StructType(
    [
        StructField("run", StringType()),
        StructField("trial", StringType()),
        StructField("candidate", StringType()),
        StructField("probability", DoubleType()),
    ]
)
"""Within a trial the probabilities add up to 1 at most."""


def shared_by(votes: DataFrame, view: AdversaryView) -> DataFrame:
    """Return the posterior in which candidates have their share of (run, trial, candidate, votes).

    Without a vote for any candidate a trial has no row.
    """
    valid = votes.where("votes > 0").join(
        view.candidates.select("run", "candidate"), ["run", "candidate"], "left_semi"
    )
    return posterior(valid, "votes / sum(votes) over (partition by run, trial)")


def weighed_by(evidence: DataFrame, view: AdversaryView) -> DataFrame:
    """Return the posterior of log likelihood ratios (run, trial, candidate, ratio), by Bayes from an equal
    prior.

    `ratio` is the natural logarithm of how much likelier the evidence is if the candidate is the one asked
    for; several rows of a candidate add up, a candidate without one has 0.
    """
    sizes = view.candidates.groupBy("run").agg(F.expr("count(*) candidates"))
    summed = (
        little_in_one(evidence)
        .groupBy("run", "trial", "candidate")
        .agg(F.expr("sum(ratio) ratio"))
        .join(view.candidates.select("run", "candidate"), ["run", "candidate"], "left_semi")
        .join(small(sizes), "run")
    )
    trial = "over (partition by run, trial)"
    # Relative to the largest exponent, so that nothing overflows; those without a row have exponent 0.
    lifted = summed.selectExpr("*", f"greatest(max(ratio) {trial}, 0D) top")
    weighed = lifted.selectExpr("*", "exp(ratio - top) weight")
    rest = f"(candidates - count(*) {trial}) * exp(-top)"
    return posterior(weighed, f"weight / (sum(weight) {trial} + {rest})")


def nothing(view: AdversaryView) -> DataFrame:
    """Return the posterior of who saw nothing of what an attack goes by: no row, and no work to find none."""
    return posterior(view.candidates.selectExpr("run", "candidate trial", "candidate").where("false"), "0D")


def posterior(rows: DataFrame, probability: str = "probability") -> DataFrame:
    """Return the columns of `POSTERIOR` of a table that has these; `probability` is an expression in SQL."""
    return rows.selectExpr(
        *(f"string({name}) {name}" for name in ("run", "trial", "candidate")),
        f"double({probability}) probability",
    )
