"""What a cluster and one machine have to agree on: a network, its figures, answers of a located feed.

As a program, `python same.py MASTER OUT SETTINGS`: prints them, and how many executors took part, as JSON.
"""

import json
import sys
from pathlib import Path

from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from hushcast_analytics.delivery_figures import summary
from hushcast_analytics.generator.generator_jobs import generate
from hushcast_analytics.generator.scenario import GeneratorScenario
from hushcast_analytics.spark_session import open_session

sys.path.append(str(Path(__file__).parents[1] / "located"))
from spark_same import by_spark

ASKED = GeneratorScenario(20, 2, publications=10, epochs=2, clients=0, up=5, down=2)


def made(spark: SparkSession, out: str) -> list[str]:
    traces = generate(spark, ASKED, out)
    found = []
    for table in (traces.observations, traces.truths):
        row = F.xxhash64(*(F.to_json(F.struct(F.col(column))) for column in table.columns))
        found.append(str(table.agg(F.count("*"), F.sum(row.cast("decimal(38)"))).first()))
    return [*found, str(summary(traces).collect())]


if __name__ == "__main__":
    spark = open_session(sys.argv[1], "same", **json.loads(sys.argv[3]))
    result = made(spark, sys.argv[2])
    located = by_spark(spark, Path(sys.argv[2]))
    print(json.dumps([*result, located, len(spark._jsc.sc().statusTracker().getExecutorInfos())]))
    spark.stop()
