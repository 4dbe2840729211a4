"""Posteriors: an attack's beliefs, one row for each candidate that it distinguishes from the others.

Candidates without a row share the remaining probability equally. So an attack that learnt nothing writes no
row, and 100,000 candidates cost nothing.
"""

from __future__ import annotations

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F
from pyspark.sql.types import DoubleType, StringType, StructField, StructType

from hushcast_analytics.adversaries import AdversaryView
from hushcast_analytics.checkpoints import little_in_one

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
    whole = F.sum("votes").over(Window.partitionBy("run", "trial"))
    return posterior(valid.withColumn("probability", F.col("votes") / whole))


def weighed_by(evidence: DataFrame, view: AdversaryView) -> DataFrame:
    """Return the posterior of log likelihood ratios (run, trial, candidate, ratio), by Bayes from an equal
    prior.

    `ratio` is the natural logarithm of how much likelier the evidence is if the candidate is the one asked
    for; several rows of a candidate add up, a candidate without one has 0.
    """
    sizes = view.candidates.groupBy("run").agg(F.count("*").alias("candidates"))
    summed = (
        little_in_one(evidence)
        .groupBy("run", "trial", "candidate")
        .agg(F.sum("ratio").alias("ratio"))
        .join(view.candidates.select("run", "candidate"), ["run", "candidate"], "left_semi")
        .join(F.broadcast(sizes), "run")
    )
    trial = Window.partitionBy("run", "trial")
    # Relative to the largest exponent, so that nothing overflows; those without a row have exponent 0.
    top = F.greatest(F.max("ratio").over(trial), F.lit(0.0))
    lifted = summed.withColumn("top", top).withColumn("weight", F.exp(F.col("ratio") - F.col("top")))
    rest = (F.col("candidates") - F.count("*").over(trial)) * F.exp(-F.col("top"))
    return posterior(lifted.withColumn("probability", F.col("weight") / (F.sum("weight").over(trial) + rest)))


def nothing(view: AdversaryView) -> DataFrame:
    """Return the posterior of who saw nothing of what an attack goes by: no row, and no work to find none."""
    return view.observations.sparkSession.createDataFrame([], POSTERIOR)


def posterior(rows: DataFrame) -> DataFrame:
    """Return the columns of `POSTERIOR` of a table that has these."""
    return rows.select([F.col(field.name).cast(field.dataType) for field in POSTERIOR])
