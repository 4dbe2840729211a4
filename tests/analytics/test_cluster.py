"""A standalone cluster of a master and two workers gives the same rows and figures as one machine."""

import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pyspark
import pytest

pytestmark = [pytest.mark.spark, pytest.mark.processes]

JOB = """
import json, sys
from hushcast_analytics.generator.asked import Asked
from hushcast_analytics.generator.generate import generate
from hushcast_analytics.network import summary
from hushcast_analytics.session import open_session
from pyspark.sql import functions as F

master, out, settings = sys.argv[1], sys.argv[2], json.loads(sys.argv[3])
spark = open_session(master, "same", spark_sql_shuffle_partitions="2", spark_ui_enabled="false", **settings)
asked = Asked(20, 2, publications=10, epochs=2, clients=0, up=5, down=2)
made = generate(spark, asked, out)
digests = {}
for name in ("observations", "truths"):
    table = getattr(made, name)
    row = F.xxhash64(*(F.to_json(F.struct(F.col(column))) for column in table.columns))
    digests[name] = table.agg(F.count("*"), F.sum(row.cast("decimal(38)"))).first()
figures = str(summary(made).collect())
hosts = spark._jsc.sc().statusTracker().getExecutorInfos()
print(json.dumps([str(digests), figures, len(hosts)]))
spark.stop()
"""
READY_WITHIN, DONE_WITHIN = 180, 600  # seconds; other work may share the machine
ON_LOOPBACK = {"spark_driver_host": "127.0.0.1", "spark_driver_bindAddress": "127.0.0.1"}


def environment(**more: str) -> dict[str, str]:
    return {**os.environ, "SPARK_LOCAL_IP": "127.0.0.1", "PYSPARK_PYTHON": sys.executable, **more}


@contextmanager
def daemon(directory: Path, name: str, *arguments: str) -> Iterator[None]:
    """Run a part of the cluster until the end of the block."""
    home = Path(pyspark.__file__).parent
    program = [str(home / "bin" / "spark-class"), f"org.apache.spark.deploy.{name}", *arguments]
    env = environment(SPARK_HOME=str(home), SPARK_DAEMON_MEMORY="256m")
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
def cluster(directory: Path) -> Iterator[str]:
    """Run a master and two workers on loopback; yield the master's address once it listens."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    master = f"spark://127.0.0.1:{port}"
    with ExitStack() as running:
        ends = ("--host", "127.0.0.1", "--webui-port", "0")
        running.enter_context(daemon(directory, "master.Master", "--port", str(port), *ends))
        give_up = time.monotonic() + READY_WITHIN
        while True:
            with socket.socket() as knock:
                if knock.connect_ex(("127.0.0.1", port)) == 0:
                    break
            assert time.monotonic() < give_up, (directory / "Master.log").read_text()
            time.sleep(0.2)
        for number in range(2):
            work = ("--work-dir", str(directory / f"worker-{number}"), "--cores", "1", "--memory", "1g")
            running.enter_context(daemon(directory, "worker.Worker", *ends, *work, master))
        yield master


def result(master: str, out: Path, **settings: str) -> list[object]:
    # On so few rows compiling each stage would cost more than it saves.
    settings["spark_sql_codegen_wholeStage"] = "false"
    done = subprocess.run(
        [sys.executable, "-c", JOB, master, str(out), json.dumps(settings)],
        env=environment(),
        capture_output=True,
        text=True,
        timeout=DONE_WITHIN,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return json.loads(done.stdout.splitlines()[-1])


def test_a_cluster_gives_what_one_machine_gives(tmp_path):
    *alone, executors = result("local[2]", tmp_path / "alone", spark_driver_memory="1g")
    assert executors == 1
    with cluster(tmp_path) as master:
        settings = {"spark_executor_memory": "512m", "spark_executor_cores": "1", "spark_driver_memory": "1g"}
        # Both workers are waited for, or the first might do all the work.
        settings |= {"spark_scheduler_minRegisteredResourcesRatio": "1.0"}
        settings |= {
            "spark_scheduler_maxRegisteredResourcesWaitingTime": f"{READY_WITHIN}s",
            "spark_cores_max": "2",
        }
        *shared, executors = result(master, tmp_path / "shared", **ON_LOOPBACK, **settings)
    assert executors == 3  # the driver counts as one
    assert shared == alone
