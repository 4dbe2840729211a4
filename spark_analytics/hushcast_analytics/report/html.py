"""What all pages of reports are made of; a page is one file that needs no other."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from typing import Any

from hushcast_analytics.report.analysis_findings import Row

_STYLE = """
:root { color-scheme: light }
body { font: 16px/1.5 system-ui, sans-serif; max-width: 68rem; margin: 1.5rem auto; padding: 0 1rem;
  color: #1b1b1b; background: #fff; overflow-wrap: break-word }
h1 { font-size: 1.5rem }
h2 { font-size: 1.2rem; margin-top: 2rem } h3 { font-size: 1rem; margin: 1rem 0 .3rem }
.verdict { border-left: .4rem solid #999; padding: .1rem .8rem; margin: .8rem 0 }
.leaks { border-color: #d1495b } .holds { border-color: #00798c } .open { border-color: #edae49 }
pre { background: #f3f3f3; padding: .5rem; white-space: pre-wrap; overflow-wrap: anywhere; margin: .4rem 0 }
.pictures { display: flex; flex-wrap: wrap; gap: 1rem }
figure { margin: 0; width: 32rem; max-width: 100% }
figure.first { width: 38rem }
svg { width: 100%; height: auto; display: block }
figcaption { font-size: 14px; color: #444 }
dt { margin-top: .8rem; font-weight: 600 } dd { margin: 0 }
table { border-collapse: collapse; font-size: 13px; display: block; overflow-x: auto; max-width: 100% }
td, th { padding: .15rem .6rem; text-align: right; border-bottom: 1px solid #ddd }
td:first-child, th:first-child { text-align: left }
"""


def document(parts: Iterable[str]) -> str:
    """Return a page."""
    body = "\n".join(parts)
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        "<title>Hushcast: anonymity</title>"
        f"<style>{_STYLE}</style></head><body>{body}</body></html>\n"
    )


def text(plain: str) -> str:
    """Return a text for HTML, in which no line breaks before a percent sign."""
    return escape(plain).replace(" %", "&nbsp;%")


def folded(title: str, body: str) -> str:
    """Return what is shown when its title is clicked."""
    return f"<details><summary>{escape(title)}</summary>{body}</details>"


def side_by_side(drawn: list[str]) -> str:
    """Return pictures, as many beside each other as there is room for."""
    return f'<div class="pictures">{"".join(f"<figure>{each}</figure>" for each in drawn)}</div>'


def table(rows: Sequence[Row], columns: Any) -> str:
    """Return rows as a table; a column has the name of what it shows."""
    head = "".join(f"<th>{escape(name.replace('_', ' '))}</th>" for name in columns)
    body = "".join(
        "<tr>" + "".join(f"<td>{_shown(row.get(name))}</td>" for name in columns) + "</tr>" for row in rows
    )
    return f"<table><tr>{head}</tr>{body}</table>"


def _shown(value: Any) -> str:
    if value is None:
        return "–"
    if isinstance(value, float):
        return f"{value:,.0f}" if value.is_integer() and abs(value) >= 1000 else f"{value:.4g}"
    return escape(str(value))
