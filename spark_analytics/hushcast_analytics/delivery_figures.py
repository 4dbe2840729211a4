"""The network's own figures: what arrived, how soon, and what it cost the relays.

    summary(traces).show()

Every figure is a job over the tables; nothing that grows with them comes to the driver.
"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F
from pyspark.sql.types import DoubleType, LongType, StringType, StructField, StructType

from hushcast_analytics.root_paths import ways
from hushcast_analytics.trace_files import Traces
from hushcast_analytics.trace_schemas import EPOCHS_A_DAY, RUN

QUANTILES = (0.5, 0.9, 0.99, 1.0)


def _schema(*columns: tuple[str, StringType | LongType | DoubleType]) -> StructType:
    return StructType([RUN, *(StructField(name, kind) for name, kind in columns)])


_TEXT, _COUNT, _REAL = StringType(), LongType(), DoubleType()

PAIRS = _schema(
    ("message", _TEXT), ("topic", _TEXT), ("node", _TEXT), ("asked", _REAL), ("seconds", _REAL)
)  # fmt: skip
"""A publication and a daemon subscribed to all of its topic, and the `seconds` to delivery, null if never."""

LENGTHS = _schema(("length", _COUNT), ("count", _COUNT))
"""How many ways from an origin of a message to the root of a tree have that many transmissions."""

LATENCIES = _schema(("quantile", _REAL), ("seconds", _REAL))
"""Seconds from the wish to publish to delivery, not exceeded by that share of the deliveries."""

LOADS = _schema(
    ("node", _TEXT), ("drops", _COUNT), ("received", _COUNT), ("sent", _COUNT), ("links", _COUNT),
    ("leases", _COUNT), ("elements", _COUNT), ("probes", _COUNT),
)  # fmt: skip
"""Of each relay: messages dropped at it, looked up and sent, and how many `probes` are among the last; and
at most at once, in the epoch of the most: others that it exchanged messages with, leases, route elements."""

SUMMARY = _schema(
    ("publications", _COUNT), ("subscriptions", _COUNT), ("conditional", _COUNT), ("pairs", _COUNT),
    ("delivered", _COUNT), ("completeness", _REAL), ("arrivals", _COUNT), ("excess", _REAL),
    ("transmissions", _COUNT), ("probes", _COUNT), ("ideal", _COUNT), ("to_ideal", _REAL),
    ("relays", _COUNT), ("gini", _REAL), ("mean_sent", _REAL), ("mean_links", _REAL),
    ("most_links", _COUNT), ("mean_elements", _REAL), ("most_elements", _COUNT),
)  # fmt: skip
"""One row a run. `completeness` is delivered/pairs, of subscriptions without conditions; `conditional` counts
the others; `excess` (VB's ε) is the share of arrivals at subscribers that they had not asked for; `ideal` the
sum of all `LENGTHS`, k·r a publication, though copies of two origins are one from a host to its owner;
`transmissions` are of messages, those of `probes` come besides; `gini` that of all `sent`."""


def pairs(traces: Traces) -> DataFrame:
    """Return `PAIRS`; of subscriptions with conditions there are none: traces do not say what they want."""
    published = traces.truths.where("kind = 'published' and size(origins) > 0").select(
        "run", "message", "topic", (F.col("time") - F.coalesce("took", F.lit(0.0))).alias("asked")
    )
    held = F.col("asked").between(F.col("since"), F.coalesce("until", "asked"))
    wanted = published.join(_subscriptions(traces), ["run", "topic"]).where(held)
    arrived = _of(traces.truths, "delivered").groupBy("run", "node", "message").agg(F.min("time").alias("at"))
    return (
        wanted.groupBy("run", "message", "topic", "node")
        .agg(F.min("asked").alias("asked"))
        .join(arrived, ["run", "node", "message"], "left")
        .withColumn("seconds", F.col("at") - F.col("asked"))
        .select(*PAIRS.names)
    )


def path_lengths(traces: Traces) -> DataFrame:
    """Return `LENGTHS`, of the tree in force for each drop of a message and subscription of its topic."""
    drops = _of_messages(traces, "drop").select(
        "run", "message", F.col("node").alias("relay"), F.element_at("tokens", 1).alias("token"), "time"
    )
    ended = _of(traces.truths, "unsubscribed").select("run", "mailbox", F.col("time").alias("until"))
    trees = ways(traces.truths).join(ended, ["run", "mailbox"], "left")
    in_force = (F.col("planned") <= F.col("time")) & (
        F.col("until").isNull() | (F.col("time") < F.col("until"))
    )
    latest = (
        drops.join(trees, ["run", "token", "relay"])
        .where(in_force)
        .groupBy("run", "message", "relay", "mailbox")
        .agg(F.max_by("length", F.struct("planned", "length")).alias("length"))
    )
    return latest.groupBy("run", "length").count().select(*LENGTHS.names)


def latencies(traces: Traces, paired: DataFrame | None = None) -> DataFrame:
    """Return `LATENCIES` at the `QUANTILES`; `paired` are the `pairs`, where they are at hand.

    They are exact, and so the same in whatever parts the deliveries come: Spark's own approximation depends
    on the order in which parts are merged. Deliveries of a run are sorted, which needs no room in memory.
    """
    each = (pairs(traces) if paired is None else paired).where("seconds is not null")
    of_run = Window.partitionBy("run")
    rank = F.row_number().over(of_run.orderBy("seconds"))
    ranked = each.select("run", "seconds", (rank / F.count("*").over(of_run)).alias("share"))
    found = [F.min(F.when(F.col("share") >= at, F.col("seconds"))) for at in QUANTILES]
    rows = ranked.groupBy("run").agg(
        F.arrays_zip(F.array(*map(F.lit, QUANTILES)), F.array(*found)).alias("rows")
    )
    told = rows.select("run", F.explode("rows").alias("row"))
    return told.select("run", F.col("row.0").alias("quantile"), F.col("row.1").alias("seconds"))


def loads(traces: Traces) -> DataFrame:
    """Return `LOADS`, of relays that had nothing to do, too."""
    relays = _of(traces.truths, "started").where("role = 'relay'").select("run", "node").distinct()
    passed = traces.observations.where("kind in ('drop', 'received', 'sent')")
    by_link = passed.groupBy(
        "run", "epoch", "node", "kind", F.coalesce("previous", "next").alias("peer")
    ).count()
    by_epoch = by_link.groupBy("run", "epoch", "node").agg(
        _total("drop").alias("drops"),
        _total("received").alias("received"),
        _total("sent").alias("sent"),
        F.countDistinct("peer").alias("links"),
    )
    messages = by_epoch.groupBy("run", "node").agg(
        *(F.sum(name).alias(name) for name in ("drops", "received", "sent")), F.max("links").alias("links")
    )
    return (
        relays.join(messages, ["run", "node"], "full")
        .join(_probes(traces), ["run", "node"], "left")
        .join(_state(traces), ["run", "node"], "full")
        .fillna(0)
        .select(*LOADS.names)
    )


def summary(traces: Traces, paired: DataFrame | None = None, loaded: DataFrame | None = None) -> DataFrame:
    """Return `SUMMARY`; `paired` and `loaded` are `pairs` and `loads`, where they are at hand."""
    truths, length = traces.truths, F.col("length") * F.col("count")
    told = truths.groupBy("run").agg(
        _number("kind = 'published' and size(origins) > 0").alias("publications"),
        _number("kind = 'subscribed'").alias("subscriptions"),
        _number("kind = 'delivered'").alias("kept"),
    )
    each = pairs(traces) if paired is None else paired
    wanted = each.groupBy("run").agg(F.count("*").alias("pairs"), F.count("seconds").alias("delivered"))
    conditional = _conditional(traces).groupBy("run").agg(F.count("*").alias("conditional"))
    arrived = _of_messages(traces, "delivered").groupBy("run").agg(F.count("*").alias("arrivals"))
    ideal = path_lengths(traces).groupBy("run").agg(F.sum(length).alias("ideal"))
    joined = told
    for part in (conditional, wanted, arrived, ideal, _of_loads(loads(traces) if loaded is None else loaded)):
        joined = joined.join(part, "run", "left")
    counted = joined.fillna(0)
    figures = {
        "completeness": _share(F.col("delivered"), F.col("pairs")),
        "excess": _share(F.col("arrivals") - F.col("kept"), F.col("arrivals")),
        "to_ideal": _share(F.col("transmissions"), F.col("ideal")),
    }
    columns = [f"cast({each.name} as {each.dataType.simpleString()}) {each.name}" for each in SUMMARY]
    return counted.withColumns(figures).selectExpr(*columns)


def _of(table: DataFrame, kind: str) -> DataFrame:
    return table.where(F.col("kind") == kind)


def _subscriptions(traces: Traces) -> DataFrame:
    """Return (run, topic, node, since, until) of subscriptions to all of a topic; `until` may be null."""
    whole = _of(traces.truths, "subscribed").join(_conditional(traces), ["run", "mailbox"], "left_anti")
    begun = whole.select("run", "topic", "node", "mailbox", F.col("time").alias("since"))
    ended = _of(traces.truths, "unsubscribed").select("run", "topic", "mailbox", F.col("time").alias("until"))
    # By the topic, too: as published, a user of the central system has one pseudonym for all.
    return begun.join(ended, ["run", "topic", "mailbox"], "left").drop("mailbox")


def _messages(traces: Traces) -> DataFrame:
    """Return (run, message) of what is no probe: of a probe neither publishers nor inboxes know."""
    return traces.truths.where("kind in ('published', 'delivered')").select("run", "message").distinct()


def _of_messages(traces: Traces, kind: str) -> DataFrame:
    """Return the observations of a kind that are of messages."""
    return _of(traces.observations, kind).join(_messages(traces), ["run", "message"], "left_semi")


def _probes(traces: Traces) -> DataFrame:
    """Return (run, node, probes) of relays that sent some on."""
    sent = _of(traces.observations, "sent").select("run", "node", "message")
    of_probes = sent.join(_messages(traces), ["run", "message"], "left_anti")
    return of_probes.groupBy("run", "node").agg(F.count("*").alias("probes"))


def _conditional(traces: Traces) -> DataFrame:
    """Return (run, mailbox) of subscriptions with conditions: their trees have other tokens' entries."""
    elsewhere = F.exists("tokens", lambda token: token != F.element_at("tokens", 1))
    return _of(traces.truths, "installed").where(elsewhere).select("run", "mailbox").distinct()


def _state(traces: Traces) -> DataFrame:
    """Return (run, node, leases, elements) of each relay in the epoch in which it held the most."""
    taken = (
        _of(traces.observations, "installed")
        .groupBy("run", "node", "lease")
        .agg(
            F.min("epoch").alias("from"),
            F.max_by("elements", F.struct("time", "elements")).alias("elements"),
            ((F.max("day") + 1) * EPOCHS_A_DAY).alias("lapses"),  # half an epoch into the next day
        )
    )
    # Who withdraws says so until it is confirmed, and a relay notes each time.
    ended = (
        _of(traces.observations, "withdrawn")
        .groupBy("run", "node", "lease")
        .agg(F.min("epoch").alias("ended"))
    )
    held = taken.join(ended, ["run", "node", "lease"], "left").withColumn(
        "after", F.least("lapses", F.coalesce("ended", "lapses")) + 1
    )
    changes = held.select(
        "run",
        "node",
        F.explode(
            F.array(
                F.struct(F.col("from").alias("epoch"), F.lit(1).alias("leases"), "elements"),
                F.struct(
                    F.col("after").alias("epoch"),
                    F.lit(-1).alias("leases"),
                    (-F.col("elements")).alias("elements"),
                ),
            )
        ).alias("change"),
    )
    by_epoch = changes.groupBy("run", "node", "change.epoch").agg(
        F.sum("change.leases").alias("leases"), F.sum("change.elements").alias("elements")
    )
    until = Window.partitionBy("run", "node").orderBy("epoch")
    held_then = by_epoch.select(
        "run", "node", *(F.sum(name).over(until).alias(name) for name in ("leases", "elements"))
    )
    return held_then.groupBy("run", "node").agg(
        F.max("leases").alias("leases"), F.max("elements").alias("elements")
    )


def _of_loads(loads: DataFrame) -> DataFrame:
    """Return what `SUMMARY` says of `LOADS`."""
    place = F.row_number().over(Window.partitionBy("run").orderBy("sent"))
    ranked = loads.withColumn("place", place)
    n, total, probes = F.count("*"), F.sum("sent"), F.sum("probes")
    weighed = F.sum((2 * F.col("place") - 1) * F.col("sent"))
    return ranked.groupBy("run").agg(
        n.alias("relays"),
        (total - probes).alias("transmissions"),
        probes.alias("probes"),
        _share(weighed - n * total, n * total).alias("gini"),
        F.avg("sent").alias("mean_sent"),
        F.avg("links").alias("mean_links"),
        F.max("links").alias("most_links"),
        F.avg("elements").alias("mean_elements"),
        F.max("elements").alias("most_elements"),
    )


def _total(kind: str) -> Column:
    return F.sum(F.when(F.col("kind") == kind, F.col("count")).otherwise(0))


def _number(condition: str) -> Column:
    return F.count_if(F.expr(condition))


def _share(part: Column, whole: Column) -> Column:
    """Return part/whole, null of nothing."""
    return F.when(whole != 0, part / whole)
