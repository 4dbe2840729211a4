"""Measures of anonymity: how much each trial's posterior says about the true one.

Of h candidates those without a row share the rest of the probability equally (`posteriors`), and candidates
with one probability stand in any order: measures of rank are means over these orders.

Columns are written in SQL: each of them is one call of Java, where one put together here is a dozen.
"""

from __future__ import annotations

from pyspark.sql import DataFrame, GroupedData
from pyspark.sql import functions as F

from hushcast_analytics.checkpoints import kept, small

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
    rounded = f"round(probability, {DIGITS}) probability"
    named = posterior.selectExpr(*KEYS, "candidate", "probability exact", rounded)
    shapes = kept(_shapes(named, trials.join(targets, KEYS, "left_semi")))
    return _of_shape(named, shapes).join(_of_targets(named, targets, shapes), KEYS)


def _shapes(named: DataFrame, trials: DataFrame) -> DataFrame:
    """Add: `unnamed` candidates, who have the probability `rest` each, and the `top` probability."""
    sums = _summed(named.groupBy(*KEYS), "count(*) k", "sum(exact) mass", "max(probability) most")
    common = (*KEYS, "candidates", "bound")
    left = trials.join(sums, KEYS, "left").selectExpr(
        *common,
        "candidates - nvl(k, 0) unnamed",
        "greatest(0D, 1 - nvl(mass, 0D)) left",
        "nvl(most, 0D) most",
    )
    rest = f"if(unnamed > 0, round(left / unnamed, {DIGITS}), 0D)"
    return left.selectExpr(*common, "unnamed", f"{rest} rest", f"greatest(most, {rest}) top")


def _of_shape(named: DataFrame, shapes: DataFrame) -> DataFrame:
    """Measures of the posterior alone."""
    best_first = f"partition by {', '.join(KEYS)} order by probability desc, candidate"
    placed = named.selectExpr(*KEYS, "probability p", f"row_number() over ({best_first}) place")
    sums = _summed(
        placed.join(shapes, KEYS).groupBy(*KEYS),
        f"sum({_surprise('p')}) bits",
        "sum(p * (place + if(p < rest, unnamed, 0))) guesses",
        "count_if(p >= rest) before",  # others stand after all the unnamed
        "count_if(p = top) tops",
    )
    whole = shapes.join(sums, KEYS, "left").selectExpr(
        *(*KEYS, "candidates", "bound", "top"),
        f"nvl(bits, 0D) + unnamed * {_surprise('rest')} entropy_bits",
        "nvl(guesses, 0D) + unnamed * rest * (nvl(before, 0) + (unnamed + 1) / 2) guessing_entropy",
        "nvl(tops, 0) + if(rest = top, unnamed, 0) tops",
    )
    return whole.selectExpr(
        *(*KEYS, "candidates", "bound", "entropy_bits"),
        "if(candidates > 1, entropy_bits / log2(candidates), 1D) degree",
        "pow(2D, entropy_bits) effective_set",
        "-log2(top) min_entropy_bits",
        "guessing_entropy",
        "int(tops = 1) named",
    )


def _of_targets(named: DataFrame, targets: DataFrame, shapes: DataFrame) -> DataFrame:
    """Measures of where the targets stand."""
    of_target = (*KEYS, "target")
    standing = (
        targets.join(shapes, KEYS)
        .join(named.selectExpr(*KEYS, "candidate target", "probability own"), [*of_target], "left")
        .selectExpr(*of_target, "nvl(own, rest) own", "rest", "unnamed")
        .join(named.select(*KEYS, "probability"), KEYS, "left")
        .groupBy(*of_target, "own", "rest", "unnamed")
    )
    beside = _summed(standing, "count_if(probability > own) above", "count_if(probability = own) equal")
    places = beside.selectExpr(
        *KEYS, "own", "above + if(rest > own, unnamed, 0) above", "equal + if(rest = own, unnamed, 0) equal"
    )
    gains = kept(_gains(shapes))
    ranked = (
        places.selectExpr("*", "above + equal below")
        .join(small(gains.toDF("above", "i0", "g0")), "above")
        .join(small(gains.toDF("below", "i1", "g1")), "below")
        .groupBy(*KEYS)
    )
    found = _summed(
        ranked,
        "count(*) targets",
        "sum(if(above = 0, 1 / equal, 0D)) hit",
        "sum(own) belief",
        "max(int(above = 0 and equal = 1)) right",
        "avg((i1 - i0) / equal) inverse_rank",
        "min(equal) anonymity_set",
        "sum((g1 - g0) / equal) gained",
    )
    ideal = gains.selectExpr("place targets", "gain ideal")
    return found.join(small(ideal), "targets").selectExpr(
        *(*KEYS, "hit", "belief", "right", "inverse_rank", "anonymity_set"), "gained / ideal ndcg"
    )


def _gains(shapes: DataFrame) -> DataFrame:
    """Return, for each `place` from 0 to the number of candidates, Σ 1/i and Σ 1/log2(1 + i) up to it."""
    places = shapes.selectExpr("max(candidates) most").selectExpr("explode(sequence(0L, most)) place")
    so_far = "over (order by place rows between unbounded preceding and current row)"
    return places.selectExpr(
        "place",
        f"sum(if(place > 0, 1 / place, 0D)) {so_far} inverse",
        f"sum(if(place > 0, 1 / log2(1 + place), 0D)) {so_far} gain",
    )


def _summed(groups: GroupedData, *columns: str) -> DataFrame:
    return groups.agg(*map(F.expr, columns))


def _surprise(p: str) -> str:
    return f"if({p} > 0, -{p} * log2({p}), 0D)"
