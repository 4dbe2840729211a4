"""The tables have the columns of the trace records, and no others."""

import dataclasses

import pytest

from hushcast_analytics.trace_schemas import OBSERVATIONS, TRUTHS
from hushcast_protocol.base.trace import Observation, Truth


@pytest.mark.parametrize(("record", "table"), [(Observation, OBSERVATIONS), (Truth, TRUTHS)])
def test_columns_are_run_and_the_fields(record, table):
    assert table.names == ["run", *(field.name for field in dataclasses.fields(record))]
    required = [field.name for field in table.fields if not field.nullable]
    assert required == ["run", "node", "time", "epoch", "kind"]


def test_types_of_each_shape():
    assert OBSERVATIONS["time"].dataType.simpleString() == "double"
    assert OBSERVATIONS["kind"].dataType.simpleString() == "string"
    assert OBSERVATIONS["tokens"].dataType.simpleString() == "array<string>"
    assert OBSERVATIONS["popcount"].dataType.simpleString() == "bigint"
    assert OBSERVATIONS["readable"].dataType.simpleString() == "boolean"
    assert TRUTHS["tree"].dataType.simpleString() == "map<string,string>"
    assert TRUTHS["tree"].dataType.valueContainsNull
