"""The Spark session: one, with each setting's reason."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from pyspark.sql import SparkSession

LOCAL = "local[*]"  # all cores of this machine, no cluster
SHUFFLE_PARTITIONS = 16  # adaptive execution joins what is small; Spark's 200 cost a laptop seconds a shuffle
_LOGGING = Path(__file__).with_name("log4j2.properties")
DRIVER_MEMORY = "4g"  # in local mode the driver is the executor, too


def open_session(master: str | None = None, name: str = "hushcast", **settings: str) -> SparkSession:
    """Return the Spark session, started if there is none.

    `master` is a Spark master URL, `local[2]` or `spark://host:port`; unless given, that of `spark-submit`,
    else all cores of this machine. `settings` are Spark's own, with `_` for `.`, and win over those set here.
    """
    # Spark would start its Python workers as `python3` of the PATH, which need not have our packages.
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    builder = SparkSession.builder.appName(name)
    chosen = {
        "spark.ui.enabled": "false",  # a port nobody asked for
        "spark.ui.showConsoleProgress": "false",  # progress is the command line's
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.shuffle.partitions": str(SHUFFLE_PARTITIONS),
        "spark.sql.execution.arrow.pyspark.enabled": "true",
        # Partitions of a run are replaced when it is read or generated again, others stay.
        "spark.sql.sources.partitionOverwriteMode": "dynamic",
        # A trace directory named 2026 would else make the column `run` an integer.
        "spark.sql.sources.partitionColumnTypeInference.enabled": "false",
        # As many partitions are written at once; beyond, all rows of a task are sorted first.
        "spark.sql.maxConcurrentOutputFileWriters": "32",
        "spark.sql.parquet.compression.codec": "zstd",  # hex strings: a third of snappy's size
    }
    submitted = "PYSPARK_GATEWAY_PORT" in os.environ
    if master is not None or not submitted:
        chosen["spark.master"] = master or LOCAL
    if not submitted:
        chosen["spark.driver.memory"] = DRIVER_MEMORY
        chosen["spark.driver.extraJavaOptions"] = f"-Dlog4j2.configurationFile={_LOGGING.as_uri()}"
    if (master or LOCAL).startswith("local") and not submitted:
        # Spark binds to the machine's name otherwise, which is an address that others reach, or none at all.
        chosen |= {"spark.driver.host": "127.0.0.1", "spark.driver.bindAddress": "127.0.0.1"}
    chosen |= {name.replace("_", "."): value for name, value in settings.items()}
    for key, value in chosen.items():
        builder = builder.config(key, value)
    return builder.getOrCreate()
