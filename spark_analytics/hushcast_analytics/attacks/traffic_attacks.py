"""Attacks on subscribers by the share of a topic's messages that passes a colluder: the share is its depth.

A relay at the top passes 1/b of all messages that enter at random relays, one below it 1/b², and so on.
"""

from __future__ import annotations

import math

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from hushcast_analytics.adversaries import AdversaryView
from hushcast_analytics.attacks.tree_evidence import about, below_in_one_tree, counts, passed_on, seats
from hushcast_analytics.checkpoints import small
from hushcast_analytics.posteriors import nothing, shared_by, weighed_by
from hushcast_protocol.overlay.tree import branching


def levels(relays: int, depth: int) -> list[tuple[int, float]]:
    """Return, from the top level down, (relays on it, share of all messages that passes one of them)."""
    width = branching(relays, depth)
    sizes = [width**level for level in range(1, depth)]
    sizes.append(relays - sum(sizes))
    return [(size, sum(sizes[index:]) / size / relays) for index, size in enumerate(sizes) if size > 0]


def _ratio(view: AdversaryView, messages: Column, total: Column) -> Column:
    """Log likelihood ratio of a next hop's being the root, from how many of `total` messages passed a
    colluder.

    Counts are Poisson. A root has all relays of the top level as children; another candidate stands on level
    d with probability n_d/n and has n_(d+1)/n_d children.
    """

    def log_rate(expected: float, share: float) -> Column:
        return F.lit(math.log(expected)) + messages * F.lit(math.log(share)) - total * F.lit(share)

    (top, top_share), *lower = levels(view.relays, view.depth)
    if not lower:
        return F.lit(math.log(top))
    others = [log_rate(size / view.relays, share) for size, share in lower]
    highest = F.greatest(*others) if len(others) > 1 else others[0]
    summed = highest + F.log(sum((F.exp(other - highest) for other in others), F.lit(0.0)))
    return log_rate(top, top_share) - summed


def _never_roots(view: AdversaryView) -> DataFrame:
    """Relays below a colluder in a topic's only tree, with a ratio that leaves them next to nothing."""
    below = below_in_one_tree(view).select("run", "trial", F.col("child").alias("candidate")).distinct()
    return below.withColumn("ratio", F.lit(-math.log(view.relays) * 2))


def traffic_share(view: AdversaryView) -> DataFrame:
    """Weigh each colluder's next hop by the share of the topic's messages that the colluder passed on.

    The whole is estimated: a message meets a colluder with probability 1 − (1 − f)^depth on its way. Where
    none was seen, all next hops of colluders weigh the same.
    """
    taken = seats(view)
    total = _total(view)
    passed = (
        taken.select("run", "trial", "node", "next")
        .distinct()
        .join(passed_on(view), ["run", "trial", "node", "next"], "left")
        .join(total, ["run", "trial"], "left")
        .fillna(0, ["messages", "total"])
    )
    ratios = passed.select(
        "run",
        "trial",
        F.col("next").alias("candidate"),
        _ratio(view, F.col("messages"), F.col("total")).alias("ratio"),
    )
    return weighed_by(ratios.unionByName(_never_roots(view)), view)


def _total(view: AdversaryView) -> DataFrame:
    everyone = view.relays * view.shards
    sizes = view.members.groupBy("run").agg((F.count("*") / F.lit(everyone)).alias("share"))
    seen = about(view, view.observations.where("kind in ('received', 'drop')"))
    return (
        seen.groupBy("run", "trial")
        .agg(F.countDistinct("message").alias("seen"))
        .join(small(sizes), "run")
        .withColumn("total", F.col("seen") / (1 - F.pow(1 - F.col("share"), F.lit(view.depth))))
        .select("run", "trial", "total")
    )


def active_scan(view: AdversaryView) -> DataFrame:
    """Drop a message of the topic at every relay and watch which pass which colluder.

    So the share of `traffic_share` is exact after one message a relay. And a relay whose own message came by
    a colluder sent it there: it stands below, and is no root.
    """
    if view.own.isEmpty():
        return nothing(view)
    scans = view.observations.join(view.own.select("run", "message", "origin"), ["run", "message"])
    dropped = about(view, scans.where("kind = 'received'")).select("run", "trial", "origin").distinct()
    total = view.own.groupBy("run", F.col("topic").alias("trial")).agg(
        F.countDistinct("message").alias("total")
    )
    taken = seats(view)
    reached = (
        taken.select("run", "trial", "node", "next")
        .distinct()
        .join(counts(view, scans), ["run", "trial", "node", "next"], "left")
        .join(total, ["run", "trial"])
        .fillna(0, ["messages"])
    )
    ratios = reached.select(
        "run",
        "trial",
        F.col("next").alias("candidate"),
        _ratio(view, F.col("messages"), F.col("total")).alias("ratio"),
    )
    below = dropped.select(
        "run", "trial", F.col("origin").alias("candidate"), F.lit(-math.log(view.relays)).alias("ratio")
    )
    return weighed_by(ratios.unionByName(below), view)


def trail_popcount(view: AdversaryView) -> DataFrame:
    """Name the next hop of the colluder that saw the fullest trails.

    The trail of a message holds a label for each relay passed (VB §4.2): the more bits, the longer the way
    that lies behind, and the nearer the root is. All colluders with the fullest trail vote for their next
    hops, whether they sent the message on or not.
    """
    seen = about(view, view.observations.where("kind = 'received' and previous is not null"))
    fullest = seen.groupBy("run", "trial", "node").agg(F.max("popcount").alias("bits"))
    reached = seats(view).join(fullest, ["run", "trial", "node"])
    best = reached.groupBy("run", "trial").agg(F.max("bits").alias("best"))
    votes = (
        reached.join(best, ["run", "trial"])
        .where("bits >= best - 3")  # labels share a bit or two by chance; a label has about fourteen
        .groupBy("run", "trial", F.col("next").alias("candidate"))
        .agg(F.countDistinct("node").alias("votes"))
    )
    return shared_by(votes, view)
