"""What is wrong with a command for Spark is told in one line, before any Java is started."""

from __future__ import annotations

import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from hushcast_cli.analysis import spark
from hushcast_cli.main import run

GENERATE = ["traces", "generate", "--nodes", "5", "--subscribers", "1", "--publications", "1"]


@pytest.fixture(autouse=True)
def _no_java_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    started = tmp_path / "started"
    java = tmp_path / "bin" / "java"
    java.parent.mkdir()
    java.write_text(f"#!/bin/sh\n: > {started}\nexit 1\n")
    java.chmod(0o755)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    yield
    assert not started.exists()


def told(capsys: pytest.CaptureFixture[str]) -> str:
    *before, line = capsys.readouterr().err.splitlines()
    assert set(before) <= {"looking at the traces"}, "what was being done"
    assert line.startswith("hushcast: ")
    return line


@pytest.fixture
def traces(tmp_path: Path) -> str:
    (tmp_path / "traces").mkdir()
    (tmp_path / "traces" / "relay-0.observations.jsonl").touch()
    return str(tmp_path / "traces")


@pytest.mark.parametrize(
    "master",
    ["foo", "", "local[0]", "local[x]", "spark://here", "spark://here:x", "spark://:7077", "mesos://a"],
)
def test_a_master_that_is_none(master, traces, tmp_path, capsys):
    for command in (["analyze", traces], GENERATE):
        assert run([*command, "--out", str(tmp_path / "out"), "--master", master]) == 2
        assert "--master" in (line := told(capsys))
        assert "spark://HOST:7077" in line


@pytest.mark.parametrize(
    "master", ["local", "local[2]", "local[*]", "local[*,3]", "spark://a:1,b:2", "yarn", "k8s://https://a"]
)
def test_masters_that_spark_has(master):
    assert spark._MASTERS.fullmatch(master)


def test_a_dead_master(traces, tmp_path, capsys):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # does not listen
        port = taken.getsockname()[1]
        for command in (["analyze", traces], GENERATE):
            master = f"spark://127.0.0.1:{port}"
            assert run([*command, "--out", str(tmp_path / "out"), "--master", master]) == 1
            assert f"master {master}: Connection refused" in told(capsys)


def test_one_master_of_several_is_enough():
    with socket.socket() as alive, socket.socket() as dead:
        for each in (alive, dead):
            each.bind(("127.0.0.1", 0))
        alive.listen()
        places = ",".join(f"127.0.0.1:{each.getsockname()[1]}" for each in (dead, alive))
        spark.check_master(f"spark://{places}")


def test_a_directory_that_is_missing_or_empty(traces, tmp_path, capsys):
    (tmp_path / "empty").mkdir()
    out = ["--out", str(tmp_path / "out")]
    assert run(["analyze", str(tmp_path / "nothing"), *out]) == 2
    assert "no such directory" in told(capsys)
    assert run(["analyze", str(tmp_path / "empty"), *out]) == 2
    assert "no *.observations.jsonl" in told(capsys)
    assert run(["analyze", traces, *out, "--baseline", str(tmp_path / "nothing")]) == 2
    assert "no such directory" in told(capsys)


def test_a_network_that_cannot_be_and_a_run_that_is_there(tmp_path, capsys):
    out = ["--out", str(tmp_path / "out")]
    assert run([*GENERATE, *out, "--subscribers", "9", "--clients", "3"]) == 2
    assert "9 subscribers" in told(capsys)
    (tmp_path / "out" / "observations" / "run=generated").mkdir(parents=True)
    assert run([*GENERATE, *out]) == 2
    assert "a run generated already" in told(capsys)
    assert run([*GENERATE, "--out", "/proc/nowhere"]) == 1
    assert "/proc/nowhere" in told(capsys)


def test_an_unknown_attack_is_wrong_usage_and_the_known_ones_are_named(tmp_path, capsys):
    assert run(["analyze", "traces", "--out", str(tmp_path / "out"), "--attack", "magic"]) == 2
    assert "parent-of-interior" in capsys.readouterr().err


