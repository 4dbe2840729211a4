"""A standalone cluster of a master and two workers gives the same rows and figures as one machine.

Settings of `spark-submit` win there, and a table that is kept outlives an executor.
"""

import json
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pyspark
import pytest
from same import ROWS, made
from spark_same import by_local  # `same` put its folder on the path

pytestmark = [pytest.mark.spark, pytest.mark.processes]

READY_WITHIN, DONE_WITHIN = 180, 600  # seconds; other work may share the machine


@contextmanager
def daemon(env: dict[str, str], directory: Path, name: str, *arguments: str) -> Iterator[None]:
    """Run a part of the cluster until the end of the block."""
    home = Path(pyspark.__file__).parent
    program = [str(home / "bin" / "spark-class"), f"org.apache.spark.deploy.{name}", *arguments]
    env = {**env, "SPARK_HOME": str(home), "SPARK_DAEMON_MEMORY": "256m"}
    with (directory / f"{name.rpartition('.')[2]}.log").open("ab") as log:
        process = subprocess.Popen(program, env=env, stdout=log, stderr=log, cwd=directory)
        try:
            yield
        finally:
            process.terminate()
            try:
                process.wait(60)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


@contextmanager
def cluster(env: dict[str, str], directory: Path) -> Iterator[str]:
    """Run a master and two workers on loopback; yield the master's address once it listens."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    master = f"spark://127.0.0.1:{port}"
    with ExitStack() as running:
        ends = ("--host", "127.0.0.1", "--webui-port", "0")
        running.enter_context(daemon(env, directory, "master.Master", "--port", str(port), *ends))
        give_up = time.monotonic() + READY_WITHIN
        while True:
            with socket.socket() as knock:
                if knock.connect_ex(("127.0.0.1", port)) == 0:
                    break
            assert time.monotonic() < give_up, (directory / "Master.log").read_text()
            time.sleep(0.2)
        for number in range(2):
            work = ("--work-dir", str(directory / f"worker-{number}"), "--cores", "1", "--memory", "1g")
            running.enter_context(daemon(env, directory, "worker.Worker", *ends, *work, master))
        yield master


THEIRS = {
    "spark.driver.memory": "1g",
    "spark.ui.enabled": "true",
    "spark.ui.port": "0",
    "spark.sql.parquet.compression.codec": "snappy",
    "spark.sql.maxConcurrentOutputFileWriters": "8",
    "spark.python.sql.dataFrameDebugging.enabled": "true",
    "spark.sql.shuffle.partitions": "2",
    "spark.executor.memory": "512m",
}


def test_a_cluster_gives_what_one_machine_gives(spark, quick_spark, tmp_path):
    env = {**quick_spark, "SPARK_LOCAL_IP": "127.0.0.1", "PYSPARK_PYTHON": sys.executable}
    settings = {
        **THEIRS,
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.executor.cores": "1",
        "spark.cores.max": "2",
        # Both workers are waited for, or the first might do all the work.
        "spark.scheduler.minRegisteredResourcesRatio": "1.0",
        "spark.scheduler.maxRegisteredResourcesWaitingTime": f"{READY_WITHIN}s",
        "spark.checkpoint.dir": str(tmp_path / "checkpoints"),
        "spark.sql.codegen.wholeStage": "false",
        "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    }
    submit = str(Path(pyspark.__file__).parent / "bin" / "spark-submit")
    given = [text for name, value in settings.items() for text in ("--conf", f"{name}={value}")]
    program = (str(Path(__file__).with_name("same.py")), str(tmp_path / "shared"), *THEIRS)
    with cluster(env, tmp_path) as master:
        done = subprocess.run(
            [submit, "--master", master, *given, *program],
            env=env,
            capture_output=True,
            text=True,
            timeout=DONE_WITHIN,
            check=False,
        )
    assert done.returncode == 0, done.stderr[-3000:]
    *shared, located, executors, found, rows = json.loads(done.stdout.splitlines()[-1])
    assert executors == 3  # the driver counts as one
    assert shared == made(spark, str(tmp_path / "alone"))
    assert located == by_local(tmp_path)
    assert found == THEIRS
    assert rows == ROWS
