"""Growth: many runs on Spark, and what they come to: shares over days, and when one is reached."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pandas as pd
from pyspark.sql import DataFrame, SparkSession, Window
from pyspark.sql import functions as F

from benchmarks.admission.asked import Asked
from benchmarks.admission.days import COLUMNS, Run

PARTITIONS = 8


def days(spark: SparkSession, asked: Sequence[Asked]) -> DataFrame:
    """Return a row for each network (`which` of those asked for, `run`) and day; see `days.COLUMNS`.

    A run is drawn from its number, so partitions do not matter.
    """
    cases = tuple(asked)
    numbers = [(which, run) for which, one in enumerate(cases) for run in range(one.runs)]
    table = spark.createDataFrame(numbers, "which int, run int").repartition(min(PARTITIONS, len(numbers)))

    def draw(batches: Iterator[pd.DataFrame]) -> Iterator[pd.DataFrame]:
        for batch in batches:
            for row in batch.itertuples():
                rows = Run(cases[int(row.which)], int(row.run)).rows()
                yield pd.DataFrame(rows).assign(which=int(row.which))

    rows = table.mapInPandas(draw, f"which int, {COLUMNS}")
    return rows.withColumn("share", F.col("sybils") / (F.col("honest") + F.col("sybils")))


def by_day(rows: DataFrame) -> DataFrame:
    """Return (`which`, `day`, `share`, `low`, `high`, `seated`): means, and where nine tenths lie."""
    return rows.groupBy("which", "day").agg(
        F.mean("share").alias("share"),
        F.percentile("share", 0.05).alias("low"),
        F.percentile("share", 0.95).alias("high"),
        F.mean("seated_honest").alias("seated"),
    )


def reached(rows: DataFrame, share: float) -> DataFrame:
    """Return (`which`, `runs`, `after`): in how many runs a share of the seats is reached, in how many days.

    A row is of the end of its day; between two of them a share is taken to grow evenly.
    """
    before = F.lag("share", 1, 0.0).over(Window.partitionBy("which", "run").orderBy("day"))
    moments = rows.withColumn("before", before).where((F.col("share") >= share) & (F.col("before") < share))
    moments = moments.withColumn(
        "moment", F.col("day") + (share - F.col("before")) / (F.col("share") - F.col("before"))
    )
    first = moments.groupBy("which", "run").agg(F.min("moment").alias("moment"))
    return first.groupBy("which").agg(F.count("*").alias("runs"), F.mean("moment").alias("after"))


def honest_newcomers(rows: DataFrame) -> DataFrame:
    """Return (`which`, `seated`, `delay`, `left`): honest newcomers seated, their days, and who waits."""
    last = Window.partitionBy("which", "run").orderBy(F.desc("day"))
    ends = rows.withColumn("place", F.row_number().over(last)).where("place = 1")
    left = ends.groupBy("which").agg(F.mean("waiting_honest").alias("left"))
    runs = rows.groupBy("which", "run").agg(
        F.sum("seated_honest").alias("seated"), F.sum("delay").alias("delay")
    )
    means = runs.groupBy("which").agg(
        F.mean("seated").alias("seated"), F.try_divide(F.sum("delay"), F.sum("seated")).alias("delay")
    )
    return means.join(left, "which")
