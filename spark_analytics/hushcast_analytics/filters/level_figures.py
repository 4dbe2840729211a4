"""Levels and costs as a few figures, none of which grows with the filters."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from hushcast_analytics.filters.distinct_filters import FILTER, DistinctFilters
from hushcast_analytics.filters.levels import COLUMNS
from hushcast_protocol.brokers.anonymity_conditions import AnonymityCondition

Row = dict[str, Any]
QUANTILES = (0.1, 0.25, 0.5, 0.75, 0.9, 0.99)
AT_LEAST = tuple(digit * 10**power for power in range(6) for digit in (1, 2, 5))
"""Levels for which it is told how many filters have them or more."""


def distribution(levels: DataFrame) -> list[Row]:
    """Return a row for each condition: mean, greatest and quantiles of the levels, and who has `at_least`."""
    found = levels.agg(
        *(F.avg(name).alias(f"mean {name}") for name in COLUMNS.values()),
        *(F.max(name).alias(f"most {name}") for name in COLUMNS.values()),
        *(_quantiles(name).alias(f"at {name}") for name in COLUMNS.values()),
        *(_share(F.col(name) >= x).alias(f"{x} {name}") for name in COLUMNS.values() for x in AT_LEAST),
    ).first()
    assert found is not None
    return [
        {
            "condition": condition.value,
            "mean": found[f"mean {name}"],
            "most": found[f"most {name}"],
            "quantiles": dict(zip(map(str, QUANTILES), found[f"at {name}"], strict=True)),
            "at_least": {str(x): found[f"{x} {name}"] for x in AT_LEAST if found[f"{x} {name}"]},
        }
        for condition, name in COLUMNS.items()
    ]


def reached(
    held: DistinctFilters, levels: DataFrame, asked: tuple[Sequence[AnonymityCondition], Sequence[int]]
) -> list[Row]:
    """Return for each condition and k the share of filters that reach k, and of subscribers whose all do."""
    names = [COLUMNS[condition] for condition in asked[0]]
    of_filters = levels.agg(*_shares(names, asked[1])).first()
    behind = held.filters.select(*FILTER, F.explode("sources.code").alias("code"))
    least = behind.join(levels.select(*FILTER, *names), FILTER).groupBy("code")
    of_sources = (
        least.agg(*(F.min(name).alias(name) for name in names)).agg(*_shares(names, asked[1])).first()
    )
    assert of_filters is not None
    assert of_sources is not None
    return [
        {
            "condition": condition.value,
            "k": k,
            "filters": of_filters[f"{name} {k}"],
            "subscribers": of_sources[f"{name} {k}"],
        }
        for condition, name in zip(asked[0], names, strict=True)
        for k in asked[1]
    ]


def cost(rows: DataFrame) -> list[Row]:
    """Return a row for each condition and k: what generalising costs those that do not have k."""
    lacks, found = ~F.col("held"), ~F.col("held") & F.col("found")
    added = F.when(found, F.col("added"))
    times = F.when(found, 1 + F.col("added") / F.col("volume"))
    grouped = rows.groupBy("condition", "k").agg(
        F.count("*").alias("sampled"),
        F.avg(F.col("held").cast("double")).alias("had"),
        _share(found).alias("generalised"),
        _share(lacks & ~F.col("found")).alias("nothing"),
        F.avg(added).alias("added_mean"),
        F.percentile(added, 0.5).alias("added_median"),
        F.percentile(added, 0.9).alias("added_p90"),
        F.percentile(times, 0.5).alias("times_median"),
    )
    order = {condition.value: at for at, condition in enumerate(AnonymityCondition)}
    told = [row.asDict() for row in grouped.collect()]
    return sorted(told, key=lambda row: (order[row["condition"]], row["k"]))


def _quantiles(name: str) -> Column:
    """Return the exact `QUANTILES` of a column of levels, of which Spark keeps how often each occurs."""
    at = ", ".join(map(str, QUANTILES))
    found = F.expr(f"percentile_disc(array({at})) within group (order by `{name}`)")
    return found.cast("array<long>")


def _shares(names: Sequence[str], ks: Sequence[int]) -> list[Column]:
    return [_share(F.col(name) >= k).alias(f"{name} {k}") for name in names for k in ks]


def _share(holds: Column) -> Column:
    return F.avg(holds.cast("double"))
