"""What an observer of lines learns is what a plain count of the same records says."""

from __future__ import annotations

import itertools
import random
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from summary_keys import check_documented

from hushcast_analytics.analysis import AnalysisPlan, analyze, chosen
from hushcast_analytics.lines.line_figures import ANSWER, WINDOW, are_watched, line_figures
from hushcast_analytics.report.lines_section import lines
from hushcast_analytics.trace_files import read_lines
from hushcast_cli.analysis.analyze import told_in_full
from hushcast_protocol.base.trace import Observation, Truth, to_line

pytestmark = pytest.mark.spark

LINES = {"aa": "relay-1", "bb": "relay-2", "client-1": "client-1"}
SECONDS = 240


def drawn(telling: bool) -> tuple[list[Observation], list[Truth]]:
    """Return records of three lines; what happens shows in bytes if they are `telling`."""
    chance = random.Random(f"lines {telling}")
    truths = [Truth(node, 0.0, 0, "started", role="relay", profile="hardened") for node in LINES]
    truths += [Truth(node, 0.0, 0, "named", name=line) for node, line in LINES.items()]
    truths += [Truth(node, 1.0, 0, "subscribed", topic="t", mailbox="ab") for node in LINES]
    seen = []

    def carried(line: str, time: float, upward: bool, size: int) -> None:
        seen.append(Observation("links", time, 0, "carried", line=line, upward=upward, size=size))

    for line, second in itertools.product(LINES.values(), range(SECONDS)):
        for upward in (True, False):
            if second in (0, SECONDS - 1) or chance.random() < 0.5:
                carried(line, second + 0.25, upward, chance.randrange(1, 4) * 514)
    for number in range(12):
        time = 11.0 + 18 * number + chance.random()
        publisher, receiver = chance.sample(list(LINES), 2)
        truths.append(
            Truth(
                publisher,
                time + 1,
                0,
                "published",
                topic="t",
                message=f"{number:02}",
                origins=("aa",),
                took=1.0,
            )
        )
        truths.append(Truth(receiver, time + 2, 0, "delivered", topic="t", message=f"{number:02}"))
        if telling:
            carried(LINES[publisher], time + 0.1, True, 20_000)
            carried(LINES[receiver], time + 2, False, 20_000)
    return seen, truths


def counted(seen: list[Observation], truths: list[Truth]) -> dict[str, float]:
    """Return the AUC of each question by comparing all pairs."""
    volumes = {
        (node, way): [
            sum(
                e.size
                for e in seen
                if (e.line, e.upward) == (LINES[node], way) and e.time // WINDOW == window
            )
            for window in range(int(SECONDS // WINDOW))
        ]
        for node in LINES
        for way in (True, False)
    }
    published = [each for each in truths if each.kind == "published"]
    delivered = [each for each in truths if each.kind == "delivered"]
    groups: dict[str, list[list[tuple[float, bool]]]] = {"published": [], "received": [], "answered": []}
    for node in LINES:
        during = {
            window
            for each in published
            if each.node == node
            for window in range(int((each.time - each.took) // WINDOW), int(each.time // WINDOW) + 1)
        }
        came = {each.time // WINDOW for each in delivered if each.node == node}
        for question, way, hits in (("published", True, during), ("received", False, came)):
            groups[question].append([(size, at in hits) for at, size in enumerate(volumes[node, way])])
    for each in published:
        since = int((each.time - each.took) // WINDOW)
        to = {other.node for other in delivered if other.message == each.message}
        groups["answered"].append(
            [
                (sum(volumes[node, False][since : since + ANSWER]), node in to)
                for node in LINES
                if node != each.node
            ]
        )
    return {question: _auc(each) for question, each in groups.items()}


def _auc(groups: list[list[tuple[float, bool]]]) -> float:
    pairs = [
        (one, other)
        for group in groups
        for one, is_hit in group
        if is_hit
        for other, is_other in group
        if not is_other
    ]
    return sum((one > other) + (one == other) / 2 for one, other in pairs) / len(pairs)


def written(directory: Path, seen: list[Observation], truths: list[Truth]) -> str:
    (directory / "x.observations.jsonl").write_text("".join(to_line(each) + "\n" for each in seen))
    (directory / "x.truth.jsonl").write_text("".join(to_line(each) + "\n" for each in truths))
    return str(directory)


@pytest.mark.parametrize("telling", [True, False])
def test_figures_are_those_of_a_plain_count(spark: SparkSession, tmp_path: Path, telling: bool) -> None:
    seen, truths = drawn(telling)
    traces = read_lines(spark, written(tmp_path, seen, truths))
    assert are_watched(traces)
    rows = line_figures(traces)
    assert [row["question"] for row in rows] == ["published", "received", "answered"]
    assert {row["question"]: row["auc"] for row in rows} == pytest.approx(counted(seen, truths), abs=1e-12)
    for row in rows:
        assert row["profile"] == "hardened"
        assert 0 <= row["auc_low"] <= row["auc"] <= row["auc_high"] <= 1
        assert row["auc_low"] > 0.6 if telling else row["auc_low"] < 0.6
    assert rows[0]["moments"] >= 12
    assert rows[0]["windows"] == len(LINES) * SECONDS / WINDOW
    assert (rows[2]["groups"], rows[2]["moments"], rows[2]["windows"]) == (12, 12, 24)


@pytest.mark.slow
def test_summary_and_report_tell_of_it(spark: SparkSession, tmp_path: Path) -> None:
    source = written(tmp_path, *drawn(telling=True))
    summary = analyze(spark, source, tmp_path / "out", AnalysisPlan((0.5,), chosen(["first-spy"])))
    check_documented(summary, "overlay")
    assert summary["lines"] == line_figures(read_lines(spark, source))
    page = (tmp_path / "out" / "report.html").read_text()
    assert "What an observer of lines sees" in page
    (told, *_) = lines(summary["lines"])
    assert told in told_in_full(summary)
    assert f"{told}." in page


def test_nobody_watches_lines_unless_traces_say_so(spark: SparkSession, tmp_path: Path) -> None:
    _, truths = drawn(telling=False)
    assert not are_watched(read_lines(spark, written(tmp_path, [], truths)))
