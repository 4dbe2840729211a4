"""Followed: whom brokers send what a known topic carries, (copy, attack, owner, element), on Spark.

Ids stay the same all the way down, whatever hides words: a client that reads a topic knows its messages.
"""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import StringType

from hushcast_analytics.brokers.drawn import Drawn
from hushcast_analytics.brokers.playing import read_item
from hushcast_analytics.reading import Traces
from hushcast_protocol.base.errors import DecodeError


def followed(traces: Traces, draw: Drawn) -> DataFrame:
    """Return the clients that a colluding broker sent all that a topic carried to a colluding client.

    What came to their own clients is granted to colluders from the truth.
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
    clients = _clients(traces).join(draw.questions, mine)
    named = wanting.join(clients, ["run", "next", "topic"])
    return named.select("copy", F.lit("known-topic").alias("attack"), "owner", "element")


def _clients(traces: Traces) -> DataFrame:
    """Return (run, next, node): whose key at an edge broker it is, to judge by.

    It asks by a name, or under layers by an item that has one.
    """
    asked = traces.observations.where("kind = 'asked'").select("run", "client", "name", "filter").distinct()
    by = asked.select(
        "run", F.col("client").alias("next"), F.explode(F.array("name", names("filter"))).alias("name")
    )
    truths = traces.truths.where("kind in ('subscribed', 'wanted')")
    named = truths.select("run", "node", F.coalesce("item", "mailbox").alias("name"))
    return by.join(named, ["run", "name"]).select("run", "next", "node").distinct()


def _name(shown: str) -> str | None:
    try:
        return read_item(bytes.fromhex(shown)).name.hex()
    except (DecodeError, ValueError):
        return None  # it is none under layers


names = F.udf(_name, StringType(), useArrow=True)
"""The column of the names of items, as they went over a link; null for what is none."""
