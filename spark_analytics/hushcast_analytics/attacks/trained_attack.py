"""The trained attack on subscribers: likelihoods of colluders' observations, learnt from known subscribers.

An adversary can always get training data: it subscribes itself, and observes its own trees at its relays.
"""

from __future__ import annotations

from dataclasses import dataclass

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from hushcast_analytics.adversaries import AdversaryView
from hushcast_analytics.attacks.tree_evidence import about, handed_on, passed_on, seats
from hushcast_analytics.checkpoints import small
from hushcast_analytics.posteriors import weighed_by

PRIOR_SIGHTINGS = 0.5  # added to each count (Jeffreys prior): events not seen in training are possible


@dataclass(frozen=True)
class TrainingFeatures:
    """What a trained attacker may look at, besides next hops and shapes."""

    path: bool = True  # whether an instruction came from outside the overlay
    chains: bool = True  # whether a relay that it instructed is the next hop of another colluder
    messages: bool = True


def sightings(view: AdversaryView, learning: TrainingFeatures) -> DataFrame:
    """Return (run, trial, candidate, sign): each colluder's seat as one sign about its next hop.

    A sign says how many relays the colluder instructed, whether a colluder below it instructed others, too,
    or was a leaf, whether an honest one instructed another colluder, how many messages of the topic it passed
    (by powers of two), how full the fullest trail was, and whether its instruction came from outside. Each
    relay seen below a colluder is a sign about itself.
    """
    return view.once(f"sightings {learning}", lambda: _sightings(view, learning))


def _sightings(view: AdversaryView, learning: TrainingFeatures) -> DataFrame:
    taken = seats(view)
    below = handed_on(view)
    lower = (
        below.join(
            taken.select(
                "run", "trial", F.col("node").alias("child"), F.col("children").alias("grandchildren")
            ),
            ["run", "trial", "child"],
        )
        .groupBy("run", "trial", "node")
        .agg(
            F.max(F.col("grandchildren") > 0).alias("inner"), F.max(F.col("grandchildren") == 0).alias("leaf")
        )
    )
    seen = taken.join(lower, ["run", "trial", "node"], "left")
    parts = ["children", "inner", "leaf"] + (["top"] if learning.path else [])
    if learning.chains:
        above = taken.select("run", "trial", F.col("next").alias("child")).distinct()
        chains = below.join(above, ["run", "trial", "child"]).select("run", "trial", "node").distinct()
        seen = seen.join(chains.withColumn("chain", F.lit(True)), ["run", "trial", "node"], "left")
        parts.append("chain")
    if learning.messages:
        trails = about(view, view.observations.where("kind = 'received'"))
        fullest = trails.groupBy("run", "trial", "node").agg(F.max("popcount").alias("bits"))
        seen = (
            seen.join(passed_on(view), ["run", "trial", "node", "next"], "left")
            .join(fullest, ["run", "trial", "node"], "left")
            .withColumn("passed", F.floor(F.log2(F.coalesce("messages", F.lit(0)) + 1)))
            .withColumn("hops", F.round(F.coalesce("bits", F.lit(0)) / 14))
        )
        parts += ["passed", "hops"]
    columns = [
        F.concat(F.lit(f"{part}="), F.coalesce(F.col(part).cast("string"), F.lit("?"))) for part in parts
    ]
    # The copy of a run is named for the share of colluders: signs mean other things under another share.
    share = F.substring_index("run", "@", -1)
    sign = F.concat_ws(" ", share, *columns)
    ofnext = seen.select("run", "trial", F.col("next").alias("candidate"), sign.alias("sign"))
    itself = below.select(
        "run",
        "trial",
        F.col("child").alias("candidate"),
        F.concat_ws(" ", share, F.lit("below")).alias("sign"),
    )
    return ofnext.unionByName(itself.distinct())


def learn(view: AdversaryView, targets: DataFrame, learning: TrainingFeatures) -> DataFrame:
    """Return (sign, ratio): how much likelier each sign is about a subscriber than about another candidate.

    `targets` (run, trial, target) are the subscribers of some of the view's questions, which must be other
    ones than those attacked. Signs are counted as rates for each candidate: independent, and Poisson.
    """
    known = sightings(view, learning).join(
        targets.select("run", "trial").distinct(), ["run", "trial"], "left_semi"
    )
    subscribers = targets.select("run", "trial", F.col("target").alias("candidate"), F.lit(1).alias("hit"))
    valid = known.join(view.candidates.select("run", "candidate"), ["run", "candidate"], "left_semi")
    marked = valid.join(subscribers, ["run", "trial", "candidate"], "left").fillna(0, ["hit"])
    tally = marked.groupBy("sign").agg(F.sum("hit").alias("hits"), F.sum(1 - F.col("hit")).alias("misses"))
    sizes = view.candidates.groupBy("run").agg(F.count("*").alias("candidates"))
    trials = targets.join(small(sizes), "run").agg(
        F.count("*").alias("subscribers"), (F.sum("candidates") - F.count("*")).alias("others")
    )
    rate = (F.col("hits") + PRIOR_SIGHTINGS) / (F.col("subscribers") + PRIOR_SIGHTINGS)
    other = (F.col("misses") + PRIOR_SIGHTINGS) / (F.col("others") + PRIOR_SIGHTINGS)
    return tally.crossJoin(small(trials)).select("sign", F.log(rate / other).alias("ratio"))


def trained(view: AdversaryView, learnt: DataFrame, learning: TrainingFeatures) -> DataFrame:
    """Name the subscriber a posteriori; a sign that training never showed says nothing."""
    evidence = sightings(view, learning).join(small(learnt), "sign")
    return weighed_by(evidence, view)
