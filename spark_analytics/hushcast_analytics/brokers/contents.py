"""Contents: of which messages each observer knows the topic, on Spark."""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from hushcast_analytics.brokers.colluder_draws import ColluderDraws
from hushcast_analytics.brokers.layer_attacks import BROKERS as BY_BROKERS
from hushcast_analytics.brokers.observers import BROKERS, CLIENTS, ROOT, ROOT_AND_BROKERS, TOGETHER
from hushcast_analytics.brokers.traffic_shares import LABEL
from hushcast_analytics.checkpoints import small

_MESSAGE = ["copy", "message"]


def contents(
    carried: DataFrame, sent: DataFrame, found: DataFrame, draw: ColluderDraws
) -> tuple[DataFrame, DataFrame]:
    """Return (profile, share, copy, n), the messages, and (copy, figure, hits), those each observer names.

    A message is named by its words, by the label of an item that was opened, or by who reads it. `sent` are
    the observations of all brokers, `found` what colluders opened of items; `carried` says which messages are
    on topics that colluders know (`known`), which alone count.
    """
    members = small(draw.members)
    passed = sent.select("run", "node", "message", "tokens").join(members, ["run", "node"])
    passed = passed.select("profile", *_MESSAGE, F.explode(_labels()).alias("item"))
    # A member of the community has its key, which a colluding broker has of any client of theirs.
    keyed = draw.members.where("is_client").select("copy", F.lit(True).alias("keyed")).distinct()
    opened = passed.join(_opened(found), ["copy", "item"], "left").join(small(keyed), "copy", "left")
    by_brokers = opened.select(*_MESSAGE, F.explode(_by_brokers()).alias("figure"))
    by_clients = carried.join(members, ["run", "node"]).select(*_MESSAGE, _all_of(CLIENTS, TOGETHER))
    messages = carried.groupBy("run", "message").agg(F.first("known").alias("known"))
    whole = messages.groupBy("run").agg(F.count("*").alias("n"), F.count_if("known").alias("known"))
    wholes = draw.copies.join(small(whole), "run")
    named = by_brokers.unionByName(by_clients).distinct()
    named = named.join(messages.where("known").select("message"), "message", "left_semi")
    hits = named.groupBy("copy", "figure").agg(F.count("*").cast("double").alias("hits"))
    open_to_root = wholes.where("profile not in ('community', 'group')")
    by_root = open_to_root.select(
        "copy", _all_of(ROOT, ROOT_AND_BROKERS), F.col("known").cast("double").alias("hits")
    )
    return wholes.select("profile", "share", "copy", "n"), hits.unionByName(by_root)


def _all_of(*observers: str) -> Column:
    return F.explode(F.array(*map(F.lit, observers))).alias("figure")


def _labels() -> Column:
    names = F.filter("tokens", lambda _, place: place % LABEL == 0)
    return F.when(F.col("profile").startswith("full/"), names).otherwise(F.array(F.lit("")))


def _opened(found: DataFrame) -> DataFrame:
    """Return (copy, item, alone): the items that were opened, and whether without a client."""
    alone = F.max(F.col("attack").isin(BY_BROKERS, "pairs")).alias("alone")
    return found.where("item is not null").groupBy("copy", "item").agg(alone)


def _by_brokers() -> Column:
    """Return which observers name a message that was passed on."""
    in_words = F.col("profile").isin("clear", "hash")
    with_key = F.col("profile").isin("community", "group") & F.col("keyed").isNotNull()
    alone = in_words | F.coalesce("alone", F.lit(False))
    together = in_words | with_key | F.col("alone").isNotNull()
    return F.array_compact(F.array(F.when(alone, F.lit(BROKERS)), F.when(together, F.lit(TOGETHER))))
