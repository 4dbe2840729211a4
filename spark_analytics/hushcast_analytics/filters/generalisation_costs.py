"""What generalising costs: for a sample of filters, which wider filter would be shown, and what it lets in.

The search itself is the brokers' own (`brokers.generalisation`), which tries hundreds of filters; it is given
as many filters of the topic as make the smallest mergers with the one in question, not all of a large topic.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from hushcast_analytics.checkpoints import kept
from hushcast_analytics.filters.distinct_filters import FILTER, DistinctFilters, ends_of, tasks_for
from hushcast_analytics.filters.levels import COLUMNS
from hushcast_protocol.brokers.anonymity_conditions import AnonymityCondition
from hushcast_protocol.brokers.anonymity_levels import Levels
from hushcast_protocol.brokers.filters import Filter
from hushcast_protocol.brokers.generalisation import generalise
from hushcast_protocol.content.attributes import Attribute, Number
from hushcast_protocol.content.predicates import parse_where
from hushcast_protocol.content.tokens import LABEL_SHARE
from hushcast_protocol.content.topics import Interest, make_topic

NEAREST = 512  # filters that a search is given at most: twice as many as it looks at for mergers
_SEARCHES = 16  # filters of one topic that one task searches for
COSTS = "condition string, k int, held boolean, found boolean, volume double, added double"
"""A row is a filter of the sample, a condition and a k: whether it `held` k already, whether a filter to show
was `found`, its own volume and what is `added`, as shares of the topic's messages."""


def costs(
    held: DistinctFilters,
    levels: DataFrame,
    asked: tuple[Sequence[AnonymityCondition], Sequence[int]],
    sampled: float,
) -> DataFrame:
    """Return what generalising costs, computed once, for a share `sampled` of all filters.

    `levels` are those of `levels.levels`; `asked` are conditions and k's.
    """
    names = list(COLUMNS.values())
    chosen = held.filters.where(F.col("chance") < sampled).select(*FILTER, F.lit(True).alias("is_asked"))
    wanted = chosen.join(levels.select(*FILTER, *names), FILTER)
    pieces = wanted.groupBy("topic").agg(F.ceil(F.count("*") / _SEARCHES).cast("int").alias("pieces"))
    rows = (
        held.filters.join(pieces, "topic")
        .join(wanted.drop("name"), FILTER, "left")
        .withColumn("piece", F.explode(F.sequence(F.lit(0), F.col("pieces") - 1)))
        .select(*FILTER, "attributes", "where", "sources.code", "piece", "pieces", "is_asked", *names)
        .repartition(tasks_for(held.count), "topic", "piece")
    )
    return kept(rows.groupBy("topic", "piece").applyInArrow(_searched(*asked), COSTS))


def _searched(conditions: Sequence[AnonymityCondition], ks: Sequence[int]) -> Callable[[pa.Table], pa.Table]:
    def searched(table: pa.Table) -> pa.Table:
        piece, pieces = table["piece"][0].as_py(), table["pieces"][0].as_py()
        topic = make_topic("any", table["attributes"][0].as_py())
        near = _Near(topic.attributes, table)
        rows: list[tuple[Any, ...]] = []
        asked = np.flatnonzero(table["is_asked"].is_valid().to_numpy())
        for at in asked[np.array([box_piece(table["box"][int(i)].as_py(), pieces) for i in asked]) == piece]:
            around, given = _levels(table, near.of(int(at)), int(at), topic)
            for condition in conditions:
                level = table[COLUMNS[condition]][int(at)].as_py()
                rows += [_row(around, given, condition, k, level) for k in ks]
        return pa.Table.from_pylist([dict(zip(_NAMES, row, strict=True)) for row in rows], _SCHEMA)

    return searched


def _row(around: Levels, given: Filter, condition: AnonymityCondition, k: int, level: int) -> tuple[Any, ...]:
    if level >= k:
        return condition.value, k, True, True, given.volume, 0.0
    shown = generalise(around, given, condition, k)
    return condition.value, k, False, shown is not None, given.volume, shown.added if shown else None


def box_piece(box: bytes, pieces: int) -> int:
    """Return which of a topic's pieces of work a filter belongs to."""
    return sum(box) % pieces


def _levels(table: pa.Table, rows: Iterable[int], at: int, topic: Any) -> tuple[Levels, Filter]:
    around = Levels()

    def read(row: int) -> Filter:
        return Filter.of(Interest(topic, parse_where(table["where"][row].as_py(), topic.attributes)))

    for row in rows:
        one = read(row)
        for source in table["code"][row].as_py():
            around.insert(one, source)
    return around, read(at)


class _Near:
    """Which filters of a topic make the smallest mergers with one of them."""

    def __init__(self, attributes: Sequence[Attribute], table: pa.Table) -> None:
        self._attributes = attributes
        self._lows, self._highs = ends_of(table["box"])

    def of(self, row: int) -> list[int]:
        """Return rows, that of the filter itself included."""
        count = self._lows.shape[1]
        if count <= NEAREST:
            return list(range(count))
        volumes = np.ones(count)
        for attribute, lows, highs in zip(self._attributes, self._lows, self._highs, strict=True):
            volumes *= _shares(attribute, lows, highs, row)
        volumes[row] = -1.0
        return [int(other) for other in np.argpartition(volumes, NEAREST)[:NEAREST]]


def _shares(attribute: Attribute, lows: Any, highs: Any, row: int) -> npt.NDArray[np.float64]:
    """Return of each filter the share of messages that its merger with one lets through on an attribute."""
    is_open = (lows < 0) | (lows[row] < 0)
    if isinstance(attribute, Number):
        width = np.maximum(highs, highs[row]) - np.minimum(lows, lows[row]) + 1
        return np.where(is_open, 1.0, width / (attribute.last + 1))
    return np.where(is_open | (lows != lows[row]), 1.0, LABEL_SHARE)


_NAMES = [column.split()[0] for column in COSTS.split(", ")]
_KINDS = [pa.string(), pa.int32(), pa.bool_(), pa.bool_(), pa.float64(), pa.float64()]
_SCHEMA = pa.schema(list(zip(_NAMES, _KINDS, strict=True)))
