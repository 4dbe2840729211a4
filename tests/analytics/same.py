"""What a cluster and one machine have to agree on: a network, its figures, answers of a located feed.

As a program, `spark-submit … same.py OUT SETTING…`: prints them, how many executors took part, what each
setting came to, and how many rows of a kept table are read while an executor dies, as JSON.
"""

import json
import os
import signal
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pyarrow as pa
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parents[1]))
    import helper_folders  # noqa: F401

from spark_same import by_spark

from hushcast_analytics.checkpoints import kept
from hushcast_analytics.delivery_figures import summary
from hushcast_analytics.generator.generator_jobs import generate
from hushcast_analytics.generator.scenario import GeneratorScenario
from hushcast_analytics.spark_session import open_session

ASKED = GeneratorScenario(20, 2, publications=10, epochs=2, clients=0, up=5, down=2)
ROWS = 1000


def made(spark: SparkSession, out: str) -> list[str]:
    traces = generate(spark, ASKED, out)
    found = []
    for table in (traces.observations, traces.truths):
        row = F.xxhash64(*(F.to_json(F.struct(F.col(column))) for column in table.columns))
        found.append(str(table.agg(F.count("*"), F.sum(row.cast("decimal(38)"))).first()))
    return [*found, str(summary(traces).collect())]


def read_in_spite(spark: SparkSession, out: str) -> int:
    """Count the rows of a kept table whose first reader's executor dies, with what it keeps."""
    return kept(spark.range(0, ROWS, 1, 4)).mapInArrow(_fatal(Path(out) / "died"), "id long").count()


def _fatal(died: Path) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    def read(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        try:
            died.touch(exist_ok=False)
        except FileExistsError:
            yield from batches
            return
        # Workers are children of a daemon of Python, which is one of the executor.
        executor = Path(f"/proc/{os.getppid()}/stat").read_text().rpartition(")")[2].split()[1]
        os.kill(int(executor), signal.SIGKILL)

    return read


if __name__ == "__main__":
    out, *settings = sys.argv[1:]
    spark = open_session(name="same")
    result = [*made(spark, out), by_spark(spark, Path(out))]
    result.append(len(spark._jsc.sc().statusTracker().getExecutorInfos()))
    result.append({name: spark.conf.get(name) for name in settings})
    print(json.dumps([*result, read_in_spite(spark, out)]))
    spark.stop()
