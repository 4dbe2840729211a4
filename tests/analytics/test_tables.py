"""The tables have the columns of the trace records, and no others; little ones lie in one part."""

import dataclasses

import pytest
from pyspark.sql import SparkSession

from hushcast_analytics.checkpoints import LITTLE_DATA, is_little, kept, let_go, small
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


def joined(spark: SparkSession) -> str:
    """Return how Spark would join two tables, one of which is kept and one small."""
    rows = kept(spark.range(8).withColumnRenamed("id", "number"))
    plan: str = rows.join(small(spark.range(4).toDF("number")), "number")._jdf.queryExecution().toString()
    let_go(rows)
    return plan


@pytest.mark.spark
def test_of_little_data_what_is_kept_lies_in_one_part_and_is_looked_up(spark: SparkSession) -> None:
    assert is_little(spark.range(8))
    assert kept(spark.range(0, 8, 1, 4)).rdd.getNumPartitions() == 1
    assert "ShuffledHashJoin" in joined(spark)


@pytest.mark.spark
def test_one_part_a_shuffle_alone_does_not_say_that_data_is_little(spark: SparkSession) -> None:
    """Somebody may want that of much, which no memory holds."""
    spark.conf.set(LITTLE_DATA, "false")
    try:
        assert not is_little(spark.range(8))
        assert kept(spark.range(0, 8, 1, 4)).rdd.getNumPartitions() == 4
        assert "BroadcastHashJoin" in joined(spark)
    finally:
        spark.conf.set(LITTLE_DATA, "true")
