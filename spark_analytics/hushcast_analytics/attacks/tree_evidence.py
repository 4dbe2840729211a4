"""Evidence of trees: what colluders' observations say about the trees of the topics they are asked about.

A question names a topic by its trunk tokens, one a day: an adversary can compute them of any topic it knows
or guesses. With them it finds the topic's messages, and among its own leases the topic's, by their marks: no
message has to pass for that.
"""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from hushcast_analytics.adversaries import AdversaryView
from hushcast_analytics.marks import marks

TRUNK = "tokens[0]"
"""The token by which a message climbs a tree; with it colluders recognise a topic."""


def about(view: AdversaryView, observations: DataFrame) -> DataFrame:
    """Return the observations whose first token a question names, with its `trial`."""
    return observations.withColumn("token", F.expr(TRUNK)).join(view.questions, ["run", "token"])


def seats(view: AdversaryView) -> DataFrame:
    """Return the colluders' seats in the trees asked about.

    (run, trial, epoch, node, next, lease, top, children): a colluder, its next hop, whether the instruction
    came from outside the overlay, and to how many relays it passed parcels on. A lease belongs to a topic if
    its mark is that of the topic's trunk at this colluder.
    """
    return view.once("seats", lambda: _seats(view))


def _seats(view: AdversaryView) -> DataFrame:
    installed = view.observations.where("kind = 'installed'")
    holders = installed.select("run", "node").distinct()
    # Colluders are few, and so are runs: by these alone few machines would do all.
    tested = view.questions.join(F.broadcast(holders), "run").withColumn("mark", marks("token", "node"))
    # An instruction may come again, one by one, to a relay that confirmed too late: the first tells most.
    return (
        installed.join(tested.select("run", "trial", "node", "mark"), ["run", "node", "mark"])
        .groupBy("run", "trial", "epoch", "node", "next", "lease")
        .agg((F.count("previous") == 0).alias("top"), F.max("children").alias("children"))
    )


def handed_on(view: AdversaryView) -> DataFrame:
    """Return (run, trial, node, child): relays that colluders know to stand below their `seats`.

    Those that they `instructed`, and those that sent them messages of the topic.
    """
    return view.once("handed on", lambda: _handed_on(view))


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
    return (
        instructed(view)
        .unionByName(received.select("run", "trial", "node", F.col("previous").alias("child")))
        .distinct()
    )


def counts(view: AdversaryView, messages: DataFrame) -> DataFrame:
    """Return (run, trial, node, next, messages): how many different ones a colluder sent to a next hop."""
    return (
        about(view, messages.where("kind = 'sent'"))
        .groupBy("run", "trial", "node", "next")
        .agg(F.countDistinct("message").alias("messages"))
    )
