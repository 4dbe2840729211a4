"""Subscriptions as a table: read from a file of lines, each line by the code that reads it elsewhere."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from hashlib import blake2b
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from hushcast_analytics.errors import TracesError
from hushcast_analytics.filters.boxes import OPEN
from hushcast_analytics.keeping import kept
from hushcast_protocol.base.errors import UsageError
from hushcast_protocol.brokers.filters import Filter, Side
from hushcast_protocol.brokers.subscriptions import Topics, read_subscription
from hushcast_protocol.content.attributes import write_attribute
from hushcast_protocol.content.predicates import write_where
from hushcast_protocol.content.topics import Topic

SUBSCRIPTIONS = (
    "topic binary, name string, attributes array<string>, where string, box binary, volume double, "
    "source binary"
)
"""A row is a subscription. `topic` tells topics apart, `box` is the filter as `boxes.Boxes` takes it, two
64-bit integers for each attribute; `source` tells subscribers apart. Whatever reads subscriptions from
elsewhere, such as what brokers saw, makes this table."""

_READ = f"at long, wrong string, {SUBSCRIPTIONS}"
_NAMES = [column.split()[0] for column in _READ.split(", ")]
_LABEL_BITS = 62  # of a label's hash: 10⁶ labels make no two alike in all but 1 of 10⁷ files


def read_file(spark: SparkSession, file: Path) -> DataFrame:
    """Return the subscriptions in a file, lines as `hushcast filters levels` takes them, computed once.

    Raises `TracesError` with the number of the first line that cannot be used, or if there is none in it.
    """
    alone = not file.stat().st_mode & 0o077
    lines = spark.read.text(str(file.resolve()), lineSep="\n").select(
        F.monotonically_increasing_id().alias("at"), F.col("value").cast("binary").alias("line")
    )
    read = kept(lines.mapInArrow(lambda batches: _read(batches, alone), _READ))
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
    topics: Topics = {}
    known: dict[int, tuple[bytes, list[str]]] = {}
    for batch in batches:
        rows = [
            _row(at, line, topics, known, alone)
            for at, line in zip(*(batch.column(i).to_pylist() for i in (0, 1)), strict=True)
            if line.strip()
        ]
        columns: list[Any] = list(zip(*rows, strict=True)) or [[] for _ in _NAMES]
        yield pa.RecordBatch.from_arrays(
            [pa.array(column, kind) for column, kind in zip(columns, _KINDS, strict=True)], _NAMES
        )


_TEXT, _BYTES = pa.string(), pa.binary()
_KINDS = [pa.int64(), _TEXT, _BYTES, _TEXT, pa.list_(_TEXT), _TEXT, _BYTES, pa.float64(), _BYTES]


def _row(
    at: int, line: bytes, topics: Topics, known: dict[int, tuple[bytes, list[str]]], alone: bool
) -> tuple[Any, ...]:
    try:
        source, one = read_subscription(line, topics, alone=alone)
    except UsageError as error:
        return at, str(error), *[None] * 7
    topic = one.topic
    if id(topic) not in known:  # `topics` keeps it, so its id stays its own
        known[id(topic)] = _identity(topic), [write_attribute(each) for each in topic.attributes]
    identity, attributes = known[id(topic)]
    where = write_where(one.predicate)
    # JSON can write half of a surrogate pair, which is no Unicode.
    name = source.encode("utf-8", "surrogatepass")
    return at, None, identity, topic.name, attributes, where, box_of(one), one.volume, name


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
