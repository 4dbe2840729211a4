"""The distinct filters of subscriptions, who is behind each, and topics cut into pieces of work."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from hushcast_analytics.checkpoints import kept
from hushcast_analytics.filters.boxes import Boxes, Ends, Slots
from hushcast_analytics.filters.topic_levels import Sources

PIECE = 50_000  # filters that one task finds the levels of; it has all of their topic before it
MOST_TASKS = 64  # that pieces are dealt out to, so that no core is left with a long one in the end
_A_TASK = 5_000  # filters that are worth a task
FILTER = ["topic", "box"]
"""What tells filters apart."""


@dataclass(frozen=True)
class DistinctFilters:
    """What there is to look at.

    `filters` has a row for each filter: `topic`, `box`, `name`, `attributes`, `where`, `volume`, `chance` (of
    its own, from 0 to 1, by which samples are drawn), and `sources`, of each its `code` and the edge `broker`
    that it is behind, from 0.
    """

    filters: DataFrame
    count: int
    subscriptions: int
    sources: int
    topics: int
    largest: int
    brokers: int


def held(subscriptions: DataFrame, brokers: int | None, seed: int) -> DistinctFilters:
    """Return the filters of a table of subscriptions.

    Sources are dealt out to so many edge brokers at random; without a number, the table tells where each is.
    """
    known = subscriptions.groupBy("source").agg(F.first("broker").alias("broker"))
    if brokers is not None:
        dealt = F.pmod(F.xxhash64("source", F.lit(seed)), F.lit(brokers)).cast("int")
        known = known.withColumn("broker", dealt)
    sources = kept(known.withColumn("code", F.monotonically_increasing_id()))
    if brokers is None:
        last = sources.agg(F.max("broker")).first()
        brokers = 1 + int((last and last[0]) or 0)
    same = [F.first(name).alias(name) for name in ("name", "attributes", "where", "volume")]
    filters = kept(
        subscriptions.drop("broker")
        .join(sources, "source")
        .groupBy(*FILTER)
        .agg(*same, F.collect_set(F.struct("code", "broker")).alias("sources"))
        .withColumn("chance", _chance(seed))
    )
    sizes = filters.groupBy("topic").count().agg(F.sum("count"), F.count("*"), F.max("count")).first()
    assert sizes is not None
    count, topics, largest = sizes
    return DistinctFilters(filters, count, subscriptions.count(), sources.count(), topics, largest, brokers)


def tasks_for(count: int) -> int:
    """Return how many tasks so many filters are worth."""
    return max(2, min(MOST_TASKS, count // _A_TASK))


def in_pieces(there: DistinctFilters, columns: list[Column | str]) -> DataFrame:
    """Return a row for each filter and piece of its topic, with `piece` and how many `pieces` there are.

    All filters of a topic are in every piece of it: what is nearest to a filter can be anywhere.
    """
    pieces = F.ceil(F.count("*").over(Window.partitionBy("topic")) / PIECE).cast("int")
    return (
        there.filters.select(*FILTER, *columns)
        .withColumn("pieces", pieces)
        .withColumn("piece", F.explode(F.sequence(F.lit(0), F.col("pieces") - 1)))
        .repartition(tasks_for(there.count), "topic", "piece")
    )


def ends_of(boxes: pa.ChunkedArray) -> tuple[Ends, Ends]:
    """Return the lows and the highs of boxes as a column has them: a row for each attribute."""
    every = np.frombuffer(b"".join(boxes.to_pylist()), "<i8").reshape(len(boxes), -1, 2)
    return every[:, :, 0].T, every[:, :, 1].T


@dataclass(frozen=True)
class TopicFilters:
    """One topic in numpy. `order` has the row of each slot, `brokers` the broker of each source."""

    boxes: Boxes
    sources: Sources
    order: Slots
    brokers: Slots


def placed(table: pa.Table) -> TopicFilters:
    """Return one topic out of rows with `box` and `sources`."""
    boxes = Boxes(*ends_of(table["box"]))
    lists = table["sources"].combine_chunks().take(pa.array(boxes.order))
    counts = lists.value_lengths().to_numpy()
    flat = lists.flatten()
    _, first, codes = np.unique(_numbers(flat, "code"), return_index=True, return_inverse=True)
    starts = np.concatenate([[0], np.cumsum(counts)])
    sources = Sources(starts, codes.astype(np.int32))
    return TopicFilters(boxes, sources, boxes.order, _numbers(flat, "broker")[first])


def _numbers(flat: Any, name: str) -> Slots:
    found: Slots = flat.field(name).to_numpy(zero_copy_only=False)
    return found


def _chance(seed: int) -> Column:
    fine = 1 << 31
    return F.pmod(F.xxhash64(*FILTER, F.lit(seed)), F.lit(fine)) / fine
