"""The Spark session: one, with each setting's reason."""

from __future__ import annotations

import codecs
import locale
import os
import re
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pyspark
from py4j.java_gateway import JavaClass, JavaMember
from pyspark import SparkConf, SparkContext
from pyspark.java_gateway import launch_gateway
from pyspark.sql import SparkSession

from hushcast_analytics.checkpoints import LITTLE_DATA

LOCAL = "local[*]"  # all cores of this machine, no cluster
SHUFFLE_PARTITIONS = 16  # of one machine: adaptive execution joins what is small; 200 cost seconds a shuffle
CLUSTER_PARTITIONS = 200  # Spark's own number
ROWS_A_PARTITION = 500_000  # of the data, from which on there are more: some 100 MB that a core has to sort
LITTLE_ROWS = 500_000  # up to which Spark spends more time on its plans than on rows; measured with 90,000
_MASTER = re.compile(r"^\s*spark\.master(?:\s*[=:]\s*|\s+)(\S+)", re.MULTILINE)
_LOGGING = Path(__file__).with_name("log4j2.properties")
DRIVER_MEMORY = "4g"  # in local mode the driver is the executor, too
LITTLE_MEMORY = "640m"  # Java takes what it may before it looks for garbage; below 471m Spark refuses
LITTLE = {
    LITTLE_DATA: "true",
    # To compile each of hundreds of plans takes several times as long as to interpret it over few rows.
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    # To plan anew after each stage takes longer than the stage.
    "spark.sql.adaptive.enabled": "false",
    # Steps beside each other (`analysis.py`) keep the cores busy: parts would cost more than rows.
    "spark.sql.shuffle.partitions": "1",
    # A filter for what a join will not need takes a job of its own, and megabytes a task, over any rows.
    "spark.sql.optimizer.runtime.bloomFilter.enabled": "false",
    # What is in one part meets where it is (`little_in_one`): a broadcast takes a job for each join.
    "spark.sql.autoBroadcastJoinThreshold": "-1",
    # Spark takes a join for as large as both sides multiplied, and would divide it by rows' keys: into one
    # part again. Of files and tables taken for nothing no join is large.
    "spark.sql.sources.fileCompressionFactor": "1e-12",
    "spark.sql.defaultSizeInBytes": "1",
    # As many parts as cores read hundreds of small files, else a dozen.
    "spark.sql.files.openCostInBytes": "65536",
    # It joins before it puts rows into one part, and would bring them together again.
    "spark.sql.optimizer.excludedRules": "org.apache.spark.sql.catalyst.optimizer.PushDownLeftSemiAntiJoin",
    # To look for what two columns compute alike takes longer than to compute it twice.
    "spark.sql.subexpressionElimination.enabled": "false",
    # To find what is computed twice, to infer conditions and to check each step of planning takes longer
    # than any of it saves.
    "spark.sql.exchange.reuse": "false",
    "spark.sql.constraintPropagation.enabled": "false",
    "spark.sql.lightweightPlanChangeValidation": "false",
    "spark.sql.optimizer.windowGroupLimitThreshold": "-1",
    # For each column Spark would look in Java's stack for the line that made it, and there is none of ours.
    "spark.sql.dataFrameQueryContext.enabled": "false",
    # Else Spark looks through the code of each join for what it refers to.
    "spark.sql.execution.usePartitionEvaluator": "true",
    # Each step of a plan takes a page of memory, of 4 MB unless told, and Java clears it first.
    "spark.buffer.pageSize": "256k",
    # Of what is kept, each hundredth row has its class described anew.
    "spark.serializer.objectStreamReset": "10000",
    # Spark describes each plan for pages that nobody sees.
    "spark.sql.ui.explainMode": "simple",
    "spark.sql.debug.maxToStringFields": "1",
}
"""What helps where plans take longer than rows."""
DEPENDED_ON = {
    "spark.sql.session.timeZone": "UTC",
    # Partitions of a run are replaced when it is read or generated again, others stay.
    "spark.sql.sources.partitionOverwriteMode": "dynamic",
    # A trace directory named 2026 would else make the column `run` an integer.
    "spark.sql.sources.partitionColumnTypeInference.enabled": "false",
}
"""What results depend on: nobody's settings win over these."""
CHOSEN = {
    "spark.ui.enabled": "false",  # a port nobody asked for
    # To tell Java of each column which line made it took a twentieth of small analyses.
    "spark.python.sql.dataFrameDebugging.enabled": "false",
    "spark.sql.execution.arrow.pyspark.enabled": "true",
    # As many partitions are written at once; beyond, all rows of a task are sorted first.
    "spark.sql.maxConcurrentOutputFileWriters": "32",
    "spark.sql.parquet.compression.codec": "zstd",  # hex strings: a third of snappy's size
}
"""What suits most; `spark-submit` and `spark-defaults.conf` win over it."""
ALONE = {
    # Spark binds to the machine's name otherwise, which is an address that others reach, or none at all.
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
}
"""The same, on one machine."""
_LITTLE_JAVA = " ".join(
    (
        "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",  # the second compiler would never earn its time back
        # Room for what planning makes, loads and compiles: to collect and to sweep it takes longer.
        "-XX:NewRatio=1 -XX:MetaspaceSize=256m -XX:ReservedCodeCacheSize=240m -XX:-UseCodeCacheFlushing",
        # Spark's own classes need no proof, which takes longer than to load them.
        "-XX:+UnlockDiagnosticVMOptions -XX:-BytecodeVerificationRemote -XX:+IgnoreUnrecognizedVMOptions",
    )
)
_CLASSES = (
    *("functions", "PythonUtils", "PythonSQLUtils", "org.apache.spark.sql.functions"),
    *("org.apache.spark.sql.expressions.Window", "org.apache.spark.sql.classic.SparkSession"),
)


