"""Attacks that link one subscriber's topics to each other; they name topics, not subscribers."""

from __future__ import annotations

from collections.abc import Callable

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from hushcast_analytics.adversaries import AdversaryView
from hushcast_analytics.attacks.tree_evidence import seats
from hushcast_analytics.posteriors import shared_by

FOLLOWED_WITHIN = 48  # epochs in which a device begins what another one of its person began; a test compares
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


def second_device(
    view: AdversaryView, within: int = FOLLOWED_WITHIN, is_first: Callable[[str], Column] | None = None
) -> DataFrame:
    """Link subscriptions of which one began when a second device of the first one's person would have.

    A device tells of what it began at a drawn moment of the next epoch, and another one begins it at a moment
    drawn from `within` epochs after that. So of the epochs between the beginnings each is as likely but the
    first and the last, which are half as likely. Which of two is a first device's is unknown, unless
    `is_first` tells that of a column of subscriptions.
    """
    begun = seats(view).groupBy("run", "trial").agg(F.min("epoch").alias("epoch"))
    other = begun.select("run", F.col("trial").alias("candidate"), F.col("epoch").alias("then"))
    pairs = begun.join(other, "run").where("trial != candidate")
    between = F.abs(F.col("epoch") - F.col("then"))
    if is_first is not None:
        pairs = pairs.where(is_first("trial") != is_first("candidate"))
        between = (F.col("then") - F.col("epoch")) * F.when(is_first("trial"), 1).otherwise(-1)
    is_end = between.isin(1, within + 1)
    likely = F.when(is_end, 0.5).when(between.between(2, within), 1.0).otherwise(0.0)
    return shared_by(pairs.select("run", "trial", "candidate", likely.alias("votes")), view)


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
