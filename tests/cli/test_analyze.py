"""`hushcast analyze`: wrong usage is told before Spark is started; all of it in one run of the program."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from hushcast_cli.main import run
from hushcast_testnet.simulations.overlay_simulation import Scenario, simulate


@pytest.mark.parametrize("shares", ["0", "1", "much", "0.1,,0.2", "-0.1"])
def test_shares_make_sense(shares, tmp_path, capsys):
    assert run(["analyze", "traces", "--out", str(tmp_path), "--colluding", shares]) == 2
    assert "--colluding" in capsys.readouterr().err


@pytest.mark.parametrize("share", ["-0.1", "1.5", "most"])
def test_a_share_of_topics_makes_sense(share, tmp_path, capsys):
    assert run(["analyze", "traces", "--out", str(tmp_path), "--topics-known", share]) == 2
    assert "--topics-known" in capsys.readouterr().err


def test_without_java_one_line_says_what_to_install(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("JAVA_HOME", raising=False)
    assert run(["analyze", "traces", "--out", str(tmp_path / "out")]) == 1
    told = capsys.readouterr().err.splitlines()
    assert len(told) == 1
    assert "openjdk-17-jre-headless" in told[0]


@pytest.mark.spark
def test_an_unknown_attack_is_wrong_usage_and_the_known_ones_are_named(tmp_path, capsys):
    assert run(["analyze", "traces", "--out", str(tmp_path / "out"), "--attack", "magic"]) == 2
    assert "parent-of-interior" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (["--k", "0"], "--k"),
        (["--k", "3,,5"], "--k"),
        (["--condition", "crowd"], "--condition"),
        (["--cap", "0"], "--cap"),
        (["--baseline", "other"], "--baseline is for traces"),
        (["--attack", "first-spy"], "--attack is for traces"),
    ],
)
def test_options_of_a_file_of_subscriptions_make_sense(options, told, tmp_path, capsys):
    file = tmp_path / "subscriptions.jsonl"
    file.write_text('{"source": "a", "topic": "t"}\n')
    assert run(["analyze", str(file), "--out", str(tmp_path / "out"), *options]) == 2
    assert told in capsys.readouterr().err


def test_options_of_levels_go_with_a_file_or_with_k(tmp_path, capsys):
    command = ["analyze", str(tmp_path), "--out", str(tmp_path / "out")]
    assert run([*command, "--cap", "3"]) == 2
    assert (
        "--cap is for a file of subscriptions, or for traces of brokers with --k" in capsys.readouterr().err
    )
    assert run([*command, "--k", "3", "--attack", "first-spy"]) == 2
    assert "--attack is about attacks, which --k leaves out" in capsys.readouterr().err


@pytest.mark.spark
def test_k_of_no_traces_is_told_before_spark_starts(tmp_path, capsys):
    assert run(["analyze", str(tmp_path), "--out", str(tmp_path / "out"), "--k", "3"]) == 2
    assert "no *.observations.jsonl" in capsys.readouterr().err


@pytest.mark.spark
def test_a_file_that_says_nothing_is_told_before_spark_starts(tmp_path, capsys):
    file = tmp_path / "subscriptions.jsonl"
    file.write_text("")
    assert run(["analyze", str(file), "--out", str(tmp_path / "out")]) == 2
    assert "no subscriptions in it" in capsys.readouterr().err
    assert run(["analyze", str(file), "--out", str(tmp_path / "out"), "--spread", "9", "--brokers", "4"]) == 2
    assert "--spread 9 is more than the 4 edge brokers" in capsys.readouterr().err


@pytest.mark.spark
@pytest.mark.processes
def test_the_whole_program(tmp_path: Path, quick_spark: dict[str, str]) -> None:
    simulate(Scenario(10, 1, 6, topics=2, seed=3, traces=tmp_path / "traces"))
    command = [sys.executable, "-m", "hushcast_cli.main", "analyze", str(tmp_path / "traces")]
    options = ["--out", str(tmp_path / "out"), "--colluding", "0.3", "--attack", "first-spy", "--json"]
    done = subprocess.run([*command, *options], capture_output=True, text=True, timeout=600, env=quick_spark)
    assert done.returncode == 0, done.stderr
    summary = json.loads(done.stdout)
    assert [row["attack"] for row in summary["attacks"]] == ["first-spy"]
    assert (tmp_path / "out" / "report.html").is_file()
