"""Attacks by hosts: on the owners of boxes, by when they are attached."""

from __future__ import annotations

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F

from hushcast_analytics.adversaries import AdversaryView
from hushcast_analytics.attacks.box_evidence import (
    LISTED_FOR,
    box_states,
    boxes,
    relays_gone,
    relays_there,
    used,
    visits,
)
from hushcast_analytics.attacks.presence_attacks import present
from hushcast_analytics.checkpoints import small
from hushcast_analytics.posteriors import nothing, weighed_by

ENDS_WITHIN = 2.0  # seconds: the links of one daemon end together when it goes
ATTACH_WITHIN = 10.0  # seconds from a start in which a daemon's boxes attach; a test compares


def box_presence(view: AdversaryView) -> DataFrame:
    """Compare an owner's comings and goings, as its host sees them, with those of relays."""
    if not view.saw("attached"):
        return nothing(view)
    return present(box_states(view), view, relays_there(view))


def detach(view: AdversaryView) -> DataFrame:
    """Name relays that went in the epochs in which the owner's link ended.

    Only links count to hosts that are in use, and after which the owner stayed away for as long as rosters
    take to show it.
    """
    if not view.saw("attached"):
        return nothing(view)
    in_use = used(view).select("run", "trial", "node", "next").distinct()
    of_trial = Window.partitionBy("run", "trial").orderBy("came", "left")
    back = F.lead("came").over(of_trial)
    stayed_away = F.coalesce(F.col("back") > F.col("left") + LISTED_FOR, F.lit(True))
    gone = visits(view).join(in_use, ["run", "trial", "node", "next"], "left_semi")
    gone = gone.withColumn("back", back).where(stayed_away)
    ended = gone.select("run", "trial", F.col("left").alias("epoch")).distinct().withColumn("up", F.lit(True))
    return present(ended, view, relays_gone(view))


def survivors(view: AdversaryView) -> DataFrame:
    """Link topics whose boxes, at colluding hosts, attach and are left at the same moments.

    Two links that end within `ENDS_WITHIN`, or attach within `ATTACH_WITHIN`, of each other are so many times
    likelier of one daemon as it is seldom that a stranger's happen to.
    """
    if not view.saw("attached"):
        return nothing(view)
    moments = _moments(view)
    span = moments.groupBy("run").agg((F.max("time") - F.min("time")).alias("span"))
    counts = moments.groupBy("run", "kind", "trial").agg(F.count("*").alias("count"))
    other = moments.select(
        "run", "kind", "slot", F.col("trial").alias("candidate"), F.col("time").alias("then")
    )
    near = moments.withColumn("slot", F.explode(F.array(*(F.col("slot") + step for step in (-1, 0, 1)))))
    pairs = near.join(other, ["run", "kind", "slot"]).where(
        (F.col("trial") != F.col("candidate")) & (F.abs(F.col("time") - F.col("then")) <= F.col("within"))
    )
    met = pairs.groupBy("run", "kind", "trial", "candidate", "within", "time").agg(F.lit(1).alias("met"))
    rate = F.col("count") / F.greatest("span", F.lit(1.0))
    chance = F.least(1 - F.exp(-2 * F.col("within") * rate), F.lit(1 - 1e-9))
    evidence = (
        met.join(counts.withColumnRenamed("trial", "candidate"), ["run", "kind", "candidate"])
        .join(small(span), "run")
        .select("run", "trial", "candidate", (-F.log(chance)).alias("ratio"))
    )
    return weighed_by(evidence, view)


def _moments(view: AdversaryView) -> DataFrame:
    """Return (run, trial, kind, time, within, slot): when owners attached, and links ended."""
    asked = boxes(view).select("run", "trial", "node", "next").distinct()
    within = F.when(F.col("kind") == "attached", F.lit(ATTACH_WITHIN)).otherwise(F.lit(ENDS_WITHIN))
    return (
        view.observations.where("kind in ('attached', 'detached')")
        .select("run", "node", "next", "kind", "time")
        .join(asked, ["run", "node", "next"])
        .withColumn("within", within)
        .withColumn("slot", F.floor(F.col("time") / within))
        .select("run", "trial", "kind", "time", "within", "slot")
    )
