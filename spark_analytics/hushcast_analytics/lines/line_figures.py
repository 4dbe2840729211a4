"""Figures of an observer of lines: how well bytes and times tell when a daemon published or received.

The observer has what passed on the lines, `carried` in a testnet's traces. Ground truth says what happened
when, and judges. Time is cut into windows; the more bytes passed in one, the likelier the observer takes it
for a moment. How good that is, is told by the AUC: how often a window in which it happened has more bytes
than one in which it did not, of the same line; equals count half, and 0.5 is chance (Hanley and McNeil,
Radiology 1982).
"""

from __future__ import annotations

from typing import Any

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from hushcast_analytics.trace_files import Traces
from hushcast_analytics.trial_summary import variance_of_mean
from hushcast_protocol.base.intervals import Z

WINDOW = 2.0  # seconds: a drop and what becomes of it take about so long over a private Tor network
ANSWER = 5  # windows from a publication in which whoever receives it is looked for

QUESTIONS = ("published", "received", "answered")
"""What is asked: when a line's daemon published; when it received; who received what one published."""


def are_watched(traces: Traces) -> bool:
    """Tell whether somebody watched lines."""
    return traces.observations.where("kind = 'carried'").select("run").first() is not None


def line_figures(traces: Traces) -> list[dict[str, Any]]:
    """Return a row for each profile and question that has trials.

    `moments` are windows in which it happened, of so many `windows`, and of `answered` lines that received,
    of so many lines asked about; `auc` with its 95 % interval `auc_low` to `auc_high`, from how the AUCs of
    lines scatter, of `answered` those of messages: `groups` are how many of these there were. With one group
    the interval is all that can be.
    """
    volumes = _volumes(traces)
    asked = [_published(traces, volumes), _received(traces, volumes), _answered(traces, volumes)]
    rows = asked[0].unionByName(asked[1]).unionByName(asked[2])
    profiles = traces.truths.where("kind = 'started'").groupBy("run").agg(F.first("profile").alias("profile"))
    sums = _compared(rows).join(profiles, "run").groupBy("profile", "question")
    u, pairs = F.col("u"), F.col("pairs")
    products = {"uu": u * u, "up": u * pairs, "pp": pairs * pairs}
    found = sums.agg(
        F.count("*").alias("groups"),
        *(F.sum(name).alias(name) for name in ("u", "pairs", "moments", "windows")),
        *(F.sum(product).alias(name) for name, product in products.items()),
    ).collect()
    order = {name: place for place, name in enumerate(QUESTIONS)}
    figures = [_figures(row.asDict()) for row in found]
    return sorted(figures, key=lambda row: (row["profile"], order[row["question"]]))


def _figures(row: dict[str, Any]) -> dict[str, Any]:
    auc, groups = row["u"] / row["pairs"], row["groups"]
    variance = variance_of_mean(groups, row["pairs"], auc, row["uu"], row["up"], row["pp"])
    width = Z * variance**0.5 if groups > 1 else 1.0
    return {
        **{name: row[name] for name in ("profile", "question", "groups", "moments", "windows")},
        "auc": auc,
        "auc_low": max(0.0, auc - width),
        "auc_high": min(1.0, auc + width),
    }


def _window(time: Column) -> Column:
    return F.floor(time / WINDOW)


def _volumes(traces: Traces) -> DataFrame:
    """Return (run, line, node, window, up, down): bytes on lines, in all windows while they were watched.

    `node` is the line's daemon. Lines on which nothing passed are unknown.
    """
    passed = traces.observations.where("kind = 'carried'").withColumn("window", _window(F.col("time")))
    ends = passed.groupBy("run").agg(F.min("window").alias("first"), F.max("window").alias("last"))
    of = traces.truths.where("kind = 'named'").select("run", "node", F.col("name").alias("line")).distinct()
    each = passed.select("run", "line").distinct().join(of, ["run", "line"]).join(ends, "run")
    grid = each.withColumn("window", F.explode(F.sequence("first", "last"))).drop("first", "last")
    sized = passed.groupBy("run", "line", "window").agg(
        F.sum(F.when(F.col("upward"), F.col("size")).otherwise(0)).alias("up"),
        F.sum(F.when(F.col("upward"), 0).otherwise(F.col("size"))).alias("down"),
    )
    return grid.join(sized, ["run", "line", "window"], "left").fillna(0, ["up", "down"])


def _begun() -> Column:
    return F.col("time") - F.coalesce("took", F.lit(0.0))


def _published(traces: Traces, volumes: DataFrame) -> DataFrame:
    drops = traces.truths.where("kind = 'published'")
    during = F.explode(F.sequence(_window(_begun()), _window(F.col("time")))).alias("window")
    return _asked("published", volumes, drops.select("run", "node", during), "up")


def _received(traces: Traces, volumes: DataFrame) -> DataFrame:
    came = traces.truths.where("kind = 'delivered'")
    return _asked(
        "received", volumes, came.select("run", "node", _window(F.col("time")).alias("window")), "down"
    )


def _asked(question: str, volumes: DataFrame, moments: DataFrame, way: str) -> DataFrame:
    """Return (run, question, group, score, hit): each window of each line."""
    hits = moments.distinct().withColumn("hit", F.lit(1))
    marked = volumes.join(hits, ["run", "node", "window"], "left").fillna(0, ["hit"])
    named = F.lit(question).alias("question")
    return marked.select("run", named, F.col("line").alias("group"), F.col(way).alias("score"), "hit")


def _answered(traces: Traces, volumes: DataFrame) -> DataFrame:
    """Return the same of each publication, whose moment is known: all lines but its publisher's."""
    sent = traces.truths.where("kind = 'published'").select(
        "run", "message", F.col("node").alias("publisher"), _window(_begun()).alias("since")
    )
    near = F.explode(F.sequence("since", F.col("since") + (ANSWER - 1))).alias("window")
    after = sent.select("run", "message", "publisher", near)
    came = traces.truths.where("kind = 'delivered'").select("run", "node", "message").distinct()
    scored = (
        after.join(volumes, ["run", "window"])
        .where("node != publisher")
        .groupBy("run", "message", "node")
        .agg(F.sum("down").alias("score"))
    )
    marked = scored.join(came.withColumn("hit", F.lit(1)), ["run", "node", "message"], "left")
    named = F.lit("answered").alias("question")
    return marked.fillna(0, ["hit"]).select("run", named, F.col("message").alias("group"), "score", "hit")


def _compared(rows: DataFrame) -> DataFrame:
    """Return (run, question, group, u, pairs, moments, windows): the statistic of Mann and Whitney.

    `u` is how many `pairs` of a row in which it happened and one in which it did not have the larger score in
    the former. Groups without a pair are left out.
    """
    group = ["run", "question", "group"]
    below = Window.partitionBy(*group).orderBy("score")
    equal = F.count("*").over(Window.partitionBy(*group, "score"))
    ranked = rows.withColumn("rank", F.rank().over(below) + (equal - 1) / 2)
    sums = ranked.groupBy(*group).agg(
        F.sum(F.col("rank") * F.col("hit")).alias("ranks"),
        F.sum("hit").alias("moments"),
        F.count("*").alias("windows"),
    )
    hits = F.col("moments")
    return (
        sums.withColumn("u", F.col("ranks") - hits * (hits + 1) / 2)
        .withColumn("pairs", (hits * (F.col("windows") - hits)).cast("double"))
        .where("pairs > 0")
        .drop("ranks")
    )
