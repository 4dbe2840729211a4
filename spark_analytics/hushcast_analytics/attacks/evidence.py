"""Evidence: what colluders' observations say about the trees of the topics they are asked about.

A question names a topic by its tokens, one a day: an adversary can compute them of any topic it knows or
guesses.
"""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from hushcast_analytics.adversaries import View

TRUNK = "tokens[0]"
"""The token by which a message climbs a tree; with it colluders recognise a topic."""


def about(view: View, observations: DataFrame) -> DataFrame:
    """Return the observations whose first token a question names, with its `trial`."""
    return observations.withColumn("token", F.expr(TRUNK)).join(view.questions, ["run", "token"])


def seats(view: View) -> DataFrame:
    """Return the colluders' seats in the trees asked about.

    (run, trial, epoch, node, next, lease, top, children): a colluder, its next hop, whether the instruction
    came from outside the overlay, and to how many relays it passed parcels on. A lease belongs to a topic if
    it says so, or if the colluder sent messages of the topic to the lease's next hop.
    """
    return view.once("seats", lambda: _seats(view))


def _seats(view: View) -> DataFrame:
    installed = view.observations.where("kind = 'installed'")
    columns = ["run", "trial", "epoch", "node", "next", "lease", "previous", "children"]
    named = about(view, installed.where("tokens is not null")).select(columns)
    sent = (
        about(view, view.observations.where("kind = 'sent'"))
        .select("run", "trial", "node", "next")
        .distinct()
    )
    known = installed.where("tokens is null").join(sent, ["run", "node", "next"]).select(columns)
    # An instruction may come again, one by one, to a relay that confirmed too late: the first tells most.
    return (
        named.unionByName(known)
        .groupBy("run", "trial", "epoch", "node", "next", "lease")
        .agg((F.count("previous") == 0).alias("top"), F.max("children").alias("children"))
    )


def handed_on(view: View) -> DataFrame:
    """Return (run, trial, node, child): relays that colluders know to stand below their `seats`.

    Those that they passed parcels to, and those that sent them messages of the topic.
    """
    return view.once("handed on", lambda: _handed_on(view))


def _handed_on(view: View) -> DataFrame:
    leases = seats(view).select("run", "trial", "node", "lease").distinct()
    passed = (
        view.observations.where("kind = 'passed'")
        .join(leases, ["run", "node", "lease"])
        .select("run", "trial", "node", F.col("next").alias("child"))
    )
    received = about(view, view.observations.where("kind = 'received' and previous is not null"))
    return passed.unionByName(
        received.select("run", "trial", "node", F.col("previous").alias("child"))
    ).distinct()


def counts(view: View, messages: DataFrame) -> DataFrame:
    """Return (run, trial, node, next, messages): how many different ones a colluder sent to a next hop."""
    return (
        about(view, messages.where("kind = 'sent'"))
        .groupBy("run", "trial", "node", "next")
        .agg(F.countDistinct("message").alias("messages"))
    )
