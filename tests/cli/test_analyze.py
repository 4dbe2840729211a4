"""`hushcast lab analyze`: wrong usage is told before Spark is started."""

from __future__ import annotations

import sys

import pytest

from hushcast_cli.main import run


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


def test_an_attack_that_there_is_not_is_told_before_spark_is_loaded(tmp_path, capsys):
    command = ["analyze", str(tmp_path), "--out", str(tmp_path / "out"), "--attack"]
    loaded = {name for name in sys.modules if name.startswith("pyspark")}
    assert run([*command, "frist-spy"]) == 2
    assert "--attack: there is no frist-spy: did you mean first-spy?" in capsys.readouterr().err
    assert run([*command, "magic"]) == 2
    assert "there is no magic: the attacks are first-spy, " in capsys.readouterr().err
    assert {name for name in sys.modules if name.startswith("pyspark")} == loaded
    assert not (tmp_path / "out").exists()
