"""The tables: observations and truths as Spark schemas, derived from the lines of `trace.py`.

Every field of a record is a column of its name; the column `run` tells the runs apart that are analysed
together. Byte strings stay hex strings, what does not apply is null, a `tree` is a map from each relay to its
next hop (null for the root).
"""

from __future__ import annotations

import dataclasses
import types
import typing
from typing import Any

from pyspark.sql.types import (
    ArrayType,
    BooleanType,
    DataType,
    DoubleType,
    LongType,
    MapType,
    StringType,
    StructField,
    StructType,
)

from hushcast_protocol.base.trace import Observation, TraceLine, Truth

RUN = StructField("run", StringType(), nullable=False)
"""Which run a row belongs to: a name, unique within one analysis."""

EPOCHS_A_DAY = 24  # as the protocol has it; a test compares

PARTITIONS = ("run", "epoch")
"""How both tables lie in Parquet."""


_SCALARS: dict[Any, DataType] = {
    str: StringType(),
    int: LongType(),
    float: DoubleType(),
    bool: BooleanType(),
}


def schema_of(record: type[TraceLine]) -> StructType:
    """Return the Spark schema of a kind of record, `run` first, then its fields in their order."""
    hints = typing.get_type_hints(record)
    fields = [
        StructField(field.name, _column(hints[field.name]), field.default is None)
        for field in dataclasses.fields(record)
    ]
    return StructType([RUN, *fields])


def _column(hint: Any) -> DataType:
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if origin is typing.Literal:
        return StringType()
    if origin in (typing.Union, types.UnionType):
        (inner,) = (argument for argument in arguments if argument is not type(None))
        return _column(inner)
    if origin is tuple:
        return ArrayType(_column(arguments[0]), containsNull=False)
    if origin is dict:
        return MapType(_column(arguments[0]), _column(arguments[1]), valueContainsNull=True)
    return _SCALARS[hint]


OBSERVATIONS = schema_of(Observation)
"""What daemons saw. An adversary's view is the rows whose `node` is one of the adversary's daemons."""

TRUTHS = schema_of(Truth)
"""What only the daemon that did it knows."""

REJECTED = StructType(
    [
        RUN,
        StructField("file", StringType(), nullable=False),
        StructField("reason", StringType(), nullable=False),
        StructField("line", StringType(), nullable=False),
    ]
)
"""Lines of trace files that are no records: from which file, why not, and their first characters."""
