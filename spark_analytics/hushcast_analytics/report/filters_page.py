"""The page of what was learnt about k, and the same in lines; it needs no Spark."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import Any

from hushcast_analytics.report import filter_charts, html, provenance_section
from hushcast_analytics.report.analysis_findings import Row
from hushcast_analytics.report.phrases import counted, percent

_COLLUDING = (
    *("condition", "k", "colluding", "cap", "spread", "claimed_level", "true_level", "claimed", "true"),
    *("wrongly", "ask", "safe"),
)
_COST = (
    *("condition", "k", "sampled", "had", "generalised", "nothing", "added_mean", "added_median"),
    *("added_p90", "times_median"),
)


def page(summary: dict[str, Any]) -> str:
    """Return the report as HTML."""
    ks, searched = summary["wanted"]["ks"], max((row["sampled"] for row in summary["cost"]), default=0)
    shown = _middle(ks)
    parts = [
        "<h1>Among how many do filters hide?</h1>",
        *(f"<p>{html.text(line)}</p>" for line in [counts(summary), *said(summary)]),
        "<h2>Levels</h2>",
        html.side_by_side(
            [filter_charts.levels(summary["levels"]), filter_charts.reached(summary["reached"])]
        ),
        html.folded("Figures of levels", html.table(_flat(summary["levels"]), _columns(summary["levels"]))),
        html.folded(
            "Who reaches k", html.table(summary["reached"], ("condition", "k", "filters", "subscribers"))
        ),
        "<h2>What generalising costs</h2>",
        f"<p>{escape(_searched(searched))}</p>",
        html.side_by_side([filter_charts.costs(summary["cost"])]),
        html.folded("Its figures", html.table(summary["cost"], _COST)),
        f"<h2>Edge brokers that collude, k = {shown}</h2>",
        f"<p>{escape(_watched(summary))}</p>",
        html.side_by_side(
            [
                filter_charts.wrongly([row for row in summary["colluding"] if row["k"] == shown], condition)
                for condition in summary["wanted"]["conditions"]
            ]
        ),
        html.folded("Figures for each k", html.table(summary["colluding"], _COLLUDING)),
        *provenance_section.section(summary.get("provenance", {})),
    ]
    return html.document(parts)


def counts(summary: dict[str, Any]) -> str:
    """Return a line that says what was looked at."""
    return (
        f"{counted(summary['filters'], 'filter')} of {counted(summary['sources'], 'subscriber')} on "
        f"{counted(summary['topics'], 'topic')}, the largest with {summary['largest']:,}."
    )


def said(summary: dict[str, Any]) -> list[str]:
    """Return a line for each condition and k."""
    cost = {(row["condition"], row["k"]): row for row in summary["cost"]}
    return [
        f"{row['condition']}, k = {row['k']}: {percent(row['filters'])} of the filters reach it, and all "
        f"filters of {percent(row['subscribers'])} of the subscribers"
        + _price(cost.get((row["condition"], row["k"])))
        for row in summary["reached"]
    ]


def _price(row: Row | None) -> str:
    if row is None:
        return "."
    nothing = f"; for {percent(row['nothing'])} none was found" if row["nothing"] else ""
    if row["added_median"] is None:
        return f"{nothing}."
    wider = f"; where not, a wider one adds {percent(row['added_median'])} of the topic's messages (median)"
    return f"{wider}{nothing}."


def _searched(sampled: int) -> str:
    return (
        f"Of {counted(sampled, 'filter')} drawn at random, those below k were each searched a wider filter "
        "for, among the 512 filters of their topic that merge with them at least volume. What is added are "
        "shares of the topic's messages."
    )


def _watched(summary: dict[str, Any]) -> str:
    wanted = summary["wanted"]
    return (
        f"Of {counted(summary['watched'], 'filter')} drawn at random; subscribers are {_at(summary)}. Those"
        " that collude vouch for subscribers who do not exist: k, "
        f"or with a cap {wanted['cap']} each. With spread, sources of {wanted['spread']} brokers are "
        "needed. Shown is which share of the filters said to be k-anonymous are not: fewer than k real "
        "subscribers of brokers that do not collude are behind them. "
        "Who asks for the level in the column ask is not misled; safe is how many filters reach that."
    )


def _at(summary: dict[str, Any]) -> str:
    if summary["wanted"]["brokers"] is None:
        return f"where the traces have them, at {counted(summary['brokers'], 'edge broker')}"
    return f"dealt out to {counted(summary['brokers'], 'edge broker')}"


def _middle(ks: Sequence[int]) -> int:
    return sorted(ks)[len(ks) // 2]


def _flat(rows: Sequence[Row]) -> list[Row]:
    return [
        {
            "condition": row["condition"],
            "mean": row["mean"],
            "most": row["most"],
            **{percent(float(share)): level for share, level in row["quantiles"].items()},
        }
        for row in rows
    ]


def _columns(rows: Sequence[Row]) -> list[str]:
    return list(_flat(rows)[0])
