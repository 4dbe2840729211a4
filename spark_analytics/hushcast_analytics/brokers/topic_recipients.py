"""Whom brokers send what a known topic carries, (copy, attack, owner, element), on Spark.

Ids stay the same all the way down, whatever hides words: a client that reads a topic knows its messages, and
so does the root, which reads the words of all.
"""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from hushcast_analytics.brokers.colluder_draws import ColluderDraws
from hushcast_analytics.checkpoints import small

_MINE = ["run", "node"]


def followed(carried: DataFrame, sent: DataFrame, draw: ColluderDraws) -> DataFrame:
    """Return the clients that a colluding broker sent all that a topic carried.

    It carried what came to a colluding client (`known-topic`), which is granted to colluders from the truth;
    or what the root says (`root-tells`). Whose a client's key is judges. `carried` and `sent` are those of
    `client_messages.py`.
    """
    members = small(draw.members)
    mine = carried.join(members, _MINE).select("copy", "topic", "message").distinct()
    whole = mine.groupBy("copy", "topic").agg(F.count("*").alias("whole"))
    each = sent.select("run", "node", "client", "message").distinct()
    got = each.join(members, _MINE).join(mine, ["copy", "message"])
    wanting = got.groupBy("run", "copy", "client", "topic").count().join(whole, ["copy", "topic"])
    by_client = wanting.where(F.col("count") == F.col("whole")).select("run", "copy", "client", "topic")
    by_root = _by_root(carried, each).join(members, _MINE).select("run", "copy", "client", "topic")
    return _answers(by_client, "known-topic", draw).unionByName(_answers(by_root, "root-tells", draw))


def _by_root(carried: DataFrame, sent: DataFrame) -> DataFrame:
    """Return (run, node, client, topic): the clients that a broker sent all that a topic carried."""
    all_of = carried.select("run", "topic", "message").distinct()
    whole = all_of.groupBy("run", "topic").agg(F.count("*").alias("whole"))
    got = sent.join(all_of, ["run", "message"]).groupBy("run", "node", "client", "topic").count()
    return got.join(whole, ["run", "topic"]).where(F.col("count") == F.col("whole"))


def _answers(named: DataFrame, attack: str, draw: ColluderDraws) -> DataFrame:
    asked = draw.questions.select("run", F.col("node").alias("client"), "owner", "element", "topic")
    found = named.join(asked, ["run", "client", "topic"])
    return found.select("copy", F.lit(attack).alias("attack"), "owner", "element")
