"""Reasons: why a line of a trace is no record; in one place for all that is asked of one."""

from __future__ import annotations

import typing
from collections.abc import Sequence
from functools import reduce
from operator import or_
from typing import Any

from pyspark.sql import Column
from pyspark.sql import functions as F
from pyspark.sql.types import ArrayType, BooleanType, DoubleType, LongType, MapType, StructField

from hushcast_protocol.base.trace import SCHEMA, TraceLine
from hushcast_protocol.overlay.tree import Tree

CORRUPT = "corrupt"
"""The column in which Spark's parser leaves a line that it cannot read."""
MOST = 1 << 40
"""Of any whole number, and of seconds either way, in a record: epochs, bytes and counts are far below, and
sums over millions of records stay within 64 bits."""


def reason(record: type[TraceLine], fields: Sequence[StructField]) -> Column:
    """Return why a line in `value` is no record of this kind, or null if it is one.

    `fields` are those of the record, and columns beside it, with `schema` and `CORRUPT`.
    """
    line, version = F.col("value"), F.col("schema")
    # Spark's parser stops after the first object of a line: anything that follows would be lost silently.
    runs_on = ~line.endswith("}") | (F.locate('{"schema":', line, 2) > 0)
    found = F.when(F.trim(line) == "", "an empty line")
    found = found.when(F.col(CORRUPT).isNotNull(), "not one record in JSON")
    found = found.when(runs_on, "not one record in JSON")
    found = found.when(version.isNull(), "no schema version")
    other = F.concat(F.lit("schema version "), version.cast("string"), F.lit(f" instead of {SCHEMA}"))
    found = found.when(version != SCHEMA, other)
    for field in fields:
        if not field.nullable:
            found = found.when(F.col(field.name).isNull(), f"no {field.name}")
    known = typing.get_args(typing.get_type_hints(record)["kind"])
    found = found.when(~F.col("kind").isin(*known), "an unknown kind")
    for words, condition in _impossible(fields):
        found = found.when(condition, words)
    return found


def _impossible(fields: Sequence[StructField]) -> list[tuple[str, Column]]:
    """Return what no daemon writes and JSON can say, each with its words."""

    def of(kind: type) -> list[Column]:
        return [F.col(field.name) for field in fields if isinstance(field.dataType, kind)]

    numbers = of(LongType)
    found = [
        ("a number out of range", (F.greatest(*numbers) > MOST) | (F.least(*numbers) < 0)),
        # A number with a large exponent is read as infinite.
        ("a time out of range", reduce(or_, (F.abs(each) > MOST for each in of(DoubleType)))),
        ("a list with a gap", reduce(or_, (_has_gap(each) for each in of(ArrayType)))),
    ]
    return [*found, *(("a tree that is none", ~_is_tree(each)) for each in of(MapType))]


def _has_gap(values: Column) -> Column:
    return F.coalesce(F.exists(values, lambda each: each.isNull()), F.lit(False))


def _whole(tree: dict[Any, Any] | None) -> bool:
    return tree is None or Tree(tree).is_whole


_is_tree = F.udf(_whole, BooleanType(), useArrow=True)
