"""The part of a report that says what it was made from; it needs no Spark."""

from __future__ import annotations

from html import escape
from typing import Any

from hushcast_analytics.report import html
from hushcast_analytics.report.phrases import counted


def section(provenance: dict[str, Any]) -> list[str]:
    """Return the part for the value of `provenance` in a summary; nothing where there is none."""
    if not provenance:
        return []
    command = f"<pre>{escape(provenance['command'])}</pre>" if provenance["command"] else ""
    rows = [
        {"what": name, "value": value}
        for name, value in (
            ("version", provenance["version"]),
            ("date", provenance["date"]),
            *_source("traces", provenance["traces"]),
            *(_source("baseline", provenance["baseline"]) if provenance["baseline"] else []),
            ("seed of who colludes", provenance["seed"]),
            *((f"draws of who colludes, {of}", count) for of, count in provenance["draws"].items()),
        )
    ]
    same = "The same traces, command and version give the same page, but for the date."
    return [
        "<h2>What this was made from</h2>",
        command,
        html.table(rows, ("what", "value")),
        f"<p>{same}</p>",
    ]


def _source(name: str, source: dict[str, Any]) -> list[tuple[str, str]]:
    size = f"{counted(source['files'], 'file')}, {counted(source['bytes'], 'byte')}"
    return [(name, f"{source['path']}: {size}"), (f"{name}, SHA-256", source["digest"])]
