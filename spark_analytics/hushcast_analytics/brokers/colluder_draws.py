"""Draws of colluders: who colludes, many times over, and what each client asked for.

| table | columns |
|---|---|
| `copies` | (run, profile, share, copy): a run once for each share and draw, `copy` its name |
| `members` | (run, profile, copy, node, is_client): who colludes there |
| `questions` | (run, node, owner, element, topic, known): what a client asked for, by the key `owner` |
"""

from __future__ import annotations

from dataclasses import dataclass

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from hushcast_analytics.adversaries import is_known
from hushcast_analytics.checkpoints import kept
from hushcast_analytics.profile_runs import AnalysisPlan

DRAWS = 64  # of who colludes: with 160 honest interests, ten thousand trials
COLLUDING = ("inner", "edge", "broker", "client")
"""Roles of those who may collude, as they started; the root reads all that it distributes."""


@dataclass(frozen=True)
class ColluderDraws:
    """The tables above."""

    copies: DataFrame
    members: DataFrame
    questions: DataFrame


def drawn(truths: DataFrame, wanted: AnalysisPlan) -> ColluderDraws:
    """Draw who colludes: each with the same probability, independently; `wanted.seed` and names decide.

    A larger share has the colluders of a smaller one and more.
    """
    started = truths.where(F.col("kind") == "started").where(F.col("role").isin(*COLLUDING))
    # A broker may start before it has a seat.
    people = started.groupBy("run", "profile", "node").agg(
        F.max(F.col("role") == "client").alias("is_client")
    )
    shares = F.explode(F.array(*map(F.lit, wanted.colluding)))
    numbers = F.explode(F.sequence(F.lit(1), F.lit(DRAWS)))
    each = people.withColumn("share", shares).withColumn("draw", numbers)
    each = each.withColumn("copy", F.concat_ws("@", "run", "share", "draw"))
    chance = F.pmod(F.xxhash64(F.lit(wanted.seed), "run", "node", "draw"), F.lit(1 << 40))
    members = each.where(chance < F.col("share") * F.lit(float(1 << 40)))
    return ColluderDraws(
        each.select("run", "profile", "share", "copy").distinct(),
        kept(members.select("run", "profile", "copy", "node", "is_client")),
        kept(_questions(truths, wanted)),
    )


def _questions(truths: DataFrame, wanted: AnalysisPlan) -> DataFrame:
    """Return the questions; `known` tells whether colluders know the topic.

    Where nothing is asked for under layers, an owner is a daemon, an element the name of its subscription.
    """
    layered = truths.where("kind = 'wanted'").select(
        "run", "node", F.col("own").alias("owner"), "element", "topic"
    )
    plain = (
        truths.where("kind = 'subscribed'")
        .join(layered.select("run").distinct(), "run", "left_anti")
        .select("run", "node", F.col("node").alias("owner"), F.col("mailbox").alias("element"), "topic")
    )
    known = is_known(wanted.topics_known, wanted.seed, "topic").alias("known")
    return layered.unionByName(plain).distinct().select("*", known)
