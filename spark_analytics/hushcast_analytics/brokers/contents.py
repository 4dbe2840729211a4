"""Contents: of which messages each observer knows the topic, on Spark."""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from hushcast_analytics.brokers.drawn import Drawn
from hushcast_analytics.brokers.observers import BROKERS, CLIENTS, ROOT, ROOT_AND_BROKERS, TOGETHER
from hushcast_analytics.brokers.playing import BROKERS as BY_BROKERS
from hushcast_analytics.brokers.shares import LABEL

_MESSAGE = ["copy", "message"]
NAMED = (CLIENTS, BROKERS, TOGETHER, ROOT, ROOT_AND_BROKERS)
"""Observers who name any; links show no contents."""


def contents(carried: DataFrame, sent: DataFrame, found: DataFrame, draw: Drawn) -> DataFrame:
    """Return (profile, share, copy, message) of all messages, with a column for each of `NAMED`, 1 or 0.

    A message is named by its words, by the label of an item that was opened, or by who reads it. `sent` are
    the observations of all brokers, `found` what colluders opened of items; `carried` says which messages are
    on topics that colluders know (`known`), which alone count.
    """
    members = F.broadcast(draw.members)
    passed = sent.select("run", "node", "message", "tokens").join(members, ["run", "node"])
    passed = passed.select("profile", *_MESSAGE, F.explode(_labels()).alias("item"))
    # A member of the community has its key, which a colluding broker has of any client of theirs.
    keyed = draw.members.where("is_client").select("copy", F.lit(True).alias("keyed")).distinct()
    opened = passed.join(_opened(found), ["copy", "item"], "left").join(F.broadcast(keyed), "copy", "left")
    by_brokers = opened.select(*_MESSAGE, F.lit(0.0).alias(CLIENTS), *_by_brokers())
    one = F.lit(1.0)
    by_clients = carried.join(members, ["run", "node"]).select(
        *_MESSAGE, one.alias(CLIENTS), F.lit(0.0).alias(BROKERS), one.alias(TOGETHER)
    )
    ours = (CLIENTS, BROKERS, TOGETHER)
    named = (
        by_brokers.unionByName(by_clients).groupBy(*_MESSAGE).agg(*(F.max(who).alias(who) for who in ours))
    )
    messages = carried.select("run", "message", "known").distinct().join(F.broadcast(draw.copies), "run")
    judged = messages.join(named, _MESSAGE, "left").fillna(0.0, list(ours))
    is_known = F.col("known").cast("double")
    by_root = F.when(F.col("profile").isin("community", "group"), 0.0).otherwise(is_known)
    return judged.select(
        *("profile", "share", *_MESSAGE),
        *((is_known * F.col(who)).alias(who) for who in ours),
        *(by_root.alias(who) for who in (ROOT, ROOT_AND_BROKERS)),
    )


def _labels() -> Column:
    names = F.filter("tokens", lambda _, place: place % LABEL == 0)
    return F.when(F.col("profile").startswith("full/"), names).otherwise(F.array(F.lit("")))


def _opened(found: DataFrame) -> DataFrame:
    """Return (copy, item, alone): the items that were opened, and whether without a client."""
    alone = F.max(F.col("attack").isin(BY_BROKERS, "pairs")).alias("alone")
    return found.where("item is not null").groupBy("copy", "item").agg(alone)


def _by_brokers() -> tuple[Column, Column]:
    in_words = F.col("profile").isin("clear", "hash")
    with_key = (F.col("profile") == "community") & F.col("keyed").isNotNull()
    alone = in_words | F.coalesce("alone", F.lit(False))
    together = in_words | with_key | F.col("alone").isNotNull()
    return alone.cast("double").alias(BROKERS), together.cast("double").alias(TOGETHER)