def open_session(
    master: str | None = None,
    name: str = "hushcast",
    *,
    rows: int | None = None,
    log: int | None = None,
    **settings: str,
) -> SparkSession:
    """Return the Spark session, started if there is none.

    `master` is a Spark master URL, `local[2]` or `spark://host:port`; unless given, `default_master`. `rows`
    are about how many there are to read, None where nobody knows: into how many parts work is cut follows
    from them, and with few on one machine it is set for many plans over few rows. What a Java started here
    writes goes to the open file `log`. `settings` are Spark's own, with `_` for `.`. They win over those of
    `spark-submit` and `spark-defaults.conf`, which win over those set here, but for `DEPENDED_ON`.
    """
    submitted = "PYSPARK_GATEWAY_PORT" in os.environ
    master = master or default_master()
    alone = master is not None and master.startswith("local") and not submitted
    is_small = alone and rows is not None and rows <= LITTLE_ROWS
    java = _prepare(alone, submitted)
    asked = {name.replace("_", "."): value for name, value in settings.items()}
    if master is not None:
        asked["spark.master"] = master
    if not submitted:
        asked["spark.app.name"] = name
        asked["spark.ui.showConsoleProgress"] = "false"  # progress is the command line's
    if SparkContext._gateway is None:
        memory = LITTLE_MEMORY if is_small else DRIVER_MEMORY
        _launch(asked, f"{java} {_LITTLE_JAVA}" if is_small else java, memory, log)
    # Java has them all now, from wherever they were given.
    given = {key for key, _ in SparkConf().getAll()}
    ours = CHOSEN | _parts(alone, rows) | (ALONE if alone else {}) | (LITTLE if is_small else {})
    chosen = {key: value for key, value in ours.items() if key not in given} | DEPENDED_ON | asked
    builder = SparkSession.builder
    for key, value in chosen.items():
        builder = builder.config(key, value)
    session = builder.getOrCreate()
    _look_up_once(session)
    return session


def _parts(alone: bool, rows: int | None) -> dict[str, str]:
    parts = max(SHUFFLE_PARTITIONS if alone else CLUSTER_PARTITIONS, (rows or 0) // ROWS_A_PARTITION)
    return {"spark.sql.shuffle.partitions": str(parts)}


def default_master() -> str | None:
    """Return the master where a command names none: that of `spark-defaults.conf`, else all cores here.

    None where `spark-submit` has settled it.
    """
    if "PYSPARK_GATEWAY_PORT" in os.environ:
        return None
    folder = os.environ.get("SPARK_CONF_DIR") or Path(pyspark.__file__).parent / "conf"
    with suppress(OSError):
        # Java's form of settings: the last of a name counts.
        found = _MASTER.findall((Path(folder) / "spark-defaults.conf").read_text(errors="replace"))
        return found[-1] if found else LOCAL
    return LOCAL


def _launch(asked: dict[str, str], java: str, memory: str, log: int | None) -> None:
    """Start Java, or meet the one that `spark-submit` started.

    What suits it stands where Spark looks last, below all settings. What it writes goes to `log`: it inherits
    our standard error else, and warns there of what nobody can change.
    """
    conf = SparkConf(loadDefaults=False).setAll(list(asked.items()))
    before = {name: os.environ.get(name) for name in ("SPARK_DRIVER_MEMORY", "SPARK_SUBMIT_OPTS")}
    os.environ.setdefault("SPARK_DRIVER_MEMORY", memory)
    os.environ["SPARK_SUBMIT_OPTS"] = f"{java} {before['SPARK_SUBMIT_OPTS'] or ''}".strip()
    launch: Callable[..., Any] = launch_gateway
    try:
        gateway = launch(conf, {} if log is None else {"stdout": log, "stderr": log})
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value
    SparkContext._ensure_initialized(gateway=gateway)


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
    if codecs.lookup(locale.getencoding()).name != "utf-8":
        os.environ["LC_ALL"] = "C.UTF-8"  # Java spells names of files in the locale's encoding, or refuses
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


class _KeptClass(JavaClass):  # type: ignore[misc]
    """A class of Java whose methods are looked up once."""

    def __getattr__(self, name: str) -> Any:
        member = super().__getattr__(name)
        if isinstance(member, JavaMember):
            setattr(self, name, member)
        return member


def _look_up_once(session: SparkSession) -> None:
    """Keep the classes of Java that columns are made by, and their methods.

    Java would search all of Spark's archives for them for each column: a twentieth of small analyses.
    """
    java: Any = session.sparkContext._jvm
    for name in _CLASSES:
        found = getattr(java, name)
        setattr(java, name, _KeptClass(found._fqn, found._gateway_client))


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
