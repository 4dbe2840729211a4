"""Shares: what a party learns besides the three definitions of VB §3, each as a part of a whole.

Only what is honest users' counts: their subscriptions, their publications, what comes to them.
"""

from __future__ import annotations

from functools import reduce

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from hushcast_analytics.central.party_sight import OF, PartySight


def shares(sight: PartySight) -> DataFrame:
    """Return (run, party, share, part, whole), one row for each of `party_results.SHARES` with a whole."""
    asked, published = sight.requests, sight.publications
    topics, messages = _linked(asked, "topic"), _linked(published, "message")
    counted = [
        _row(name, table, F.count("*"), F.count_if(part))
        for name, table, part in (
            ("subscriptions_named", asked, F.col("named")),
            ("publications_named", published, F.col("named")),
            ("bodies_read", published, _read()),
            ("deliveries_tied", sight.deliveries, _tied()),
        )
    ]
    paired = [
        _row(name, table, F.sum("whole"), F.sum("part"))
        for name, table in (("subscriptions_linked", topics), ("publications_linked", messages))
    ]
    return reduce(DataFrame.unionByName, [*counted, *paired]).where("whole > 0")


def _row(name: str, table: DataFrame, whole: Column, part: Column) -> DataFrame:
    found = table.groupBy(*OF).agg(whole.alias("whole"), part.alias("part"))
    doubles = (F.col(column).cast("double").alias(column) for column in ("part", "whole"))
    return found.select(*OF, F.lit(name).alias("share"), *doubles)


def _read() -> Column:
    """Tell of a publication whether a party reads it.

    Who has the server's key opens what passes: down to the body, or what is sealed to a topic that it knows.
    """
    passed = F.col("seen") | (F.col("deliveries") & F.col("went"))
    return F.col("opens") & passed & (F.col("plain") | F.col("knows"))


def _tied() -> Column:
    by_id = F.col("server") & F.col("at_server") & F.col("by_id")
    by_payload = F.col("publications") & F.col("deliveries") & F.col("at_deliveries") & F.col("by_payload")
    return by_id | by_payload


def _linked(table: DataFrame, of: str) -> DataFrame:
    """Return (run, party, owner, whole, part): pairs of what a user has, and those seen under one name."""
    who = F.coalesce("user", "pseudonym")
    under = (
        table.groupBy(*OF, "owner", who.alias("who"))
        .agg(F.collect_set(of).alias("all"), F.collect_set(F.when(F.col("seen"), F.col(of))).alias("seen"))
        .withColumn("pairs", F.expr(_PAIRS))
    )
    n = F.size(F.array_distinct(F.flatten(F.collect_list("all"))))
    return under.groupBy(*OF, "owner").agg(
        (n * (n - 1) / 2).alias("whole"),
        F.size(F.array_distinct(F.flatten(F.collect_list("pairs")))).alias("part"),
    )


_PAIRS = (
    "flatten(transform(seen, a -> transform(filter(seen, b -> b > a), b -> named_struct('a', a, 'b', b))))"
)
