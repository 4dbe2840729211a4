"""Trees as tables: every relay's way to the root, of every tree that a subscriber planned."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import DoubleType, LongType, StringType, StructField, StructType

from hushcast_analytics.trace_schemas import RUN
from hushcast_protocol.overlay.tree import Tree

WAYS = StructType(
    [
        RUN,
        StructField("mailbox", StringType()),
        StructField("token", StringType()),
        StructField("planned", DoubleType()),
        StructField("relay", StringType()),
        StructField("length", LongType()),
    ]
)
"""`length` transmissions lead from `relay` to the root of a tree, `planned` at that second for a token."""


def ways(truths: DataFrame) -> DataFrame:
    """Return (`WAYS`) the way from each relay to the root, for all trees among the truths."""
    trees = truths.where("kind = 'installed' and tree is not null")
    token = F.element_at("tokens", 1).alias("token")
    return trees.select("run", "mailbox", token, F.col("time").alias("planned"), "tree").mapInArrow(
        _walk, WAYS
    )


def _walk(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        for row in batch.to_pylist():
            levels = Tree(dict(row["tree"])).levels
            same = {
                name: pa.array([row[name]] * len(levels)) for name in ("run", "mailbox", "token", "planned")
            }
            found = {"relay": list(levels), "length": list(levels.values())}
            yield pa.RecordBatch.from_pydict({**same, **found}, to_arrow_schema(WAYS))
