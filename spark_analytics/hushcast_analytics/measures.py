"""Measures of anonymity: how much each trial's posterior says about the true one.

Of h candidates those without a row share the rest of the probability equally (`posteriors`), and candidates
with one probability stand in any order: measures of rank are means over these orders.
"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from hushcast_analytics.checkpoints import kept

KEYS = ["attack", "run", "trial"]
DIGITS = 12  # probabilities that agree so far are one: sums in another order differ after that

MEASURED = (
    "attack string, run string, trial string, candidates bigint, bound double, entropy_bits double, "
    "degree double, effective_set double, min_entropy_bits double, guessing_entropy double, named int, "
    "hit double, belief double, right int, inverse_rank double, anonymity_set bigint, ndcg double"
)
"""The columns of what is `measured`."""


def measured(posterior: DataFrame, targets: DataFrame, trials: DataFrame) -> DataFrame:
    """Return one row for each trial that has a target, with all measures.

    All tables have `attack`, `run` and `trial`; besides, `targets` have `target` (with several, naming any of
    them is a hit), `trials` have `candidates` and `bound`: how many might be named, and what the definition
    of VB §3 allows. Columns added:

    | column | meaning |
    |---|---|
    | `hit` | probability that the candidate with the highest probability is a target |
    | `belief` | posterior probability of the targets, added up |
    | `named`, `right` | 1 if one candidate stands alone at the top; the same, and it is a target |
    | `inverse_rank` | 1/rank, mean over targets |
    | `ndcg` | normalised discounted cumulative gain of the ranking, all targets relevant alike |
    | `entropy_bits` | Shannon entropy H of the posterior |
    | `degree` | H / log2 h (Díaz, Seys, Claessens and Preneel, PET 2002); 1 if there is one candidate |
    | `effective_set` | 2^H (Serjantov and Danezis, PET 2002) |
    | `min_entropy_bits` | −log2 of the highest probability |
    | `guessing_entropy` | expected number of guesses, likeliest first (Massey, ISIT 1994) |
    | `anonymity_set` | candidates that the posterior does not tell from the target, itself included |
    """
    # What is left for those unnamed is of the exact ones: many roundings add up to another digit.
    named = posterior.withColumn("exact", F.col("probability")).withColumn(
        "probability", F.round("probability", DIGITS)
    )
    shapes = kept(_shapes(named, trials.join(targets, KEYS, "left_semi")))
    return _of_shape(named, shapes).join(_of_targets(named, targets, shapes), KEYS)


def _shapes(named: DataFrame, trials: DataFrame) -> DataFrame:
    """Add: `unnamed` candidates, who have the probability `rest` each, and the `top` probability."""
    sums = named.groupBy(*KEYS).agg(
        F.count("*").alias("k"), F.sum("exact").alias("mass"), F.max("probability").alias("most")
    )
    unnamed = F.col("candidates") - F.col("k")
    left = F.greatest(F.lit(0.0), 1 - F.col("mass"))
    return (
        trials.join(sums, KEYS, "left")
        .fillna({"k": 0, "mass": 0.0, "most": 0.0})
        .withColumn("unnamed", unnamed)
        .withColumn("rest", F.when(unnamed > 0, F.round(left / unnamed, DIGITS)).otherwise(0.0))
        .withColumn("top", F.greatest("most", "rest"))
        .drop("k", "mass", "most")
    )


def _of_shape(named: DataFrame, shapes: DataFrame) -> DataFrame:
    """Measures of the posterior alone."""
    best_first = Window.partitionBy(*KEYS).orderBy(F.col("probability").desc(), "candidate")
    p, rest, unnamed, h = (F.col(name) for name in ("probability", "rest", "unnamed", "candidates"))
    behind = p < rest  # stands after all the unnamed
    sums = (
        named.withColumn("place", F.row_number().over(best_first))
        .join(shapes, KEYS)
        .withColumn("guesses", p * (F.col("place") + F.when(behind, unnamed).otherwise(0)))
        .groupBy(*KEYS)
        .agg(
            F.sum(_surprise(p)).alias("bits"),
            F.sum("guesses").alias("guesses"),
            F.count_if(~behind).alias("before"),
            F.count_if(p == F.col("top")).alias("tops"),
        )
    )
    of_rest = unnamed * rest * (F.col("before") + (unnamed + 1) / 2)
    tops = F.col("tops") + F.when(rest == F.col("top"), unnamed).otherwise(0)
    return (
        shapes.join(sums, KEYS, "left")
        .fillna({"bits": 0.0, "guesses": 0.0, "before": 0, "tops": 0})
        .withColumn("entropy_bits", F.col("bits") + unnamed * _surprise(rest))
        .withColumn("degree", F.when(h > 1, F.col("entropy_bits") / F.log2(h)).otherwise(1.0))
        .withColumn("effective_set", F.pow(F.lit(2.0), "entropy_bits"))
        .withColumn("min_entropy_bits", -F.log2("top"))
        .withColumn("guessing_entropy", F.col("guesses") + of_rest)
        .withColumn("named", (tops == 1).cast("int"))
        .drop("bits", "guesses", "before", "tops", "unnamed", "rest", "top")
    )


def _of_targets(named: DataFrame, targets: DataFrame, shapes: DataFrame) -> DataFrame:
    """Measures of where the targets stand."""
    own = named.select(*KEYS, F.col("candidate").alias("target"), F.col("probability").alias("own"))
    rest, unnamed = F.col("rest"), F.col("unnamed")
    standing = (
        targets.join(shapes, KEYS)
        .join(own, [*KEYS, "target"], "left")
        .withColumn("own", F.coalesce("own", "rest"))
        .join(named.select(*KEYS, "probability"), KEYS, "left")
        .groupBy(*KEYS, "target", "own", "rest", "unnamed")
        .agg(
            F.count_if(F.col("probability") > F.col("own")).alias("above"),
            F.count_if(F.col("probability") == F.col("own")).alias("equal"),
        )
        .withColumn("above", F.col("above") + F.when(rest > F.col("own"), unnamed).otherwise(0))
        .withColumn("equal", F.col("equal") + F.when(rest == F.col("own"), unnamed).otherwise(0))
    )
    gains = _gains(shapes)
    above = gains.select(
        F.col("place").alias("above"), F.col("inverse").alias("i0"), F.col("gain").alias("g0")
    )
    below = gains.select(
        F.col("place").alias("below"), F.col("inverse").alias("i1"), F.col("gain").alias("g1")
    )
    ideal = gains.select(F.col("place").alias("targets"), F.col("gain").alias("ideal"))
    equal = F.col("equal")
    return (
        standing.withColumn("below", F.col("above") + equal)
        .join(F.broadcast(above), "above")
        .join(F.broadcast(below), "below")
        .groupBy(*KEYS)
        .agg(
            F.count("*").alias("targets"),
            F.sum(F.when(F.col("above") == 0, 1 / equal).otherwise(0.0)).alias("hit"),
            F.sum("own").alias("belief"),
            F.max(((F.col("above") == 0) & (equal == 1)).cast("int")).alias("right"),
            F.avg((F.col("i1") - F.col("i0")) / equal).alias("inverse_rank"),
            F.sum((F.col("g1") - F.col("g0")) / equal).alias("gained"),
            F.min(equal).alias("anonymity_set"),
        )
        .join(F.broadcast(ideal), "targets")
        .withColumn("ndcg", F.col("gained") / F.col("ideal"))
        .drop("gained", "ideal", "targets")
    )


def _gains(shapes: DataFrame) -> DataFrame:
    """Return, for each place from 0 to the number of candidates, Σ 1/i and Σ 1/log2(1 + i) up to it."""
    most = shapes.agg(F.max("candidates")).first()
    ends = 1 + int((most and most[0]) or 0)
    places = shapes.sparkSession.range(0, ends, 1, 1).withColumnRenamed("id", "place")
    so_far = Window.orderBy("place").rowsBetween(Window.unboundedPreceding, Window.currentRow)
    place = F.col("place")
    return places.select(
        "place",
        F.sum(F.when(place > 0, 1 / place).otherwise(0.0)).over(so_far).alias("inverse"),
        F.sum(F.when(place > 0, 1 / F.log2(1 + place)).otherwise(0.0)).over(so_far).alias("gain"),
    )


def _surprise(p: Column) -> Column:
    return F.when(p > 0, -p * F.log2(p)).otherwise(0.0)
