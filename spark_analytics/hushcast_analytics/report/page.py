"""The report's page: a verdict in words, pictures, tables; one file that needs no other."""

from __future__ import annotations

from html import escape
from typing import Any

from hushcast_analytics.report import pictures
from hushcast_analytics.report.pictures import Findings, Row

_STYLE = """
body { font: 15px/1.5 system-ui, sans-serif; max-width: 68rem; margin: 2rem auto; padding: 0 1rem }
h1 { font-size: 1.5rem } h2 { font-size: 1.15rem; margin-top: 2rem }
.pictures { display: flex; flex-wrap: wrap; gap: 1rem }
.pictures svg { width: 32rem; height: auto; max-width: 100% }
table { border-collapse: collapse; font-size: 13px; display: block; overflow-x: auto }
td, th { padding: .15rem .6rem; text-align: right; border-bottom: 1px solid #ddd }
td:first-child, th:first-child { text-align: left }
"""
_COLUMNS = (
    *(
        "attack",
        "target",
        "profile",
        "colluding",
        "trials",
        "accuracy",
        "accuracy_low",
        "accuracy_high",
        "bound",
    ),
    *("precision", "recall", "inverse_rank", "ndcg", "entropy_bits", "degree", "effective_set"),
    *("min_entropy_bits", "guessing_entropy", "anonymity_set"),
)


def page(ours: Findings, other: Findings | None) -> str:
    """Return the report as HTML, with a baseline's findings beside ours if there are some."""
    parts = ["<h1>How anonymous was it?</h1>", *(f"<p>{escape(line)}</p>" for line in verdict(ours))]
    if other is not None:
        parts += ["<p><b>Baseline.</b></p>", *(f"<p>{escape(line)}</p>" for line in verdict(other))]
    parts += [
        "<h2>Attacks</h2>",
        _pictures(
            _of_attacks(ours.attacks, "") + (_of_attacks(other.attacks, "baseline, ") if other else [])
        ),
    ]
    watched = ours.over_time + ([{**r, "profile": "baseline"} for r in other.over_time] if other else [])
    if watched:
        parts += [
            "<h2>Over time</h2>",
            _pictures([pictures.entropy(watched)]),
            _table(watched, ("epochs", "epochs_to_name", *_COLUMNS)),
        ]
    drawn = [pictures.loads(ours.loads, other.loads if other else None)]
    drawn.append(pictures.latencies(ours.latencies, other.latencies if other else None))
    if ours.tree:
        drawn.append(pictures.tree(ours.tree))
    parts += ["<h2>The network</h2>", _pictures(drawn), _network(ours, other)]
    parts += ["<h2>All figures</h2>", _table(ours.attacks, _COLUMNS)]
    if other is not None:
        parts += ["<h2>All figures of the baseline</h2>", _table(other.attacks, _COLUMNS)]
    parts.append(
        "<p>Accuracy: how often the candidate whom the attack believes in most is the true one, equals "
        "counted in part; intervals are Wilson's, 95 %, corrected for runs. Entropy and what follows from "
        "it tell how sure an attack is, rightly or not.</p>"
    )
    body = "\n".join(parts)
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8"><title>Hushcast: anonymity</title>'
        f"<style>{_STYLE}</style></head><body>{body}</body></html>\n"
    )


def verdict(findings: Findings) -> list[str]:
    """Say in words, for each profile, what the best attack achieves against what is allowed."""
    lines = []
    for profile in dict.fromkeys(row["profile"] for row in findings.attacks):
        for target in ("publisher", "subscriber", "subscription"):
            rows = [r for r in findings.attacks if (r["profile"], r["target"]) == (profile, target)]
            if rows:
                best = max(rows, key=lambda row: (row["accuracy_low"], row["accuracy"]))
                lines.append(_said(best))
    if not lines:
        lines.append("There was nobody to find: no honest participant published or subscribed.")
    return lines


def _said(row: Row) -> str:
    times = row["accuracy"] / row["bound"] if row["bound"] else 0.0
    if row["accuracy_low"] <= row["bound"]:
        judged = "which chance explains"
    else:
        judged = f"{times:.1f} times what the definition allows"
    return (
        f"{row['profile'].capitalize()}, {row['target']}s: with {row['colluding']:.0%} of relays colluding, "
        f"the best attack ({row['attack']}) names the right one in {row['accuracy']:.2%} of {row['trials']} "
        f"trials ({row['accuracy_low']:.2%} to {row['accuracy_high']:.2%}), {judged} ({row['bound']:.2%})."
    )


def _of_attacks(rows: list[Row], label: str) -> list[str]:
    drawn = []
    for profile in dict.fromkeys(row["profile"] for row in rows):
        for target in dict.fromkeys(row["target"] for row in rows):
            shown = [r for r in rows if (r["profile"], r["target"]) == (profile, target)]
            if shown:
                drawn.append(pictures.accuracy(shown, f"{label}{profile}: {target}s"))
    return drawn


def _network(ours: Findings, other: Findings | None) -> str:
    rows = [{"figure": name, "value": value} for name, value in ours.network.items()]
    columns = ["figure", "value"]
    if other is not None:
        columns.append("baseline")
        rows = [{**row, "baseline": other.network.get(str(row["figure"]))} for row in rows]
    return _table(rows, columns)


def _pictures(drawn: list[str]) -> str:
    return f'<div class="pictures">{"".join(drawn)}</div>'


def _table(rows: list[Row], columns: Any) -> str:
    head = "".join(f"<th>{escape(name.replace('_', ' '))}</th>" for name in columns)
    body = "".join(
        "<tr>" + "".join(f"<td>{_shown(row.get(name))}</td>" for name in columns) + "</tr>" for row in rows
    )
    return f"<table><tr>{head}</tr>{body}</table>"


def _shown(value: Any) -> str:
    if value is None:
        return "–"
    return f"{value:.4g}" if isinstance(value, float) else escape(str(value))
