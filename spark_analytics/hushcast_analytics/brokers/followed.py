"""Followed: whom brokers send what a known topic carries, (copy, attack, owner, element), on Spark.

Ids stay the same all the way down, whatever hides words: a client that reads a topic knows its messages.
"""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from hushcast_analytics.brokers.drawn import Drawn
from hushcast_analytics.reading import Traces


def followed(traces: Traces, draw: Drawn) -> DataFrame:
    """Return the clients that a colluding broker sent all that a topic carried to a colluding client.

    What came to their own clients is granted to colluders from the truth; whose a client's key is judges.
    """
    mine = ["run", "node"]
    seen = traces.observations.where("kind in ('opened', 'sent')").join(F.broadcast(draw.members), mine)
    outside = seen.where("kind = 'opened'").select(
        "copy", "node", F.col("inside").alias("message"), F.col("message").alias("outside")
    )
    came = traces.truths.where("kind = 'delivered'").join(F.broadcast(draw.members), mine)
    carried = (
        came.join(outside, ["copy", "node", "message"], "left")
        .select("copy", "topic", F.coalesce("outside", "message").alias("message"))
        .distinct()
    )
    whole = carried.groupBy("copy", "topic").agg(F.count("*").alias("whole"))
    sent = seen.where("kind = 'sent'").select("run", "copy", "next", "message").distinct()
    got = sent.join(carried, ["copy", "message"]).groupBy("run", "copy", "next", "topic").count()
    wanting = got.join(whole, ["copy", "topic"]).where(F.col("count") == F.col("whole"))
    attached = traces.truths.where("kind = 'attached'").select("run", "node", F.col("client").alias("next"))
    clients = attached.distinct().join(draw.questions, mine)
    named = wanting.join(clients, ["run", "next", "topic"])
    return named.select("copy", F.lit("known-topic").alias("attack"), "owner", "element")
