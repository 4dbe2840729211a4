"""What an observer of lines learns, in words and a table; it needs no Spark."""

from __future__ import annotations

from collections.abc import Sequence

from hushcast_analytics.report import html
from hushcast_analytics.report.analysis_findings import Row
from hushcast_analytics.report.phrases import counted

_ASKS = {
    "published": "when a daemon published, by the bytes that left on its line",
    "received": "when a daemon received, by the bytes that came on its line",
    "answered": "which daemons received a publication whose moment is known, by the bytes that came after it",
}
_LEGEND = (
    "AUC: how often the right one of two, one in which it happened and one in which it did not, has more "
    "bytes; chance is 0.5, and 1 tells them apart without fail. The interval, 95 %, is by how lines differ, "
    "or messages."
)
_COLUMNS = ("profile", "question", "groups", "moments", "windows", "auc", "auc_low", "auc_high")


def lines(rows: Sequence[Row]) -> list[str]:
    """Return a line of text for each question."""
    return [
        f"An observer of lines, {row['profile']}: {_ASKS[row['question']]}: AUC {row['auc']:.2f} "
        f"({row['auc_low']:.2f} to {row['auc_high']:.2f}) of {counted(row['moments'], 'moment')}, chance 0.50"
        for row in rows
    ]


def section(rows: Sequence[Row]) -> list[str]:
    """Return the section of the report as HTML, nothing where nobody watched."""
    if not rows:
        return []
    said = [f"<p>{html.text(line)}.</p>" for line in lines(rows)]
    table = html.folded("Figures of lines", html.table(rows, _COLUMNS))
    return ["<h2>What an observer of lines sees</h2>", *said, f"<p>{html.text(_LEGEND)}</p>", table]
