"""Attacks by presence: daemons that are always up at the same times are probably one machine."""

from __future__ import annotations

import math

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F

from hushcast_analytics.adversaries import AdversaryView
from hushcast_analytics.attacks.tree_evidence import seats
from hushcast_analytics.checkpoints import small
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


def present(states: DataFrame, view: AdversaryView, there: DataFrame | None = None) -> DataFrame:
    """Weigh relays by how well (run, trial, epoch, up) agrees with which of them were there.

    That is what rosters say, unless a table `there` (run, epoch, relay) is given. With q the mean share of
    relays that are: if the one asked for was up, a relay that was there is 1/q times as likely to be the one,
    another SLACK/(1 − q) times; the other way round if it was down. A candidate that no roster
    ever lists, a client, keeps ratio 0: nothing is known of its hours.
    """
    rosters = view.rosters if there is None else there
    ever = view.rosters.select("run", F.col("relay").alias("candidate")).distinct()
    listed = rosters.groupBy("run", "epoch").agg(F.count("*").alias("listed"))
    sizes = ever.groupBy("run").agg(F.count("*").alias("ever"))
    q = F.least(F.col("listed") / F.col("ever"), F.lit(1 - SLACK))
    epochs = states.join(listed, ["run", "epoch"]).join(small(sizes), "run").withColumn("q", q)
    slack = F.lit(math.log(SLACK))
    there_ratio = F.when(F.col("up"), -F.log("q")).otherwise(slack - F.log("q"))
    away_ratio = F.when(F.col("up"), slack - F.log(1 - F.col("q"))).otherwise(-F.log(1 - F.col("q")))
    weighed = epochs.withColumn("there", there_ratio).withColumn("away", away_ratio)
    # All relays as if they had been away throughout, and corrected for the epochs in which they were not.
    base = weighed.groupBy("run", "trial").agg(F.sum("away").alias("ratio")).join(ever, "run")
    gained = weighed.select("run", "trial", "epoch", (F.col("there") - F.col("away")).alias("gain"))
    corrected = _over_stays(gained, rosters)
    return weighed_by(base.select("run", "trial", "candidate", "ratio").unionByName(corrected), view)


def _over_stays(gained: DataFrame, rosters: DataFrame) -> DataFrame:
    """Return (run, trial, candidate, ratio): the `gain` of each trial over the epochs that list a relay.

    By sums up to both ends of each stay: relays come and go seldom, and there are many epochs.
    """
    in_order = Window.partitionBy("run").orderBy("epoch")
    known = rosters.select("run", "epoch").distinct().withColumn("place", F.row_number().over(in_order))
    of_relay = Window.partitionBy("run", "relay").orderBy("place")
    stays = (
        rosters.join(known, ["run", "epoch"])
        .withColumn("begins", F.coalesce(F.col("place") - F.lag("place").over(of_relay) != 1, F.lit(True)))
        .withColumn("ends", F.coalesce(F.lead("place").over(of_relay) - F.col("place") != 1, F.lit(True)))
    )
    # Before the first place there is nothing to take away.
    before = F.when(F.col("begins"), F.struct((F.col("place") - 1).alias("place"), F.lit(-1).alias("sign")))
    last = F.when(F.col("ends"), F.struct("place", F.lit(1).alias("sign")))
    both = F.explode(F.array_compact(F.array(last, before))).alias("end")
    ends = stays.select("run", F.col("relay").alias("candidate"), both)
    ends = ends.select("run", "candidate", "end.place", "end.sign")
    so_far = Window.partitionBy("run", "trial").orderBy("place")
    sums = (
        gained.select("run", "trial")
        .distinct()
        .join(known, "run")
        .join(gained, ["run", "trial", "epoch"], "left")
        .select("run", "trial", "place", F.sum(F.coalesce("gain", F.lit(0.0))).over(so_far).alias("sum"))
    )
    return ends.join(sums, ["run", "place"]).select(
        "run", "trial", "candidate", (F.col("sign") * F.col("sum")).alias("ratio")
    )
