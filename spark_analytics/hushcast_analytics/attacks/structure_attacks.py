"""Attacks on subscribers by the shape of trees: who stands where under the root.

As published the root is the subscriber's own relay (VB §4.2); all three try to find a next hop that is one.
"""

from __future__ import annotations

import math

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from hushcast_analytics.adversaries import AdversaryView
from hushcast_analytics.attacks.tree_evidence import below_in_one_tree, seats
from hushcast_analytics.posteriors import POSTERIOR, shared_by, weighed_by
from hushcast_protocol.overlay.tree import branching


def root_votes(view: AdversaryView) -> DataFrame:
    """Return (run, trial, candidate, votes): the next hops of interior colluders that may be roots.

    One vote for each colluder that has children. Where a topic has one tree, a relay that stands below a
    colluder is not its root, and has no vote.
    """
    return view.once("root votes", lambda: _root_votes(view))


def _root_votes(view: AdversaryView) -> DataFrame:
    taken = seats(view)
    below = below_in_one_tree(view)
    parents = below.select("run", "trial", "node").distinct().withColumn("parent", F.lit(True))
    interior = taken.join(parents, ["run", "trial", "node"], "left").where("children > 0 or parent")
    votes = interior.groupBy("run", "trial", F.col("next").alias("candidate")).agg(
        F.countDistinct("node").alias("votes")
    )
    no_root = below.select("run", "trial", F.col("child").alias("candidate")).distinct()
    return votes.join(no_root, ["run", "trial", "candidate"], "left_anti")


def parent_of_interior(view: AdversaryView) -> DataFrame:
    """Name the next hop with most votes of interior colluders; the weakest useful rule.

    Whoever was seen handing on to a colluder is out (`root_votes`), and so are colluders. Votes make the
    shares of the posterior.
    """
    return shared_by(root_votes(view), view)


def install_depth(view: AdversaryView) -> DataFrame:
    """Name the next hop of a colluder that got its instruction from outside the overlay.

    Instructions come down the tree from the root; who gets one by an anonymous drop stands at the top
    (threat model, row 1). Without such a colluder, `parent_of_interior`.
    """
    tops = seats(view).where("top").select("run", "trial", "node", F.col("next").alias("candidate"))
    known = shared_by(
        tops.groupBy("run", "trial", "candidate").agg(F.countDistinct("node").alias("votes")), view
    )
    guessed = parent_of_interior(view).join(known.select("run", "trial"), ["run", "trial"], "left_anti")
    return known.unionByName(guessed).select(POSTERIOR.fieldNames())


def predecessor(view: AdversaryView) -> DataFrame:
    """Count the next hops of interior colluders over epochs, with a new tree in each.

    The predecessor attack (Wright, Adler, Levine and Shields, NDSS 2002): chance spreads all others, the root
    comes again. In one tree the root is the next hop of about b times as many interior relays as there are
    colluders' share, another relay of b/n of that; so each sighting weighs n/b.
    """
    interior = seats(view).where("children > 0")
    weight = math.log(view.relays / branching(view.relays, view.depth))
    sightings = interior.groupBy("run", "trial", F.col("next").alias("candidate")).agg(
        (F.countDistinct("epoch", "node") * F.lit(weight)).alias("ratio")
    )
    return weighed_by(sightings, view)
