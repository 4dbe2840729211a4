"""Dated reports: an analysis beside those before it, and what changed since the last."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from pyspark.sql import SparkSession

from hushcast_analytics.analysis import analyze
from hushcast_analytics.profile_runs import AnalysisPlan
from hushcast_analytics.report.changes import changes

FIRST = "The first report here: there is none to compare it with."
UNREADABLE = "The last report's summary cannot be read: there is nothing to compare this one with."
_NAME = re.compile(r"\d{8}T\d{6}Z")  # UTC; no colon, which Spark does not read
_UNFINISHED = "unfinished"


@dataclass(frozen=True)
class DatedReport:
    """Where a report lies, and what changed since the one before it, in lines."""

    place: Path
    changes: list[str]


def add_report(
    spark: SparkSession,
    source: str,
    out: Path,
    wanted: AnalysisPlan,
    keep: int,
    progress: Callable[[str], None] = lambda text: None,
    *,
    command: str | None = None,
    live: bool = False,
) -> DatedReport:
    """Analyse the traces under `source` into a directory below `out` that is named after the time.

    It gets what `analyze` writes, but for the tables, which can be made of the traces again, and
    `changes.txt`. The last `keep` reports stay. One that was interrupted leaves no report. Raises
    `TracesError` and `OSError`.
    """
    unfinished = out / _UNFINISHED
    shutil.rmtree(unfinished, ignore_errors=True)
    summary = analyze(spark, source, unfinished, wanted, None, progress, command=command, live=live)
    shutil.rmtree(unfinished / "tables", ignore_errors=True)
    before = reports(out)
    said = _changes(before, json.loads(json.dumps(summary)))
    (unfinished / "changes.txt").write_text("".join(f"{line}\n" for line in said))
    place = out / datetime.now(UTC).strftime("%Y%m%dT%H%M%SZ")
    shutil.rmtree(place, ignore_errors=True)  # of the same second
    unfinished.rename(place)
    for old in reports(out)[:-keep]:
        shutil.rmtree(old)
    return DatedReport(place, said)


def reports(out: Path) -> list[Path]:
    """Return the reports in a directory, the oldest first."""
    return sorted(path for path in out.iterdir() if path.is_dir() and _NAME.fullmatch(path.name))


def _changes(before: list[Path], summary: dict[str, object]) -> list[str]:
    if not before:
        return [FIRST]
    try:
        last = json.loads((before[-1] / "summary.json").read_text())
        return [f"Since {before[-1].name}:", *changes(last, summary)]
    except (OSError, ValueError, KeyError, TypeError, AttributeError):  # whatever has become of the file
        return [UNREADABLE]
