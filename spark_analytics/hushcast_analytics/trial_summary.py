"""The summary: trials' measures as one figure each, with an interval, over all runs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pyspark.sql import DataFrame, GroupedData
from pyspark.sql import functions as F

from hushcast_protocol.base.intervals import Z, wilson

MEANS = (
    "candidates",
    "bound",
    "inverse_rank",
    "ndcg",
    "entropy_bits",
    "degree",
    "effective_set",
    "min_entropy_bits",
    "guessing_entropy",
)


BY = ["attack", "colluding"]


def summarised(trials: DataFrame) -> list[dict[str, Any]]:
    """Return one row for each `attack` and share `colluding`, as `pooled` does."""
    return pooled(runs_of(trials))


def runs_of(trials: DataFrame) -> DataFrame:
    """Return one row for each `attack`, share `colluding` and run: what `pooled` needs of its trials.

    Sums over the run's `n` trials, and the smallest `anonymity_set`.
    """
    sums = {"hit": "hits", "belief": "beliefs", "belief * belief": "squares"}
    sums |= {name: name for name in (*MEANS, "named", "right")}
    return _summed(trials.groupBy(*BY, "run"), "n", sums)


def pooled(runs: DataFrame) -> list[dict[str, Any]]:
    """Return one row for each `attack` and share `colluding`: means over trials, `accuracy` with an interval.

    The 95 % interval is Wilson's for so many independent trials as the runs are worth: trials of one run
    share their colluders, so where runs differ by more than chance, they count for less (n over the design
    effect, the variance of the runs' means over that of independent trials): `effective`. `precision` is how
    often the one named was right, `recall` how often it was named and right; `anonymity_set` is the smallest
    of all trials, and `belief` the mean posterior probability of the true one, with `belief_low` and
    `belief_high`.
    """
    sums = {name: name for name in ("n", "hits", "beliefs", "squares", *MEANS, "named", "right")}
    # Σ(x − n·m)² over runs, for any mean m, from sums of products.
    sums |= {
        "n * n": "nn",
        "hits * hits": "hh",
        "hits * n": "hn",
        "beliefs * beliefs": "bb",
        "beliefs * n": "bn",
    }
    found = _summed(runs.groupBy(*BY), "runs", sums)
    return [_figures(row.asDict()) for row in found.orderBy(*BY).collect()]


def _summed(groups: GroupedData, count: str, sums: Mapping[str, str]) -> DataFrame:
    columns = [f"count(*) {count}", *(f"sum({of}) {name}" for of, name in sums.items())]
    return groups.agg(*map(F.expr, (*columns, "min(anonymity_set) anonymity_set")))


def _figures(row: dict[str, Any]) -> dict[str, Any]:
    n, runs = row["n"], row["runs"]
    accuracy, belief = row["hits"] / n, row["beliefs"] / n
    between = variance_of_mean(runs, n, accuracy, row["hh"], row["hn"], row["nn"])
    effective = float(n)
    if runs > 1 and 0 < accuracy < 1:
        effective = n / max(1.0, between * n / (accuracy * (1 - accuracy)))
    low, high = wilson(accuracy, effective)
    variance = variance_of_mean(runs, n, belief, row["bb"], row["bn"], row["nn"])
    if runs == 1:
        variance = max(0.0, row["squares"] / n - belief**2) / n
    width = Z * variance**0.5 if n > 1 else 1.0  # of one trial nothing is known of others
    return {
        **{name: row[name] for name in BY},
        "trials": n,
        "effective": effective,
        "accuracy": accuracy,
        "accuracy_low": low,
        "accuracy_high": high,
        **{name: row[name] / n for name in MEANS},
        "precision": row["right"] / row["named"] if row["named"] else None,
        "recall": row["right"] / n,
        "anonymity_set": row["anonymity_set"],
        "belief": belief,
        "belief_low": max(0.0, belief - width),
        "belief_high": min(1.0, belief + width),
    }


def variance_of_mean(runs: int, n: int, mean: float, squares: float, cross: float, sizes: float) -> float:
    """Variance of a mean over trials, from how the runs' sums scatter."""
    scatter = max(0.0, squares - 2 * mean * cross + mean * mean * sizes)
    return scatter * runs / (runs - 1) / n**2 if runs > 1 else 0.0
