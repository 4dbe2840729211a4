"""The levels of all filters on Spark, and for a sample who stands behind each, by edge broker."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from hushcast_analytics.checkpoints import kept
from hushcast_analytics.filters.distinct_filters import DistinctFilters, in_pieces, placed
from hushcast_analytics.filters.topic_levels import Crowd, TopicLevels, codes_of, size_of
from hushcast_protocol.brokers.anonymity_conditions import AnonymityCondition

COLUMNS = {condition: condition.value.replace("-", "_") for condition in AnonymityCondition}
"""The column of each condition's levels."""
_ROWS = ", ".join(f"{name} int" for name in COLUMNS.values())
LEVELS = f"topic binary, box binary, {_ROWS}, behind binary"
"""`behind` has, for filters of the sample, sources by condition and broker, as 32-bit integers; else null."""
_KINDS = [pa.binary(), pa.binary(), *[pa.int32()] * len(COLUMNS), pa.binary()]


def levels(held: DistinctFilters, sampled: float) -> DataFrame:
    """Return a row for each filter, computed once; `sampled` is the share of the filters in the sample."""
    watched = (F.col("chance") < sampled).alias("watched")
    pieces = in_pieces(held, ["sources", watched])
    return kept(pieces.groupBy("topic", "piece", "pieces").applyInArrow(_of_piece(held.brokers), LEVELS))


def _of_piece(brokers: int) -> Callable[[pa.Table], pa.Table]:
    def of_piece(table: pa.Table) -> pa.Table:
        topic, piece, pieces = (table[name][0].as_py() for name in ("topic", "piece", "pieces"))
        here = placed(table)
        found = TopicLevels(here.boxes, here.sources)
        # In a row, so that pieces share little of what they remember of filters above theirs.
        share = np.array_split(here.boxes.in_place(), pieces)[piece]
        watched = table["watched"].to_numpy()[here.order]
        rows = []
        for slot in map(int, np.sort(share)):
            crowds = found.crowds(slot)
            behind = by_broker(crowds, here.brokers, brokers).tobytes() if watched[slot] else None
            rows.append((*map(size_of, crowds), behind))
        columns = list(zip(*rows, strict=True)) or [()] * (len(COLUMNS) + 1)
        boxes = table["box"].combine_chunks().take(pa.array(here.order[np.sort(share)]))
        arrays = [pa.array([topic] * len(rows), pa.binary()), boxes]
        arrays += [pa.array(column, kind) for column, kind in zip(columns, _KINDS[2:], strict=True)]
        return pa.Table.from_arrays(arrays, schema=_SCHEMA)

    return of_piece


def by_broker(crowds: tuple[Crowd, ...], broker_of: np.ndarray, brokers: int) -> np.ndarray:
    """Return how many of each crowd's sources are behind each edge broker."""
    return np.stack([np.bincount(broker_of[codes_of(crowd)], minlength=brokers) for crowd in crowds]).astype(
        "<i4"
    )


_SCHEMA = pa.schema(list(zip(["topic", "box", *COLUMNS.values(), "behind"], _KINDS, strict=True)))