def test_k_of_no_traces_is_told_before_spark_starts(tmp_path, capsys):
    assert run(["analyze", str(tmp_path), "--out", str(tmp_path / "out"), "--k", "3"]) == 2
    assert "no *.observations.jsonl" in capsys.readouterr().err


def test_a_file_that_says_nothing_is_told_before_spark_starts(tmp_path, capsys):
    file = tmp_path / "subscriptions.jsonl"
    file.write_text("")
    assert run(["analyze", str(file), "--out", str(tmp_path / "out")]) == 2
    assert "no subscriptions in it" in capsys.readouterr().err
    assert run(["analyze", str(file), "--out", str(tmp_path / "out"), "--spread", "9", "--brokers", "4"]) == 2
    assert "--spread 9 is more than the 4 edge brokers" in capsys.readouterr().err


def test_the_innermost_cause_is_the_reason():
    lines = [
        "An error occurred",
        ": java.lang.A: outer",
        "\tat b.c(D)",
        "Caused by: java.io.E: no space",
        "\tat e",
    ]
    assert spark._reason("\n".join(lines)) == "java.io.E: no space"
    assert spark._reason("plain") == "plain"
    assert spark._reason("") == ""
    assert spark._reason('Exception in thread "main" java.lang.A: b\n\tat c') == "java.lang.A: b"


SURROUNDINGS = {
    "a Java of version 11": "Error: LinkageError occurred\njava.lang.UnsupportedClassVersionError:"
    " org/apache/spark/launcher/Main has been compiled by a more recent version",
    "no name, packages asked for": 'Exception in thread "main" java.lang.IllegalArgumentException:'
    " basedir must be absolute: ?/.ivy2.5.2/local",
    "no name": "Caused by: java.lang.NullPointerException: invalid null input: name\n\tat"
    " jdk.security.auth/com.sun.security.auth.UnixPrincipal.<init>",
    "packages that are nowhere": "java.lang.RuntimeException: [unresolved dependency: a#b;1: not found]",
}


@pytest.mark.parametrize("where", SURROUNDINGS)
def test_what_stops_spark_is_told_as_the_table_has_it(where):
    said = spark._reason(SURROUNDINGS[where])
    assert said in spark._CAUSES.values()
    table = (Path(__file__).parents[2] / "docs" / "analytics.md").read_text()
    assert f"`Spark failed: {said}; what it wrote is in …`" in table


def test_a_java_home_without_java_is_told(tmp_path, traces, monkeypatch, capsys):
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "nowhere"))
    assert run(["analyze", traces, "--out", str(tmp_path / "out")]) == 1
    assert "nowhere has no bin/java" in told(capsys)


def test_no_loopback_device_is_told(tmp_path, traces, monkeypatch, capsys):
    def nowhere(address: tuple[str, int]) -> socket.socket:
        raise OSError(99, f"Cannot assign requested address {address}")

    monkeypatch.setattr(socket, "create_server", nowhere)
    assert run(["analyze", traces, "--out", str(tmp_path / "out")]) == 1
    assert "this needs 127.0.0.1" in told(capsys)


@pytest.mark.spark
def test_where_spark_fails_one_line_names_the_log_and_java_is_silent(tmp_path, quick_spark):
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "truths").touch()
    command = [sys.executable, "-m", "hushcast_cli.start", *GENERATE, "--out", str(tmp_path / "out")]
    env = {name: value for name, value in quick_spark.items() if name != "JAVA_HOME"}
    env["TMPDIR"] = str(tmp_path)
    done = subprocess.run(command, capture_output=True, text=True, timeout=600, env=env, check=False)
    assert done.returncode == 1
    assert done.stdout == ""
    *progress, line = done.stderr.splitlines()
    assert line.startswith("hushcast: Spark failed: ")
    assert all(text.startswith(("starting Spark", "making ")) for text in progress)
    (log,) = tmp_path.glob("hushcast-spark-*.log")
    assert str(log) in line
    assert "Traceback" in log.read_text()
