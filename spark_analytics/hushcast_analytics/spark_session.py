"""The Spark session: one, with each setting's reason."""

from __future__ import annotations

import os
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyspark
from pyspark import SparkConf, SparkContext
from pyspark.java_gateway import launch_gateway
from pyspark.sql import SparkSession

LOCAL = "local[*]"  # all cores of this machine, no cluster
SHUFFLE_PARTITIONS = 16  # adaptive execution joins what is small; Spark's 200 cost a laptop seconds a shuffle
_LOGGING = Path(__file__).with_name("log4j2.properties")
DRIVER_MEMORY = "4g"  # in local mode the driver is the executor, too
LITTLE = {
    # To compile each of hundreds of plans takes several times as long as to interpret it over few rows.
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    # To plan anew after each stage takes longer than the stage.
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.shuffle.partitions": "2",
    # A filter for what a join will not need takes a job of its own, and megabytes a task, over any rows.
    "spark.sql.optimizer.runtime.bloomFilter.enabled": "false",
}
"""What helps where plans take longer than rows."""
_LITTLE_JAVA = (
    "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"  # the second compiler would never earn its time back
)
_FUNCTIONS = "org.apache.spark.sql.functions"
_CLASSES = ("functions", "PythonUtils", _FUNCTIONS, "org.apache.spark.sql.classic.SparkSession")


def open_session(
    master: str | None = None,
    name: str = "hushcast",
    *,
    little: bool = False,
    log: int | None = None,
    **settings: str,
) -> SparkSession:
    """Return the Spark session, started if there is none.

    `master` is a Spark master URL, `local[2]` or `spark://host:port`; unless given, that of `spark-submit`,
    else all cores of this machine. With `little` work on one machine, it is set for many plans over few rows.
    What a Java started here writes goes to the open file `log`. `settings` are Spark's own, with `_` for `.`,
    and win over those set here.
    """
    submitted = "PYSPARK_GATEWAY_PORT" in os.environ
    alone = (master or LOCAL).startswith("local") and not submitted
    java = _prepare(alone, submitted)
    chosen = {
        "spark.app.name": name,
        "spark.ui.enabled": "false",  # a port nobody asked for
        "spark.ui.showConsoleProgress": "false",  # progress is the command line's
        # To tell Java of each column which line made it took a twentieth of small analyses.
        "spark.python.sql.dataFrameDebugging.enabled": "false",
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
    if alone and little:
        chosen |= LITTLE
        java = f"{java} {_LITTLE_JAVA}"
    if master is not None or not submitted:
        chosen["spark.master"] = master or LOCAL
    if not submitted:
        chosen["spark.driver.memory"] = DRIVER_MEMORY
        chosen["spark.driver.extraJavaOptions"] = java
    if alone:
        # Spark binds to the machine's name otherwise, which is an address that others reach, or none at all.
        chosen |= {"spark.driver.host": "127.0.0.1", "spark.driver.bindAddress": "127.0.0.1"}
    chosen |= {name.replace("_", "."): value for name, value in settings.items()}
    if log is not None and not submitted and SparkContext._gateway is None:
        # Java inherits our standard error else, and warns there of what nobody can change.
        conf = SparkConf().setAll(list(chosen.items()))
        launch: Callable[..., Any] = launch_gateway
        SparkContext(conf=conf, gateway=launch(conf, {"stdout": log, "stderr": log}))
    builder = SparkSession.builder
    for key, value in chosen.items():
        builder = builder.config(key, value)
    session = builder.getOrCreate()
    _look_up_once(session)
    return session


def _prepare(alone: bool, submitted: bool) -> str:
    """Set in the environment what Spark needs where the surroundings would stop it; return Java's options."""
    # Spark would start its Python workers as `python3` of the PATH, which need not have our packages.
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    if not submitted:
        os.environ["SPARK_HOME"] = str(
            Path(pyspark.__file__).parent
        )  # another Spark does not go with our Python
    if alone:
        os.environ["PYSPARK_PYTHON"] = sys.executable  # one of another version is refused
        os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")  # the machine's name need not have an address
    options = f"-Dlog4j2.configurationFile={_LOGGING.as_uri()}"
    folder = _library_folder() if alone else None
    return options if folder is None else f"{options} -Djava.io.tmpdir={folder}"


def _library_folder() -> str | None:
    """Return where Java may unpack libraries to load them, if that cannot be /tmp, as it would."""
    folders = ["/tmp", tempfile.gettempdir(), "/var/tmp", str(Path.home()), str(Path.cwd())]  # noqa: S108
    for number, folder in enumerate(folders):
        if os.access(folder, os.W_OK) and not os.statvfs(folder).f_flag & os.ST_NOEXEC:
            return folder if number else None
    return None


def _look_up_once(session: SparkSession) -> None:
    """Keep the classes of Java that columns are made by.

    Java would search all of Spark's archives for them for each column: a twentieth of small analyses.
    """
    java: Any = session.sparkContext._jvm
    for name in _CLASSES:
        setattr(java, name, getattr(java, name))
    for functions in (java.functions, getattr(java, _FUNCTIONS)):
        for name in ("col", "lit"):
            setattr(functions, name, getattr(functions, name))


def wait_for_workers(
    session: SparkSession, seconds: float, progress: Callable[[str], None] = lambda text: None
) -> bool:
    """Tell whether the cluster gives this session a worker within so many seconds; on one machine at once."""
    if not (session.sparkContext.master or "").startswith("spark://"):
        return True
    progress("waiting for a worker of the cluster")
    give_up = time.monotonic() + seconds
    # The driver counts as one.
    while session.sparkContext._jsc.sc().getExecutorMemoryStatus().size() < 2:
        if time.monotonic() > give_up:
            return False
        time.sleep(0.5)
    return True


def part_done(session: SparkSession) -> float | None:
    """Return which share of the tasks is done that Spark is at, None if it is at none."""
    tracker = session.sparkContext.statusTracker()
    stages = [info for stage in tracker.getActiveStageIds() if (info := tracker.getStageInfo(stage))]
    tasks = sum(stage.numTasks for stage in stages)
    return sum(stage.numCompletedTasks for stage in stages) / tasks if tasks else None
