"""Surroundings that would stop Spark are told apart without starting it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pyspark
import pytest

from hushcast_analytics import spark_session


def test_where_tmp_takes_no_programs_libraries_go_elsewhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.gettempdir", lambda: str(tmp_path))
    assert spark_session._library_folder() is None
    mounted, real = {"/tmp": os.ST_NOEXEC}, os.statvfs

    def flagged(folder: str) -> os.statvfs_result:
        fields = list(real(folder))
        fields[8] |= mounted.get(folder, 0)
        return os.statvfs_result(fields)

    monkeypatch.setattr(os, "statvfs", flagged)
    assert spark_session._library_folder() == str(tmp_path)
    mounted[str(tmp_path)] = os.ST_NOEXEC
    assert spark_session._library_folder() not in (None, "/tmp", str(tmp_path))


@pytest.mark.parametrize(("alone", "submitted"), [(True, False), (False, False), (False, True)])
def test_another_spark_and_python_are_passed_over_but_where_they_were_chosen(
    alone: bool, submitted: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SPARK_HOME", "/theirs")
    monkeypatch.setenv("PYSPARK_PYTHON", "python2")
    monkeypatch.delenv("SPARK_LOCAL_IP", raising=False)
    spark_session._prepare(alone, submitted)
    ours = str(Path(pyspark.__file__).parent)
    assert os.environ["SPARK_HOME"] == ("/theirs" if submitted else ours)
    assert os.environ["PYSPARK_PYTHON"] == (sys.executable if alone else "python2")
    assert os.environ.pop("SPARK_LOCAL_IP", None) == ("127.0.0.1" if alone else None)


@pytest.mark.parametrize(
    ("encoding", "wanted"), [("ANSI_X3.4-1968", "C.UTF-8"), ("ISO-8859-1", "C.UTF-8"), ("UTF-8", "theirs")]
)
def test_java_takes_names_of_files_in_utf_8_whatever_the_locale(
    encoding: str, wanted: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    # It sets these, too.
    for name in ("SPARK_HOME", "PYSPARK_PYTHON", "SPARK_LOCAL_IP"):
        monkeypatch.setenv(name, "")
    monkeypatch.setenv("LC_ALL", "theirs")
    monkeypatch.setattr("locale.getencoding", lambda: encoding)
    spark_session._prepare(True, False)
    assert os.environ["LC_ALL"] == wanted


@pytest.mark.parametrize(
    ("alone", "rows", "parts"),
    [(True, None, 16), (True, 10**6, 16), (True, 10**8, 200), (False, None, 200), (False, 10**9, 2000)],
)
def test_parts_follow_from_the_data(alone: bool, rows: int | None, parts: int) -> None:
    assert spark_session._parts(alone, rows) == {"spark.sql.shuffle.partitions": str(parts)}


DEFAULTS = """
# an administrator's
spark.master                          local[1]
spark.driver.memory=600m
spark.driver.extraJavaOptions         -Dtheirs=yes
spark.sql.shuffle.partitions          7
spark.sql.parquet.compression.codec:  snappy
spark.ui.enabled                      true
spark.ui.port                         0
spark.driver.host                     localhost
spark.sql.session.timeZone            Europe/Helsinki
"""
SHOWN = """
import json
from hushcast_analytics.spark_session import open_session
spark = open_session(rows=0)  # few, for which we set the most
java = spark.sparkContext._jvm.java.lang
names = [f"spark.{name}" for name in ("master", "sql.shuffle.partitions",
    "sql.parquet.compression.codec", "ui.enabled", "driver.host", "sql.session.timeZone")]
heap = java.Runtime.getRuntime().maxMemory() >> 20
print(json.dumps([spark.conf.get(name) for name in names] + [java.System.getProperty("theirs"), heap]))
"""


@pytest.mark.spark
@pytest.mark.processes
@pytest.mark.parametrize("by", ["spark-defaults.conf", "spark-submit"])
def test_settings_given_to_spark_win_but_where_results_depend_on_ours(
    by: str, quick_spark: dict[str, str], tmp_path: Path
) -> None:
    program, settings = tmp_path / "shown.py", tmp_path / "spark-defaults.conf"
    program.write_text(SHOWN)
    settings.write_text(DEFAULTS)
    # The classes that others share stand for another class path.
    java = quick_spark["JDK_JAVA_OPTIONS"].partition(" -XX:SharedArchiveFile")[0]
    env = {**quick_spark, "JDK_JAVA_OPTIONS": java}
    if by == "spark-submit":
        submit = Path(pyspark.__file__).parent / "bin" / "spark-submit"
        command = [str(submit), "--properties-file", str(settings), str(program)]
        env["PYSPARK_PYTHON"] = sys.executable
    else:
        command = [sys.executable, str(program)]
        env["SPARK_CONF_DIR"] = str(tmp_path)
    shown = subprocess.run(command, env=env, capture_output=True, text=True, timeout=300, check=False)
    assert shown.returncode == 0, shown.stderr[-3000:]
    *found, heap = json.loads(shown.stdout.splitlines()[-1])
    assert found == ["local[1]", "7", "snappy", "true", "localhost", "UTC", "yes"]
    assert 550 <= heap <= 600


def test_the_master_is_that_of_spark_defaults(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PYSPARK_GATEWAY_PORT", raising=False)
    monkeypatch.setenv("SPARK_CONF_DIR", str(tmp_path))
    assert spark_session.default_master() == "local[*]"
    file = tmp_path / "spark-defaults.conf"
    for text, master in (
        ("spark.masters none\n#spark.master local[3]\n", "local[*]"),
        ("  spark.master=local[3]", "local[3]"),
        ("spark.master local[3]\nspark.master\t: spark://10.0.0.1:7077 \n", "spark://10.0.0.1:7077"),
    ):
        file.write_text(text)
        assert spark_session.default_master() == master
    monkeypatch.setenv("PYSPARK_GATEWAY_PORT", "1")
    assert spark_session.default_master() is None
