"""Attacks that link one subscriber's topics to each other; they name topics, not subscribers."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from hushcast_analytics.adversaries import AdversaryView
from hushcast_analytics.attacks.tree_evidence import seats
from hushcast_analytics.posteriors import shared_by

CLOSE = 60.0  # seconds: two installations of one moment take about so long to reach all relays over Tor


def renewal_times(view: AdversaryView) -> DataFrame:
    """Link topics whose trees are installed at the same times.

    For each epoch in which colluders first saw an instruction for two topics, the votes fall off with the
    time between them: half of them at `CLOSE`.
    """
    times = _first_seen(view)
    other = times.select("run", "epoch", F.col("trial").alias("candidate"), F.col("time").alias("then"))
    pairs = times.join(other, ["run", "epoch"]).where("trial != candidate")
    votes = pairs.groupBy("run", "trial", "candidate").agg(
        F.avg(1 / (1 + F.pow((F.col("time") - F.col("then")) / CLOSE, 2))).alias("votes")
    )
    return shared_by(votes, view)


def _first_seen(view: AdversaryView) -> DataFrame:
    installed = view.observations.where("kind = 'installed'").select("run", "node", "lease", "time")
    return (
        seats(view)
        .join(installed, ["run", "node", "lease"])
        .groupBy("run", "trial", "epoch")
        .agg(F.min("time").alias("time"))
    )


def shared_mailbox(view: AdversaryView) -> DataFrame:
    """Link topics whose messages go to one address that no roster lists: a shared mailbox."""
    relays = view.rosters.select("run", F.col("relay").alias("next")).distinct()
    boxes = seats(view).select("run", "trial", "next").distinct().join(relays, ["run", "next"], "left_anti")
    other = boxes.select("run", "next", F.col("trial").alias("candidate"))
    pairs = boxes.join(other, ["run", "next"]).where("trial != candidate")
    votes = pairs.groupBy("run", "trial", "candidate").agg(F.countDistinct("next").alias("votes"))
    return shared_by(votes, view)
