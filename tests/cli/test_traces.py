"""`hushcast lab traces`: what it needs is said in one line, and nobody else loads it."""

from __future__ import annotations

import json
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from hushcast_cli.analysis import spark
from hushcast_cli.main import cli, run

GENERATE = ["traces", "generate", "--nodes", "5", "--subscribers", "1", "--publications", "1"]


@pytest.fixture
def empty_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("JAVA_HOME", raising=False)
    return tmp_path


def test_without_java_one_line_says_what_to_install(empty_path, capsys):
    assert run([*GENERATE, "--out", str(empty_path / "out")]) == 1
    told = capsys.readouterr().err.splitlines()
    assert [line for line in told if line.startswith("hushcast: ")] == told
    assert len(told) == 1
    assert "openjdk-17-jre-headless" in told[0]


@pytest.mark.parametrize("name", ["pyspark", "pandas", "pyarrow", "matplotlib"])
def test_without_the_extra_one_line_says_what_to_install(name, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(spark, "find_spec", lambda asked: None if asked == name else object())
    assert run([*GENERATE, "--out", str(tmp_path / "out")]) == 1
    (told,) = capsys.readouterr().err.splitlines()
    assert f"this needs {name}" in told
    assert "[analytics]" in told


@pytest.mark.slow
def test_neither_the_command_line_nor_the_daemon_loads_spark():
    program = (
        "import sys, hushcast_cli.main, hushcast_cli.analysis.traces, hushcast_cli.analysis.spark,"
        " hushcast_node.process, hushcast_directory.server.process,"
        " hushcast_testnet.simulations.overlay_simulation;"
        " print(*sorted({name.partition('.')[0] for name in sys.modules}))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    loaded = set(done.stdout.split())
    assert "hushcast_node" in loaded
    assert loaded.isdisjoint({"pyspark", "py4j", "pandas", "pyarrow", "numpy", "hushcast_analytics"})


@pytest.mark.slow
def test_a_daemon_without_tor_and_metrics_starts_without_their_libraries():
    program = (
        "import sys, hushcast_node.process, hushcast_directory.server.process,"
        " hushcast_central.server.process, hushcast_central.proxy.process, hushcast_brokers.broker.process;"
        " print(*sorted({name.partition('.')[0] for name in sys.modules}))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    loaded = set(done.stdout.split())
    assert "hushcast_node" in loaded
    assert loaded.isdisjoint({"stem", "prometheus_client"})


@pytest.mark.spark
def test_a_network_is_made_and_not_twice(tmp_path, quick_spark):
    # In a process of its own: the session of the other tests would end with the command's.
    program = "import sys; from hushcast_cli.main import run; print(*(run(sys.argv[1:]) for _ in range(2)))"
    command = [sys.executable, "-c", program, *GENERATE, "--out", str(tmp_path / "out"), "--json"]
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=quick_spark)
    made, codes = done.stdout.splitlines()
    assert json.loads(made) == {"run": "generated", "observations": 32, "truths": 10}
    assert codes == "0 2"
    assert "a run generated already" in done.stderr.splitlines()[-1]


def test_help_shows_without_spark(empty_path):
    assert CliRunner().invoke(cli, ["traces", "generate", "--help"]).exit_code == 0


ONE_OF_EACH = ("first-spy", "timing", "install-depth", "renewal-times", "dictionary")
SCALED = {
    "--nodes": "20",
    "--topics": "18",
    "--publications": "36",
    "--relays": "4000",
    "--shards": "8",
    "--days": "2",
}


def _examples() -> list[list[str]]:
    """Return the command lines of the help's examples, scaled down."""
    command = cli.commands["lab"].commands["traces"].commands["generate"]
    lines = command.help.partition("Example")[2].replace("\\\n", " ").splitlines()
    words = [shlex.split(line) for line in lines if line.strip().startswith("hushcast ")]
    return [
        [SCALED.get(before, word) for before, word in zip(["", *line], line, strict=False)][1:]
        for line in words
    ]


@pytest.fixture
def warm_spark(spark, monkeypatch):
    """Give commands in this process the session of all tests, and keep it when they end theirs."""
    monkeypatch.setattr(spark, "stop", lambda: None)
    monkeypatch.setattr("hushcast_analytics.spark_session.open_session", lambda *_, **__: spark)


@pytest.mark.spark
def test_the_helps_example_of_shards_tells_its_figures(warm_spark, capfd):
    (example,) = (line for line in _examples() if "--relays" in line)
    assert run([*example, "--up", "48", "--down", "6", "--seed", "1", "--json"]) == 0
    found = json.loads(capfd.readouterr().out)
    assert found["shard_days"] == 16
    assert 400 < found["smallest"] <= 500 <= found["largest"] < 600
    assert 0 <= found["above_20"] <= found["above_15"] <= 16
    assert 100_000 < found["client_bytes"] < 250_000
    assert 0 < found["named_fresh"] <= found["named_staying"] <= 1
    assert run(example) == 0
    assert "16 shard-days" in capfd.readouterr().out


@pytest.mark.parametrize(
    ("asked", "told"),
    [
        ("--relays 5", "--shards is missing"),
        ("--relays 5 --shards 3", "a power of two"),
        ("--relays 5 --shards 2 --out x", "--out is for traces"),
        ("--relays 5 --shards 2 --topics 1", "--topics is for traces"),
        ("--relays 5 --shards 2 --epochs 3", "--epochs is for traces"),
        ("--relays 5 --shards 2 --profile paper", "--profile is for traces"),
        ("--relays 5 --shards 2 --run x", "--run is for traces"),
        ("--relays 5 --shards 2 --clients 0", "--clients is for traces"),
        ("--relays 5 --shards 2 --authors 0", "--authors is for traces"),
        ("--relays 5 --shards 2 --origins 2", "--origins is for traces"),
        ("--relays 5 --shards 2 --depth 2", "--depth is for traces"),
        ("--days 5", "give --relays, too"),
    ],
)
def test_traces_and_shards_are_not_asked_for_together(asked, told, capsys):
    assert run(["traces", "generate", *asked.split()]) == 2
    assert told in capsys.readouterr().err


@pytest.mark.spark
def test_the_helps_example_gives_something_to_see(tmp_path, warm_spark, capfd):
    from hushcast_analytics.analysis import SUMMARY_KEYS  # loads Spark's Python: not for every test
    from hushcast_analytics.attacks.catalogue import ATTACKS

    examples = [line for line in _examples() if not {"--relays", "--hosts", "/tmp/boxes"} & {*line}]
    assert [line[:2] for line in examples] == [["lab", "traces"], ["lab", "traces"], ["lab", "analyze"]]
    commands = [[word.replace("/tmp/", f"{tmp_path}/") for word in line] for line in examples]
    # One attack of each kind of trial: the others have the same trials, and Spark takes its time.
    commands[-1] += ["--colluding", "0.2", *(word for name in ONE_OF_EACH for word in ("--attack", name))]
    codes = [run(line) for line in commands]
    done = capfd.readouterr()
    assert codes == [0, 0, 0], (done.out, done.err)
    found = json.loads((tmp_path / "analysis" / "summary.json").read_text())
    assert found["network"]["completeness"] == 1
    shown = {}
    for row in found["attacks"]:
        shown.setdefault(row["profile"], set()).add(row["attack"])
        assert row["trials"] >= 3
        assert row["bound"] < 0.5, row
        assert tuple(row) == SUMMARY_KEYS
        assert 0 <= row["accuracy_low"] <= row["accuracy"] <= row["accuracy_high"] <= 1
        assert row["target"] == ATTACKS[row["attack"]].target
    assert shown == {profile: set(ONE_OF_EACH) for profile in ("hardened", "paper")}
    # What the terminal ends with is what the report begins with.
    for each in found["verdict"]:
        assert any(line.endswith(each["text"]) for line in done.out.splitlines())
    assert [*found["more"], f"report: {tmp_path / 'analysis' / 'report.html'}"] == (
        done.out.splitlines()[-1 - len(found["more"]) :]
    )
