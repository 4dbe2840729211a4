"""Subscriptions as a table: read from a file of lines, each line by the code that reads it elsewhere."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from hashlib import blake2b
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from hushcast_analytics.checkpoints import kept
from hushcast_analytics.errors import TracesError
from hushcast_analytics.filters.boxes import OPEN
from hushcast_analytics.trace_sources import check_name
from hushcast_protocol.base.errors import UsageError
from hushcast_protocol.brokers.filters import Filter, Side
from hushcast_protocol.brokers.subscription_lines import KnownTopics, read_subscription
from hushcast_protocol.content.attributes import write_attribute
from hushcast_protocol.content.predicates import write_where
from hushcast_protocol.content.topics import Topic

SUBSCRIPTIONS = (
    "topic binary, name string, attributes array<string>, where string, box binary, volume double, "
    "source binary, broker int"
)
"""A row is a subscription. `topic` tells topics apart, `box` is the filter as `boxes.Boxes` takes it, two
64-bit integers for each attribute; `source` tells subscribers apart, and `broker` is the number of the edge
broker that one is at, null where that is not known. Whatever reads subscriptions from elsewhere, such as what
brokers saw (`traced_subscriptions.py`), makes this table."""

READ = f"wrong string, {SUBSCRIPTIONS}"
"""The same while it is read: what is `wrong` with one that cannot be, else null."""
_WITH_PLACE = f"at long, {READ}"
Row = tuple[Any, ...]
NOTHING: Row = (None,) * len(SUBSCRIPTIONS.split(", "))
"""What stands beside what is wrong."""
_LABEL_BITS = 62  # of a label's hash: 10⁶ labels make no two alike in all but 1 of 10⁷ files


def read_file(spark: SparkSession, file: Path) -> DataFrame:
    """Return the subscriptions in a file, lines as `hushcast lab filters levels` takes them, computed once.

    Raises `TracesError` with the number of the first line that cannot be used, if there is none in it, or
    if Spark would read another file for this one.
    """
    check_name(file.resolve())
    alone = not file.stat().st_mode & 0o077
    lines = spark.read.text(str(file.resolve()), lineSep="\n").select(
        F.monotonically_increasing_id().alias("at"), F.col("value").cast("binary").alias("line")
    )
    read = kept(lines.mapInArrow(lambda batches: _read(batches, alone), _WITH_PLACE))
    first = read.where("wrong is not null").orderBy("at").select("at", "wrong").first()
    if first is not None:
        raise TracesError(f"{file}, line {_number(lines, first['at'])}: {first['wrong']}")
    if read.isEmpty():
        raise TracesError(f"{file}: there are no subscriptions in it")
    return read.drop("at", "wrong")


def _number(lines: DataFrame, at: int) -> int:
    """Return the number of a line by its id: the partition's in the upper bits, a count in the lower 33."""
    part = at >> 33
    return lines.where(F.shiftright("at", 33) < part).count() + (at & (1 << 33) - 1) + 1


def _read(batches: Iterable[pa.RecordBatch], alone: bool) -> Iterator[pa.RecordBatch]:
    topics: KnownTopics = {}
    described = SubscriptionRows()
    for batch in batches:
        rows = [
            (at, *_row(line, topics, described, alone))
            for at, line in zip(*(batch.column(i).to_pylist() for i in (0, 1)), strict=True)
            if line.strip()
        ]
        yield batch_of(_WITH_PLACE, rows)


def _row(line: bytes, topics: KnownTopics, described: SubscriptionRows, alone: bool) -> Row:
    try:
        source, one = read_subscription(line, topics, alone=alone)
    except UsageError as error:
        return str(error), *NOTHING
    # JSON can write half of a surrogate pair, which is no Unicode.
    return None, *described.row(one, source.encode("utf-8", "surrogatepass"), None)


_KINDS = {
    "int": pa.int32(),
    "long": pa.int64(),
    "double": pa.float64(),
    "string": pa.string(),
    "binary": pa.binary(),
    "array<string>": pa.list_(pa.string()),
}


def batch_of(table: str, rows: Sequence[Row]) -> pa.RecordBatch:
    """Return rows of a table as Spark takes them; `table` has its columns, as `SUBSCRIPTIONS` does."""
    names, kinds = zip(*(column.split() for column in table.split(", ")), strict=True)
    columns: list[Any] = list(zip(*rows, strict=True)) or [[] for _ in names]
    arrays = [pa.array(column, _KINDS[kind]) for column, kind in zip(columns, kinds, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, names)


class SubscriptionRows:
    """Filters as rows; topics that were met before are not described anew."""

    def __init__(self) -> None:
        self._known: dict[int, tuple[Topic, bytes, list[str]]] = {}  # with the topic, so its id stays its own

    def row(self, one: Filter, source: bytes, broker: int | None, network: bytes = b"") -> Row:
        """Return a row of `SUBSCRIPTIONS`; topics of two networks are never the same."""
        topic = one.topic
        if id(topic) not in self._known:
            attributes = [write_attribute(each) for each in topic.attributes]
            self._known[id(topic)] = topic, _identity(topic), attributes
        _, identity, attributes = self._known[id(topic)]
        where = write_where(one.predicate)
        return network + identity, topic.name, attributes, where, box_of(one), one.volume, source, broker


def _identity(topic: Topic) -> bytes:
    secret = topic.secret.reveal() if topic.secret is not None else b""
    return blake2b(bytes([topic.secret is not None]) + secret + topic.schema, digest_size=16).digest()


def box_of(one: Filter) -> bytes:
    """Return a filter's box: the lowest and the highest of each attribute, as 64-bit integers."""
    return np.array([_ends(side) for side in one.sides], "<i8").tobytes()


def _ends(side: Side) -> tuple[int, int]:
    if side is None:
        return OPEN
    if isinstance(side, tuple):
        return side
    number = int.from_bytes(blake2b(side.encode(), digest_size=8).digest(), "little") >> (64 - _LABEL_BITS)
    return number, number
