"""Messages: what came to clients, by the id that it had on its way down, and on which topic, on Spark."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from hushcast_analytics.trace_files import Traces

_OF_CLIENT = ["run", "node", "inside"]


def carried(traces: Traces) -> DataFrame:
    """Return (run, node, message, topic): each delivery, `message` the id that brokers saw."""
    outside = traces.observations.where("kind = 'opened'").select(*_OF_CLIENT, "message")
    came = traces.truths.where("kind = 'delivered'").select(
        "run", "node", F.col("message").alias("inside"), "topic"
    )
    seen = F.coalesce("message", "inside").alias("message")
    return came.join(outside, _OF_CLIENT, "left").select("run", "node", seen, "topic")


def sent_to_clients(traces: Traces) -> DataFrame:
    """Return (run, node, message, tokens, client): what an edge broker sent a daemon, `client`."""
    attached = traces.truths.where("kind = 'attached'").select(
        "run", F.col("node").alias("client"), F.col("client").alias("next")
    )
    sent = traces.observations.where("kind = 'sent'").select("run", "node", "message", "tokens", "next")
    return sent.join(attached.distinct(), ["run", "next"]).drop("next")
