"""Shares: topics by how many of all messages a broker sends, beside how popular topics are, on Spark.

Popularity is public, and of another time: it is counted in one half of the messages, what is sent in the
other half.
"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from hushcast_analytics.adversaries import is_known
from hushcast_analytics.brokers.colluder_draws import ColluderDraws
from hushcast_analytics.checkpoints import kept, small
from hushcast_analytics.profile_runs import AnalysisPlan

LABEL = 3  # tokens of a label under layers, the first of which is its name
_OF_ROW = ["run", "node", "client", "attack", "row"]


def by_shares(carried: DataFrame, sent: DataFrame, draw: ColluderDraws, wanted: AnalysisPlan) -> DataFrame:
    """Return (copy, attack, owner, element, weight): interests that counts name, equals in part.

    `traffic-shares` counts for each row of a broker's table: what is under one label, or one set of words,
    as far as the broker sees which are the same. `link-shares` counts what goes over the link to a client.
    `blind` names each topic alike, for all clients that either counts for. `carried` and `sent` are those of
    `messages`.
    """
    popular = _popularity(carried.select("run", "message", "topic").distinct(), wanted)
    counted = sent.where(~_is_past()).join(draw.members.select("run", "profile").distinct(), "run")
    link = F.array(F.struct(F.lit("link-shares").alias("attack"), F.lit("").alias("row")))
    rows = F.transform(
        _rows(), lambda row: F.struct(F.lit("traffic-shares").alias("attack"), row.alias("row"))
    )
    each = counted.select("run", "node", "client", "message", F.explode(F.concat(link, rows)).alias("each"))
    named = kept(_named(each.select("run", "node", "client", "message", "each.*"), popular))
    asked = draw.questions.select("run", F.col("node").alias("client"), "owner", "element", "topic")
    found = named.join(asked, ["run", "client", "topic"])
    chance = named.where("attack = 'link-shares'").select("run", "node", "client", "chance").distinct()
    blind = chance.join(asked, ["run", "client"]).withColumn("weight", F.col("chance"))
    answers = found.unionByName(blind.withColumn("attack", F.lit("blind")), allowMissingColumns=True)
    of_brokers = answers.join(small(draw.members.select("run", "copy", "node")), ["run", "node"])
    return of_brokers.select("copy", "attack", "owner", "element", "weight")


def _is_past() -> Column:
    return F.pmod(F.xxhash64("message"), F.lit(2)) == 0


def _popularity(messages: DataFrame, wanted: AnalysisPlan) -> DataFrame:
    """Return (run, topic, share, messages, chance) of known topics; `messages` are those to be counted."""
    known = is_known(wanted.topics_known, wanted.seed, "topic")
    past = F.count_if(_is_past()).alias("past")
    each = messages.groupBy("run", "topic").agg(past, F.count_if(~_is_past()).alias("now"))
    over = Window.partitionBy("run")
    topics = F.count("*").over(over)
    # Half a message more for each topic: one that was not heard of is rare, and not impossible.
    share = (F.col("past") + 0.5) / (F.sum("past").over(over) + topics / 2)
    return (
        each.withColumn("share", F.least(share, F.lit(1 - 1e-9)))
        .withColumn("messages", F.sum("now").over(over))
        .where(known)
        .withColumn("chance", 1 / F.count("*").over(over))
        .select("run", "topic", "share", "messages", "chance")
    )


def _rows() -> Column:
    names = F.filter("tokens", lambda _, place: place % LABEL == 0)
    words = F.array(F.concat_ws(" ", "tokens"))
    return (
        F.when(F.col("profile").startswith("full/"), names)
        .when(F.col("profile").isin("community", "group"), F.array(F.lit("")))  # they are sealed
        .otherwise(words)
    )


def _named(counted: DataFrame, popular: DataFrame) -> DataFrame:
    """Return (run, node, client, topic, attack, weight, chance): the likeliest topics of each row."""
    counts = counted.groupBy(*_OF_ROW).agg(F.countDistinct("message").alias("count"))
    log = F.col("count") * F.log("share") + (F.col("messages") - F.col("count")) * F.log1p(-F.col("share"))
    over = Window.partitionBy(*_OF_ROW)
    each = counts.join(small(popular), "run").withColumn("likely", F.round(log, 9))
    best = each.withColumn("best", F.max("likely").over(over)).where("likely = best")
    weight = (1 / F.count("*").over(over)).alias("weight")
    return best.select("run", "node", "client", "topic", "attack", weight, "chance")
