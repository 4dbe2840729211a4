"""Attacks on subscriptions: which topic a known participant subscribes to.

Here a view's questions are the adversary's dictionary (run, trial, token): the topics whose tokens it knows
or has guessed. Its candidates are the topics; each participant is a trial.
"""

from __future__ import annotations

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F

from hushcast_analytics.adversaries import AdversaryView
from hushcast_analytics.attacks.structure_attacks import root_votes
from hushcast_analytics.attacks.tree_evidence import about
from hushcast_analytics.posteriors import shared_by


def dictionary(view: AdversaryView) -> DataFrame:
    """Name the topics in whose trees a participant may be the root, tested against guessed topics.

    Relays hash a dictionary and compare (Shikfa, Önen and Molva, §IV-A); the shape of a topic's tree tells
    who its root may be (`root_votes`). A topic that cannot be guessed gets no vote.
    """
    return shared_by(_by_participant(root_votes(view)), view)


def statistical_disclosure(view: AdversaryView) -> DataFrame:
    """Name the topics of which more messages flow to a participant than to others.

    The statistical disclosure attack (Danezis, 2003) on (subscriber, topic): over epochs, the mean share of a
    topic's observed messages that colluders sent to the participant, less the mean share of everybody. A seat
    in a tree draws its share, too; over many trees that evens out, a root's does not.
    """
    sent = about(view, view.observations.where("kind = 'sent'"))
    flows = sent.groupBy("run", "trial", "epoch", F.col("next").alias("candidate")).agg(
        F.countDistinct("message").alias("messages")
    )
    epoch = Window.partitionBy("run", "trial", "epoch")
    shares = flows.withColumn("share", F.col("messages") / F.sum("messages").over(epoch))
    epochs = flows.groupBy("run", "trial").agg(F.countDistinct("epoch").alias("epochs"))
    means = (
        shares.groupBy("run", "trial", "candidate")
        .agg(F.sum("share").alias("share"))
        .join(epochs, ["run", "trial"])
        .withColumn("votes", F.col("share") / F.col("epochs") - F.lit(1 / view.relays))
    )
    return shared_by(_by_participant(means.select("run", "trial", "candidate", "votes")), view)


def _by_participant(votes: DataFrame) -> DataFrame:
    return votes.select("run", F.col("candidate").alias("trial"), F.col("trial").alias("candidate"), "votes")
