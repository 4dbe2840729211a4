"""What parties of the central system learn, in words and tables; it needs no Spark."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from hushcast_analytics.central.party_results import DEFINITIONS, SHARES
from hushcast_analytics.report.analysis_findings import Row
from hushcast_analytics.report.phrases import GOALS, percent
from hushcast_analytics.report.verdict import AttackStanding, standing

_LEGEND = (
    "Publisher, subscriber and subscription are the definitions of VB §3: how often the one whom the party "
    "believes in most is the right one, and in brackets how often a guess is. A party knows its own users' "
    "topics, and one that guesses as many as --topics-known says; it recognises what it knows if it has the "
    "server's key, as the server does, and a proxy together with a user. When things happen is not looked at."
)
_SHORT = (
    "* told who its users are; in brackets what a guess achieves. Linked: subscriptions, publications of one "
    "user; tied: deliveries to publications; topics: recognised of both; bodies: read."
)
_TOLD = ("Users reach proxies over Tor", "Proxies know who their users are, as in VB §4.1")
_PARTS = ("server", "publications", "deliveries", "users", "told", "guesses")
BLIND = 1 - 1e-9  # of the degree: a party that believes in all alike


def profiles_in(rows: Sequence[Row]) -> list[str]:
    """Return the profiles, in their order."""
    return list(dict.fromkeys(row["profile"] for row in rows))


def said(rows: Sequence[Row]) -> list[str]:
    """Return a line for each profile and definition: from whom people are not hidden."""
    return [
        f"Central, {profile}, {GOALS[name]}: {_judged(ours, name)}"
        for profile in profiles_in(rows)
        for name in DEFINITIONS
        if (ours := [row for row in rows if row["profile"] == profile and name in row])
    ]


def _judged(rows: Sequence[Row], name: str) -> str:
    stand = [(row, standing(row[name], len(rows))) for row in rows]
    blind = [row for row in rows if row[name]["degree"] >= BLIND]
    leaks = [row for row, each in stand if each is AttackStanding.LEAKS]
    still = [row for row, each in stand if each is AttackStanding.OPEN and row not in blind]
    least = [row for row in leaks if not any(_is_part(other, row) for other in leaks if other is not row)]
    found = " or from ".join(map(party_of, least))
    text = f"not hidden from {found}" if least else "no party is shown to do better than a guess"
    with_more = ", nor from whoever works with them" if len(leaks) > len(least) else ""
    undecided = f"; too few trials to decide for {len(still)}" if still else ""
    return f"{text}{with_more}; {len(blind)} of {len(rows)} parties believe in all alike{undecided}."


def _is_part(part: Row, whole: Row) -> bool:
    """Tell whether all that one party has another has, too."""
    return all(part[name] <= whole[name] for name in _PARTS)


def party_of(row: Row) -> str:
    """Return who it is, with a star where it is told who users are."""
    return f"{row['party']}{'*' if row['told'] else ''}"


def lines(rows: Sequence[Row]) -> list[str]:
    """Return a table of each profile as text, definitions beside chance, and what its columns are."""
    table = []
    for profile in profiles_in(rows):
        head = (f"central, {profile}", *DEFINITIONS, "linked", "tied", "topics", "bodies")
        cells: list[tuple[str, ...]] = [head]
        cells += [_cells(row) for row in rows if row["profile"] == profile]
        widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
        for each in cells:
            padded = (cell.ljust(width) for cell, width in zip(each, widths, strict=True))
            table.append("  ".join(padded).rstrip())
    return [*table, _SHORT] if table else []


def section(rows: Sequence[Row]) -> list[str]:
    """Return the section of the report as HTML."""
    if not rows:
        return []
    parts = ["<h2>The central system</h2>", *(f"<p>{_text(line)}</p>" for line in said(rows))]
    parts.append("<p>* told who its users are.</p>")
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
    return f"{_percent(row[name]['accuracy'])} ({_percent(row[name]['bound'])})"


def _share(row: Row, name: str) -> str:
    return _percent(row[name]) if name in row else "–"


def _percent(share: float) -> str:
    return percent(round(share, 9))  # a mean over trials that is 1 % may be a digit less


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
