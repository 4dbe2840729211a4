"""From the traces of real daemons to summary and report, under both profiles; figures recounted by hand."""

import json
from pathlib import Path
from typing import Any

import pytest
from central_traces import Central
from pyspark.sql import SparkSession
from summary_keys import check_documented

from hushcast_analytics.adversaries import Adversary
from hushcast_analytics.analysis import SUMMARY_KEYS, AnalysisPlan, analyze, chosen
from hushcast_analytics.attacks.catalogue import ATTACKS
from hushcast_analytics.examination import Examination, case_of
from hushcast_analytics.trace_files import open_traces
from hushcast_protocol.overlay.leases import lease_mark
from hushcast_testnet.simulations.overlay_simulation import Scenario, simulate

pytestmark = pytest.mark.spark


@pytest.fixture(scope="module")
def simulated(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two runs, one under each profile; and beside them one of a central system."""
    directory = tmp_path_factory.mktemp("simulated")
    for profile in ("paper", "hardened"):
        traces = directory / profile
        simulate(Scenario(16, 1, 24, topics=3, depth=2, profile=profile, seed=5, traces=traces))
    central = Central(directory / "central", "hardened", users=3)
    central.subscribe(central.users[0], "news")
    central.publish(central.users[1], "news")
    central.write()
    return directory


def lines(directory: Path, kind: str) -> list[dict[str, Any]]:
    found = [
        line for file in sorted(directory.glob(f"*.{kind}.jsonl")) for line in file.read_text().splitlines()
    ]
    return [json.loads(line) for line in found]


def test_summary_and_report(spark: SparkSession, simulated: Path, tmp_path: Path) -> None:
    heard: list[str] = []
    wanted = AnalysisPlan((0.25,), chosen(["parent-of-interior", "first-spy"]))
    summary = analyze(spark, str(simulated), tmp_path / "out", wanted, progress=heard.append)
    assert summary == json.loads((tmp_path / "out" / "summary.json").read_text())
    check_documented(summary, "overlay", "central")
    assert summary["network"]["completeness"] == 1
    assert {row["profile"] for row in summary["attacks"]} == {"paper", "hardened"}
    for row in summary["attacks"]:
        assert tuple(row) == SUMMARY_KEYS
        assert 0 <= row["accuracy_low"] <= row["accuracy"] <= row["accuracy_high"] <= 1
        assert row["target"] == ATTACKS[row["attack"]].target
    assert "gini" in summary["network"], "the figures are the overlay's, and no mean of both systems"
    (server,) = [row for row in summary["central"] if row["party"] == "server"]
    assert (server["profile"], server["deliveries_tied"], server["bodies_read"]) == ("hardened", 1, 0)
    report = (tmp_path / "out" / "report.html").read_text()
    assert "<svg" in report
    assert "<h2>The central system</h2>" in report
    assert "http://" not in report.replace("http://www.w3.org", "").replace("http://purl.org", "")
    assert "Paper, who subscribes to a topic:" in report
    assert any("first-spy" in text for text in heard)
    kept = spark.read.parquet(str(tmp_path / "out" / "trials"))
    assert kept.where("attack = 'first-spy'").count() == sum(
        row["trials"] for row in summary["attacks"] if row["attack"] == "first-spy"
    )


@pytest.mark.parametrize("profile", ["paper", "hardened"])
def test_parent_of_interior_recounted_in_plain_python(
    spark: SparkSession, simulated: Path, tmp_path: Path, profile: str
) -> None:
    traces = open_traces(spark, str(simulated / profile), str(tmp_path / "tables"))
    examination = Examination(case_of(traces.observations, traces.truths), Adversary((0.4,)))
    attack = ATTACKS["parent-of-interior"]
    found: dict[str, dict[str, float]] = {}
    for row in examination.posterior(attack).collect():
        found.setdefault(row["trial"], {})[row["candidate"]] = row["probability"]
    bad = {row["node"] for row in examination.view("topic").members.collect()}
    assert len(bad) == 6

    seen = [line for line in lines(simulated / profile, "observations") if line["node"] in bad]
    people = {line["node"] for line in lines(simulated / profile, "truth") if line["kind"] == "started"}
    planned = [line for line in lines(simulated / profile, "truth") if line["kind"] == "installed"]
    expected = {}
    for topic, token in {(line["topic"], line["tokens"][0]) for line in planned}:
        marks = {node: lease_mark(bytes.fromhex(token), bytes.fromhex(node)).hex() for node in bad}
        leases = {
            (line["node"], line["lease"]): line
            for line in seen
            if line["kind"] == "installed" and line["mark"] == marks[line["node"]]
        }
        below = {
            (line["node"], line["next"])
            for line in seen
            if line["kind"] == "passed" and (line["node"], line["lease"]) in leases
        } | {
            (line["node"], line["previous"])
            for line in seen
            if line["kind"] == "received" and line["tokens"][0] == token and "previous" in line
        }
        parents = {node for node, _ in below}
        votes: dict[str, set[str]] = {}
        for (node, _), line in leases.items():
            if line["children"] or node in parents:
                votes.setdefault(line["next"], set()).add(node)
        for out in bad | {child for _, child in below} | (votes.keys() - people):
            votes.pop(out, None)
        whole = sum(map(len, votes.values()))
        if votes:
            expected[topic] = {name: len(who) / whole for name, who in votes.items()}
    assert found.keys() == expected.keys()
    for topic, shares in expected.items():
        assert found[topic] == pytest.approx(shares)
