"""Evidence of trees: what colluders' observations say about the trees of the topics they are asked about.

A question names a topic by its trunk tokens, one a day: an adversary can compute them of any topic it knows
or guesses. With them it finds the topic's messages, and among its own leases the topic's, by their marks: no
message has to pass for that.
"""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from hushcast_analytics.adversaries import AdversaryView
from hushcast_analytics.checkpoints import little_in_one, small
from hushcast_analytics.marks import marks

TRUNK = "tokens[0]"
"""The token by which a message climbs a tree; with it colluders recognise a topic."""


def about(view: AdversaryView, observations: DataFrame) -> DataFrame:
    """Return the observations whose first token a question names, with its `trial`."""
    found = observations.withColumn("token", F.expr(TRUNK)).join(view.questions, ["run", "token"])
    return little_in_one(found)


def of_others(view: AdversaryView, links: DataFrame, relay: str, above: str) -> DataFrame:
    """Return the links of the trees asked about that are none of the adversary's own subscriptions.

    `relay` and `above` are the columns of a link's ends; an adversary knows the trees that it planned.
    """
    if view.planned is None:
        return links
    own = view.planned.select(
        "run", F.col("topic").alias("trial"), F.col("relay").alias(relay), F.col("next").alias(above)
    )
    return links.join(own, ["run", "trial", relay, above], "left_anti")


def seats(view: AdversaryView) -> DataFrame:
    """Return the colluders' seats in the trees asked about.

    (run, trial, epoch, node, next, lease, top, children): a colluder, its next hop, whether the instruction
    came from outside the overlay, and to how many relays it passed parcels on. A lease belongs to a topic if
    its mark is that of the topic's trunk at this colluder. Those in trees of its own are left out.
    """
    return view.once("seats", lambda: _seats(view))


def _seats(view: AdversaryView) -> DataFrame:
    installed = view.observations.where("kind = 'installed'")
    holders = installed.select("run", "node").distinct()
    # Colluders are few, and so are runs: by these alone few machines would do all.
    tested = view.questions.join(small(holders), "run").withColumn("mark", marks("token", "node"))
    # An instruction may come again, one by one, to a relay that confirmed too late: the first tells most.
    theirs = installed.join(tested.select("run", "trial", "node", "mark"), ["run", "node", "mark"])
    return (
        of_others(view, theirs, "node", "next")
        .groupBy("run", "trial", "epoch", "node", "next", "lease")
        .agg((F.count("previous") == 0).alias("top"), F.max("children").alias("children"))
    )


def handed_on(view: AdversaryView) -> DataFrame:
    """Return (run, trial, node, child): relays that colluders know to stand below their `seats`.

    Those that they `instructed`, and those that sent them messages of the topic.
    """
    return view.once("handed on", lambda: _handed_on(view))


def below_in_one_tree(view: AdversaryView) -> DataFrame:
    """Return `handed_on` of topics with one tree: who stands below somebody there is not its root.

    Where a colluder has several leases of a topic at once, somebody has subscribed to it besides, and who
    stands below in one tree may be the root of another.
    """
    return view.once("below in one tree", lambda: _below_in_one_tree(view))


def _below_in_one_tree(view: AdversaryView) -> DataFrame:
    held = seats(view).groupBy("run", "trial", "epoch", "node").agg(F.countDistinct("lease").alias("leases"))
    several = held.where("leases > 1").select("run", "trial").distinct()
    return handed_on(view).join(several, ["run", "trial"], "left_anti")


def instructed(view: AdversaryView) -> DataFrame:
    """Return (run, trial, node, child): relays that colluders passed parcels to, by their `seats`."""
    leases = seats(view).select("run", "trial", "node", "lease").distinct()
    return (
        view.observations.where("kind = 'passed'")
        .join(leases, ["run", "node", "lease"])
        .select("run", "trial", "node", F.col("next").alias("child"))
        .distinct()
    )


def _handed_on(view: AdversaryView) -> DataFrame:
    received = about(view, view.observations.where("kind = 'received' and previous is not null"))
    senders = of_others(view, received, "previous", "node").select(
        "run", "trial", "node", F.col("previous").alias("child")
    )
    return little_in_one(instructed(view).unionByName(senders)).distinct()


def passed_on(view: AdversaryView) -> DataFrame:
    """Return `counts` of all messages."""
    return view.once("passed on", lambda: counts(view, view.observations))


def counts(view: AdversaryView, messages: DataFrame) -> DataFrame:
    """Return (run, trial, node, next, messages): how many different ones a colluder sent to a next hop."""
    return (
        of_others(view, about(view, messages.where("kind = 'sent'")), "node", "next")
        .groupBy("run", "trial", "node", "next")
        .agg(F.countDistinct("message").alias("messages"))
    )
