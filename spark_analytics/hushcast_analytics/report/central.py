"""What parties of the central system learn, in words and tables; it needs no Spark."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from hushcast_analytics.report.findings import Row
from hushcast_analytics.report.verdict import Standing, standing
from hushcast_analytics.report.words import GOALS, percent

DEFINITIONS = ("publisher", "subscriber", "subscription")
SHARES = {
    "subscriptions_linked": "pairs of one user's subscriptions that the party sees to be one user's",
    "publications_linked": "pairs of one user's publications that it sees to be one user's",
    "deliveries_tied": "deliveries that it sees to be of a publication that it saw",
    "subscriptions_named": "subscriptions whose topics it recognises",
    "publications_named": "publications whose topics it recognises",
    "bodies_read": "messages whose bodies it reads",
}
"""What each is a share of; a test compares with those measured."""

_LEGEND = (
    "Publisher, subscriber and subscription are the definitions of VB §3: how often the one whom the party "
    "believes in most is the right one, and in brackets how often a guess is. A party has its own users' "
    "topics; one that guesses has all that --topics-known gives it, and whoever has the server's key, as the "
    "server has, and a proxy together with a user, recognises the topics that it knows. When things happen "
    "is not looked at."
)
_TOLD = ("Users reach proxies over Tor", "Proxies know who their users are, as in VB §4.1")


def profiles_in(rows: Sequence[Row]) -> list[str]:
    """Return the profiles, in their order."""
    return list(dict.fromkeys(row["profile"] for row in rows))


def said(rows: Sequence[Row]) -> list[str]:
    """Return a line for each profile and definition: from whom people are not hidden."""
    lines = []
    for profile in profiles_in(rows):
        ours = [row for row in rows if row["profile"] == profile]
        for name in DEFINITIONS:
            judged = [(row, standing(row[name], len(ours))) for row in ours if name in row]
            if not judged:
                continue
            leaks = [party_of(row) for row, each in judged if each is Standing.LEAKS]
            still = sum(each is Standing.OPEN for _, each in judged)
            text = f"not hidden from: {'; '.join(leaks)}" if leaks else "nobody did better than a guess"
            more = f" Too few trials to decide for {still} of {len(judged)} parties." if still else ""
            lines.append(f"{profile.capitalize()}, {GOALS[name]}: {text}.{more}")
    return lines


def party_of(row: Row) -> str:
    """Return who it is, and whether it is told who users are."""
    return f"{row['party']} (told who users are)" if row["told"] else str(row["party"])


def lines(rows: Sequence[Row]) -> list[str]:
    """Return a table of each profile as text: definitions beside chance, and the rest."""
    table = []
    for profile in profiles_in(rows):
        head = (f"central, {profile}", *DEFINITIONS, "linked", "tied", "topics", "bodies")
        cells: list[tuple[str, ...]] = [head]
        cells += [_cells(row) for row in rows if row["profile"] == profile]
        widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
        for each in cells:
            padded = (cell.ljust(width) for cell, width in zip(each, widths, strict=True))
            table.append("  ".join(padded).rstrip())
    return table


def section(rows: Sequence[Row]) -> list[str]:
    """Return the section of the report as HTML."""
    if not rows:
        return []
    parts = ["<h2>The central system</h2>", *(f"<p>{_text(line)}</p>" for line in said(rows))]
    for profile in profiles_in(rows):
        for told, title in enumerate(_TOLD):
            ours = [row for row in rows if row["profile"] == profile and row["told"] == bool(told)]
            if ours:
                parts += [f"<h3>{escape(f'{profile.capitalize()}. {title}')}</h3>", _table(ours)]
    meaning = "".join(
        f"<dt>{_head(name)}</dt><dd>Share of the {_text(of)}.</dd>" for name, of in SHARES.items()
    )
    return [*parts, f"<p>{_text(_LEGEND)}</p><dl>{meaning}</dl>"]


def _cells(row: Row) -> tuple[str, ...]:
    rest = (
        f"{_share(row, 'subscriptions_linked')}, {_share(row, 'publications_linked')}",
        _share(row, "deliveries_tied"),
        f"{_share(row, 'subscriptions_named')}, {_share(row, 'publications_named')}",
        _share(row, "bodies_read"),
    )
    return (party_of(row), *(_definition(row, name) for name in DEFINITIONS), *rest)


def _definition(row: Row, name: str) -> str:
    if name not in row:
        return "–"
    return f"{percent(row[name]['accuracy'])} ({percent(row[name]['bound'])})"


def _share(row: Row, name: str) -> str:
    return percent(row[name]) if name in row else "–"


def _table(rows: Sequence[Row]) -> str:
    head = "".join(f"<th>{_head(name)}</th>" for name in ("party", *DEFINITIONS, *SHARES))
    body = ""
    for row in rows:
        cells = [
            str(row["party"]),
            *(_definition(row, name) for name in DEFINITIONS),
            *(_share(row, name) for name in SHARES),
        ]
        body += "<tr>" + "".join(f"<td>{_text(cell)}</td>" for cell in cells) + "</tr>"
    return f"<table><tr>{head}</tr>{body}</table>"


def _head(name: str) -> str:
    return escape(name.replace("_", " "))


def _text(text: str) -> str:
    """Return a text for HTML, in which no line breaks before a percent sign."""
    return escape(text).replace(" %", "&nbsp;%")
