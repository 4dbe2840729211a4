"""Reasons: why a line of a trace is no record; in one place for all that is asked of one."""

from __future__ import annotations

import typing
from collections.abc import Sequence
from typing import Any

from pyspark.sql import Column
from pyspark.sql import functions as F
from pyspark.sql.types import ArrayType, BooleanType, DataType, DoubleType, LongType, MapType, StructField

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
    # Spark's parser stops after the first object of a line: anything that follows would be lost silently.
    runs_on = """not endswith(value, '}') or contains(substr(value, 2), '{"schema":')"""
    known = typing.get_args(typing.get_type_hints(record)["kind"])
    kinds = ", ".join(f"'{kind}'" for kind in known)
    found = {
        "trim(value) = ''": "'an empty line'",
        f"{CORRUPT} is not null or {runs_on}": "'not one record in JSON'",
        "schema is null": "'no schema version'",
        f"schema != {SCHEMA}": f"concat('schema version ', schema, ' instead of {SCHEMA}')",
        **{f"{each.name} is null": f"'no {each.name}'" for each in fields if not each.nullable},
        f"kind not in ({kinds})": "'an unknown kind'",
        **_impossible(fields),
    }
    cases = " ".join(f"when {condition} then {words}" for condition, words in found.items())
    trees = [F.when(~_is_tree(tree), "a tree that is none") for tree in _of(fields, MapType)]
    return F.coalesce(F.expr(f"case {cases} end"), *trees)


def _impossible(fields: Sequence[StructField]) -> dict[str, str]:
    """Return what no daemon writes and JSON can say, each with its words."""
    numbers = ", ".join(_of(fields, LongType))
    # A number with a large exponent is read as infinite.
    times = (f"abs({time}) > {MOST}" for time in _of(fields, DoubleType))
    gaps = (f"exists({values}, each -> each is null)" for values in _of(fields, ArrayType))
    return {
        f"greatest({numbers}) > {MOST} or least({numbers}) < 0": "'a number out of range'",
        " or ".join(times): "'a time out of range'",
        " or ".join(gaps): "'a list with a gap'",
    }


def _of(fields: Sequence[StructField], kind: type[DataType]) -> list[str]:
    return [field.name for field in fields if isinstance(field.dataType, kind)]


def _whole(tree: dict[Any, Any] | None) -> bool:
    return tree is None or Tree(tree).is_whole


_is_tree = F.udf(_whole, BooleanType(), useArrow=False)
