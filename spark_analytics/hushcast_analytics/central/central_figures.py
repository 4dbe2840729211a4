"""The network's own figures of runs of the central system: `delivery_figures.py` without relays."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from hushcast_analytics.checkpoints import kept
from hushcast_analytics.trace_files import Traces

FIGURES = (
    *("runs", "publications", "subscriptions", "conditional", "pairs", "delivered", "completeness"),
    *("arrivals", "excess", "rejected_lines"),
)
"""Latencies, `latency_p…`, come besides."""


def of_central(figures: dict[str, float], conditional: float) -> dict[str, float]:
    """Return what is left of `analysis.network_figures`; `conditional` subscriptions were left out before."""
    return without_relays(figures) | {
        "conditional": conditional,
        "subscriptions": figures.get("subscriptions", 0.0) + conditional,
    }


def without_relays(figures: dict[str, float]) -> dict[str, float]:
    """Return what is left of figures where nobody is a relay."""
    return {name: value for name, value in figures.items() if name in FIGURES or name.startswith("latency_")}


def without_conditions(traces: Traces) -> tuple[Traces, float]:
    """Return the traces without subscriptions that have a condition, and how many these are in a run's mean.

    A subscription to all of a topic asks for a trunk token, the first of each of the topic's publications.
    """
    conditional = kept(_conditional(traces))
    runs = traces.truths.select("run").distinct().count()
    subscribed = F.col("kind") == "subscribed"
    left = traces.truths.where(subscribed).join(conditional, ["run", "node", "topic"], "left_anti")
    # Cut off: Spark's planner fails where this union is joined with itself.
    truths = kept(traces.truths.where(~subscribed).unionByName(left))
    return Traces(traces.observations, truths, traces.rejected), conditional.count() / max(1, runs)


def _conditional(traces: Traces) -> DataFrame:
    """Return (run, node, topic) of who asked for a topic that is published on, and never for its trunk."""
    observations, truths = traces.observations, traces.truths
    published = truths.where("kind = 'published'").select("run", "message", "topic").distinct()
    handed = truths.where("kind = 'handed'").select("run", "pseudonym", "payload", "message")
    trunks = kept(
        observations.where("kind = 'handed'")
        .select("run", "pseudonym", "payload", F.element_at("tokens", 1).alias("token"))
        .join(handed, ["run", "pseudonym", "payload"])
        .join(published, ["run", "message"])
        .select("run", "topic", "token")
        .distinct()
    )
    asked = truths.where("kind = 'registered'").select("run", "node", "pseudonym", "serial", "topic")
    by_token = observations.where("kind = 'registered'").select(
        "run", "pseudonym", "serial", F.explode("tokens").alias("token")
    )
    all_of = by_token.join(asked, ["run", "pseudonym", "serial"]).join(trunks, ["run", "topic", "token"])
    who = asked.select("run", "node", "topic").distinct()
    known = who.join(trunks.select("run", "topic").distinct(), ["run", "topic"], "left_semi")
    return known.join(all_of.select("run", "node", "topic"), ["run", "node", "topic"], "left_anti")
