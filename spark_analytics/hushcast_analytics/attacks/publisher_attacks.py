"""Attacks on publishers: by a message's path, by an author's origins, by the times when an author was up."""

from __future__ import annotations

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F

from hushcast_analytics.adversaries import AdversaryView
from hushcast_analytics.attacks.presence_attacks import present
from hushcast_analytics.attacks.tree_evidence import about, instructed
from hushcast_analytics.checkpoints import small
from hushcast_analytics.posteriors import shared_by, weighed_by

NEVER = -30.0  # log likelihood ratio of what should not be possible


def first_spy(view: AdversaryView) -> DataFrame:
    """Name the relay from which a colluder, or the mailbox of one, first got the message.

    The first-spy estimator (Fanti and Viswanath, NeurIPS 2017), asked of messages: `token` is the message
    id. A message that a colluder first got by an anonymous drop names nobody.
    """
    came = view.observations.where("kind in ('received', 'drop', 'arrived')").withColumn(
        "token", F.col("message")
    )
    asked = came.join(view.questions, ["run", "token"])
    # A drop is routed at once: of two rows with one time the drop is the first.
    first = Window.partitionBy("run", "trial").orderBy("time", "kind", "node", "previous")
    spied = asked.withColumn("place", F.row_number().over(first)).where("place = 1 and previous is not null")
    return shared_by(
        spied.select("run", "trial", F.col("previous").alias("candidate"), F.lit(1).alias("votes")), view
    )


def origin_choice(view: AdversaryView) -> DataFrame:
    """Name relays that an author's messages never entered at, among those whose messages can be told.

    For authors who leave out their own relay (threat model, row 10); asked of authors, by the token of a
    topic
    on which nobody else publishes. Which relays a message entered at is known where it was dropped at a
    colluder, and where a colluder received it with one label in its trail: the previous hop was the origin.
    A watched relay is the origin of m messages with probability e^(−λ)λ^m/m!, λ the mean of those watched,
    if it is not the author's, and of none if it is.
    """
    received = about(view, view.observations.where("kind = 'received' and previous is not null"))
    entered = (
        received.where("popcount between 1 and 14")  # a label sets fourteen bits, or less where they coincide
        .groupBy("run", "trial", F.col("previous").alias("candidate"))
        .agg(F.countDistinct("message").alias("messages"))
    )
    dropped = about(view, view.observations.where("kind = 'drop'"))
    sizes = view.members.groupBy("run").agg(F.count("*").alias("colluding"))
    expected = (
        dropped.groupBy("run", "trial")
        .agg(F.countDistinct("message").alias("drops"))
        .join(small(sizes), "run")
        .select("run", "trial", (F.col("drops") / F.col("colluding")).alias("expected"))
    )
    # A colluder hears of each message of the relays directly below it.
    watched = instructed(view).select("run", "trial", F.col("child").alias("candidate")).distinct()
    known = watched.join(entered, ["run", "trial", "candidate"], "left").join(expected, ["run", "trial"])
    ratio = F.when(F.col("messages").isNull(), F.col("expected")).otherwise(F.lit(NEVER))
    return weighed_by(known.select("run", "trial", "candidate", ratio.alias("ratio")), view)


def timing(view: AdversaryView) -> DataFrame:
    """Leave out relays that were away when the author's messages entered.

    What traces tell of the way from the publisher's circuit to the origin is the moment of the drop alone: no
    address, and no other end to compare with. What remains is who was there at all these moments; asked of
    authors, as `origin_choice`.
    """
    came = about(view, view.observations.where("kind in ('drop', 'received')"))
    return present(came.select("run", "trial", "epoch").distinct().withColumn("up", F.lit(True)), view)
