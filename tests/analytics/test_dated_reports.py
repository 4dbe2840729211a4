"""Reports made again and again: what changed is told, a kill leaves none, and old ones go."""

from __future__ import annotations

import json
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from hushcast_analytics.analysis import AnalysisPlan, chosen
from hushcast_analytics.dated_reports import FIRST, UNREADABLE, add_report, reports
from hushcast_analytics.errors import TracesError
from hushcast_analytics.report.changes import NOTHING, changes
from hushcast_testnet.simulations.overlay_simulation import Scenario, simulate

BEFORE: dict[str, Any] = {
    "verdict": [{"profile": "hardened", "goal": "publisher", "standing": "not decided", "text": "…"}],
    "attacks": [
        {"profile": "hardened", "attack": "trained", "colluding": 0.1, "accuracy": 0.05}
        | {"accuracy_low": 0.01, "accuracy_high": 0.09}
    ],
    "network": {"completeness": 1.0, "latency_p50": 0.5, "pairs": 10.0, "excess": None},
}


def test_nothing_is_said_of_what_is_as_it_was() -> None:
    now = deepcopy(BEFORE)
    now["network"] |= {"pairs": 90.0, "latency_p50": 0.54}  # more traces, and a machine that was busier
    now["attacks"][0] |= {"accuracy": 0.09, "accuracy_low": 0.05, "accuracy_high": 0.13}
    assert changes(BEFORE, now) == [NOTHING]


def test_verdicts_attacks_and_figures_that_are_others() -> None:
    now = deepcopy(BEFORE)
    now["verdict"][0]["standing"] = "not hidden"
    now["verdict"].append({"profile": "paper", "goal": "link", "standing": "hidden", "text": "…"})
    now["attacks"][0] |= {"accuracy": 0.4, "accuracy_low": 0.3, "accuracy_high": 0.5}
    now["network"]["completeness"] = 0.8
    assert changes(BEFORE, now) == [
        "Hardened, who published: was not decided, is not hidden.",
        "Paper, which topics one subscriber has: was not asked, is hidden.",
        "Hardened, trained, 10 % collude: right in 5 % (1 % to 9 %), right in 40 % (30 % to 50 %) now.",
        "Completeness: 1, 0.8 now.",
    ]


@pytest.mark.spark
def test_reports_stand_beside_each_other(spark: SparkSession, tmp_path: Path) -> None:
    out, traces = tmp_path / "reports", tmp_path / "gathered"
    out.mkdir()
    wanted = AnalysisPlan((0.2,), chosen(["first-spy"]))
    for machine in ("one", "two"):
        simulate(Scenario(6, 1, 8, topics=2, depth=2, traces=traces / machine))
    first = add_report(spark, str(traces), out, wanted, keep=2)
    assert first.changes == [FIRST]
    assert reports(out) == [first.place]
    assert {path.name for path in first.place.iterdir()} == {
        *("summary.json", "report.html", "changes.txt", "trials", "attacks")
    }
    summary = json.loads((first.place / "summary.json").read_text())
    assert summary["network"]["runs"] == 2
    # As if it had been another day.
    summary["verdict"][0]["standing"] = "not hidden"
    (first.place / "summary.json").write_text(json.dumps(summary))
    earlier, earliest = (first.place.with_name(f"2020010{day}T000000Z") for day in (2, 1))
    first.place.rename(earlier)
    earliest.mkdir()
    (out / "unfinished" / "tables").mkdir(parents=True)
    second = add_report(spark, str(traces), out, wanted, keep=2)
    assert second.changes[0] == f"Since {earlier.name}:"
    assert "was not hidden, is " in second.changes[1]
    assert (second.place / "changes.txt").read_text().splitlines() == second.changes
    assert reports(out) == [earlier, second.place]
    assert not (out / "unfinished").exists()


@pytest.mark.spark
def test_traces_that_are_none_leave_no_report(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "traces").mkdir()
    with pytest.raises(TracesError):
        add_report(spark, str(tmp_path / "traces"), tmp_path, AnalysisPlan((0.2,), ()), keep=2)
    assert reports(tmp_path) == []


def test_a_summary_that_was_spoilt_is_said(tmp_path: Path) -> None:
    from hushcast_analytics.dated_reports import _changes

    (tmp_path / "summary.json").write_text("[]")
    assert _changes([tmp_path], BEFORE) == [UNREADABLE]
