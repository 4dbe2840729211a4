"""Subscriptions as edge brokers' traces tell them, at the moment at which most of them stood."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import pyarrow as pa
from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from hushcast_analytics.checkpoints import kept, small
from hushcast_analytics.errors import TracesError
from hushcast_analytics.filters.subscription_rows import NOTHING, READ, Row, SubscriptionRows, batch_of
from hushcast_protocol.base.errors import DecodeError
from hushcast_protocol.brokers.clear_words import outside
from hushcast_protocol.brokers.frames import decode_filter

_KEY = ("run", "node", "client", "name")
"""What tells subscriptions apart: each has a name at one edge broker."""


def standing(observations: DataFrame) -> DataFrame:
    """Return the subscriptions of `trace_schemas.OBSERVATIONS`, computed once, as `SUBSCRIPTIONS`.

    Of each run they are those that stood when there were most, the last time there were. Topics and
    subscribers of two runs are never the same. A subscriber is a client's key; its broker, a number from 0 in
    its run, is the one that it asked last. Topics are named by the ids that brokers see. Raises `TracesError`
    if there is none, or a filter that cannot be read.
    """
    said = kept(observations.where("kind in ('asked', 'ended')").select(*_KEY, "kind", "time", "filter"))
    counted = said.withColumn("change", _change())
    moments = counted.groupBy("run", "time").agg(F.sum("change").alias("change"))
    so_far = F.sum("change").over(Window.partitionBy("run").orderBy("time"))
    most = (
        moments.withColumn("there", so_far).groupBy("run").agg(F.max(F.struct("there", "time")).alias("at"))
    )
    before = said.join(small(most), "run").where("time <= at.time")
    # Who asks and ends within a microsecond may have done so in either order: rather one too many.
    order = F.struct("time", F.expr("kind = 'asked'"))
    last = before.groupBy(*_KEY).agg(F.max_by("kind", order).alias("last")).where("last = 'asked'")
    asked = before.where("kind = 'asked'").groupBy(*_KEY)
    latest = F.max_by("filter", F.struct("time", "filter")).alias("filter")
    there = asked.agg(latest, F.max("time").alias("since"))
    there = there.join(last, [*_KEY], "left_semi")
    rows = there.join(_brokers(there), ["run", "client"]).select("run", "client", "filter", "broker")
    read = kept(rows.mapInArrow(_read, READ))
    bad = read.where("wrong is not null").select("wrong").first()
    if bad is not None:
        raise TracesError(
            f"run {bad['wrong']}: the filter of a subscription cannot be read; only where brokers' privacy "
            "is clear they can"
        )
    if read.isEmpty():
        raise TracesError("there is no subscription at an edge broker in it: --k is for traces of brokers")
    return read.drop("wrong")


def _change() -> Column:
    """Return by how many subscriptions there are more: one may be asked for again, on other terms."""
    order = Window.partitionBy(*_KEY).orderBy("time", F.col("kind") == "asked")
    was = F.coalesce(F.lag(F.col("kind") == "asked").over(order), F.lit(False))
    return (F.col("kind") == "asked").cast("int") - was.cast("int")


def _brokers(there: DataFrame) -> DataFrame:
    """Return the broker of each client, and its number among all that have clients in its run."""
    own = there.groupBy("run", "client").agg(F.max_by("node", F.struct("since", "node")).alias("node"))
    number = F.dense_rank().over(Window.partitionBy("run").orderBy("node")) - 1
    return own.select("run", "client", number.cast("int").alias("broker"))


def _read(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    described = SubscriptionRows()
    for batch in batches:
        columns = (batch.column(name).to_pylist() for name in ("run", "client", "filter", "broker"))
        yield batch_of(READ, [_row(described, *row) for row in zip(*columns, strict=True)])


def _row(described: SubscriptionRows, run: str, client: str, text: str | None, broker: int) -> Row:
    try:
        one = outside(decode_filter(bytes.fromhex(text or "")))
    except (DecodeError, ValueError):
        return run, *NOTHING
    return None, *described.row(one, f"{run} {client}".encode(), broker, run.encode())
