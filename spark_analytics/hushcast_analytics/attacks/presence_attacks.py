"""Attacks by presence: daemons that are always up at the same times are probably one machine."""

from __future__ import annotations

import math

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from hushcast_analytics.adversaries import AdversaryView
from hushcast_analytics.attacks.tree_evidence import seats
from hushcast_analytics.posteriors import weighed_by

SLACK = 0.02  # share of epochs in which a roster and a machine disagree: it lists who was there before it


def presence(view: AdversaryView) -> DataFrame:
    """Compare a mailbox's comings and goings with the rosters (threat model, row 3).

    Colluders at the top of a tree send to the mailbox, or do not reach it, whatever for. A mailbox is a next
    hop that no roster lists. Where both happened in an epoch, it was there for a part of it, and the epoch
    counts as up.
    """
    relays = view.rosters.select("run", F.col("relay").alias("next")).distinct()
    mailboxes = (
        seats(view)
        .select("run", "trial", "node", "next")
        .distinct()
        .join(relays, ["run", "next"], "left_anti")
    )
    tried = view.observations.where("kind in ('sent', 'unreached')").select(
        "run", "epoch", "node", "next", "kind"
    )
    states = (
        tried.join(mailboxes, ["run", "node", "next"])
        .groupBy("run", "trial", "epoch")
        .agg(F.max(F.col("kind") == "sent").alias("up"))
    )
    return present(states, view)


def present(states: DataFrame, view: AdversaryView) -> DataFrame:
    """Weigh relays by how well rosters agree with (run, trial, epoch, up).

    With q the mean share of relays listed: if it was up, a relay listed is 1/q times as likely to be the one,
    a relay not listed SLACK/(1 − q) times; the other way round if it was down. A candidate that no roster
    ever lists, a client, keeps ratio 0: nothing is known of its hours.
    """
    ever = view.rosters.select("run", F.col("relay").alias("candidate")).distinct()
    listed = view.rosters.groupBy("run", "epoch").agg(F.count("*").alias("listed"))
    sizes = ever.groupBy("run").agg(F.count("*").alias("ever"))
    q = F.least(F.col("listed") / F.col("ever"), F.lit(1 - SLACK))
    epochs = states.join(listed, ["run", "epoch"]).join(F.broadcast(sizes), "run").withColumn("q", q)
    slack = F.lit(math.log(SLACK))
    there = F.when(F.col("up"), -F.log("q")).otherwise(slack - F.log("q"))
    away = F.when(F.col("up"), slack - F.log(1 - F.col("q"))).otherwise(-F.log(1 - F.col("q")))
    weighed = epochs.withColumn("there", there).withColumn("away", away)
    # All relays as if they had been away throughout, and corrected for the epochs that list them.
    base = weighed.groupBy("run", "trial").agg(F.sum("away").alias("ratio")).join(ever, "run")
    corrected = weighed.join(view.rosters, ["run", "epoch"]).select(
        "run", "trial", F.col("relay").alias("candidate"), (F.col("there") - F.col("away")).alias("ratio")
    )
    return weighed_by(base.select("run", "trial", "candidate", "ratio").unionByName(corrected), view)
