"""A standalone cluster of a master and two workers gives the same rows and figures as one machine.

Settings of `spark-submit` win there, a table that is kept outlives an executor, and attacks outlive a worker.
"""

import json
import subprocess
from pathlib import Path

import pyspark
import pytest
from same import ROWS, made
from spark_same import by_local  # `same` put its folder on the path

from benchmarks.lab.attacks_at_size import differences, killed_meanwhile
from benchmarks.lab.standalone_cluster import HERE, environment, standalone_cluster
from hushcast_analytics.analysis import AnalysisPlan, analyze, chosen
from hushcast_analytics.generator.generator_jobs import generate
from hushcast_analytics.generator.scenario import GeneratorScenario

pytestmark = [pytest.mark.spark, pytest.mark.processes]

DONE_WITHIN = 600  # seconds; other work may share the machine


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
    env = {**quick_spark, **environment()}
    settings = {
        **THEIRS,
        **HERE,
        "spark.cores.max": "2",
        "spark.checkpoint.dir": str(tmp_path / "checkpoints"),
        "spark.sql.codegen.wholeStage": "false",
        "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    }
    submit = str(Path(pyspark.__file__).parent / "bin" / "spark-submit")
    given = [text for name, value in settings.items() for text in ("--conf", f"{name}={value}")]
    program = (str(Path(__file__).with_name("same.py")), str(tmp_path / "shared"), *THEIRS)
    with standalone_cluster(tmp_path, env=env) as cluster:
        done = subprocess.run(
            [submit, "--master", cluster.master, *given, *program],
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


PLAYED = ("first-spy", "install-depth")
LITTLE = {
    "spark.driver.memory": "640m",
    "spark.executor.memory": "512m",
    "spark.sql.shuffle.partitions": "2",
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
}


def test_attacks_are_the_same_where_a_worker_is_killed_meanwhile(spark, quick_spark, tmp_path):
    source = str(tmp_path / "traces")
    generate(spark, GeneratorScenario(24, 2, publications=40, topics=6, epochs=2, seed=3), source)
    alone = analyze(spark, source, tmp_path / "alone", AnalysisPlan((0.25,), chosen(PLAYED)))
    asked = [part for name in PLAYED for part in ("--attack", name)]
    command = ["lab", "analyze", source, "--colluding", "0.25", *asked, "--out"]
    killed_meanwhile(tmp_path, command, quick_spark, LITTLE)
    together = json.loads((tmp_path / "together" / "summary.json").read_text())
    assert together["attacks"]
    assert differences(json.loads(json.dumps(alone)), together) == []
