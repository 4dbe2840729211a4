"""What colluders among brokers and clients read, in words and tables; it needs no Spark."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape

from hushcast_analytics.brokers.observers import OBSERVERS
from hushcast_analytics.report import html
from hushcast_analytics.report.analysis_findings import Row
from hushcast_analytics.report.phrases import percent

ATTACKS = {
    "dictionary": "guesses words, and finds them in what brokers were shown",
    "consecutive": "takes all layers off with the keys of a broker and its nearest ancestors",
    "broker-and-child": "has the key of every child of a broker by that of one, and what compares them",
    "made-up-child": "asks those above for what compares a child that a broker alone makes up",
    "anywhere": "does one of these two at any colluding broker, which knows who asked by a key",
    "pairs": "guesses one word under a pad, which gives all others under it; a broker needs nobody for it",
    "member-key": "opens with the key that a client of the community has what its brokers are shown",
    "known-topic": "knows what a topic carried from a client of its own, and sees to whom a broker sends it",
    "root-tells": "knows from the root what each topic carried, and sees to whom a broker sends it",
    "traffic-shares": "counts what comes for each row of a broker, beside how popular topics are",
    "link-shares": "counts what goes over a link to a client, without looking inside",
}
"""What each attack does, in the order in which it is told."""
_WATCHING = ("known-topic", "root-tells", "traffic-shares", "link-shares")
OPENING = (
    *("dictionary", "consecutive", "broker-and-child", "made-up-child", "anywhere", "pairs"),
    "member-key",
)
"""Those on what brokers are shown; the claims of the paper are about these."""
CLAIMS = {
    "clear": "model 1, which hides nothing from brokers",
    "hash": "the paper's first attempt at model 3",
    "group": "the paper's attempt by one key for a group, which claims model 2",
    "community": "model 2, which hides interests from who is not of a community",
    "full": "model 3, which hides interests from every node but the root",
}
OBSERVED = {
    "interests": "interests",
    "contents": "contents",
    "subscribers": "readers of a known topic",
    "shares": "by counting (chance)",
}
"""What is told of an observer, by the name that it has in rows."""
_OBSERVED_LEGEND = (
    "Interests: of honest clients, named by what is shown. Contents: messages whose topic is named. Readers "
    "of a known topic: interests named by whom its messages go to. By counting: interests named by how many "
    "messages come, equals in part, beside what a guess names of the same clients. Nothing stands where an "
    "observer has nothing to go by. In a community `brokers` are outside of it, and so is the root."
)
READ = 0.005  # share of interests from which on, the interval's lower end, a claim counts as broken
BESIDE = (
    (
        "brokers, clear",
        "brokers, 10 % colluding",
        "a client's interest",
        "9.8 % read, by its edge broker",
    ),
    (
        "brokers, hash",
        "the same",
        "the same",
        "10 % read, by its edge broker, where a dictionary has the word",
    ),
    ("brokers, community", "the same, outside", "the same", "0 % read; 9.4 % with the key of one member"),
    (
        "brokers, full, paper",
        "the same",
        "the same",
        "20 % read: a broker alone needs a dictionary",
    ),
    (
        "brokers, full, aggregation",
        "the same, m = 3, fan-out 8",
        "the same, of a topic that can be guessed",
        "27 % read, by any broker on the way alone; of a private topic 0 %",
    ),
    ("brokers, full", "the same", "the same", "0.3 % read, by three in a row; of a private topic 0 %"),
    (
        "overlay, paper",
        "relays, 10 % colluding",
        "a topic's subscriber",
        "57 % named (chance 0.2 %)",
    ),
    ("overlay, hardened", "relays, 10 % colluding", "a topic's subscriber", "no attack beats chance, 0.2 %"),
    ("central, paper", "the server alone", "bodies; subscriptions of one user", "100 % read; 100 % linked"),
    ("central, hardened", "the server alone", "bodies; subscriptions of one user", "0 % read; 0 % linked"),
    ("central, hardened", "server, proxies, 10 users", "a topic's subscriber", "chance, while Tor holds"),
)
"""What the lab measured of models and carriers (docs/attack-lab.md), and what follows where it says so."""
_FIRST_SHARE = 0.1
_LEGEND = (
    "Everybody but the root colludes with the same probability, in many draws. Read is the share of honest "
    "clients' interests that an attack names, rightly; what it does not name it does not guess at, so that "
    "chance is 0, but for those that count messages. What is under no layer any more is a word: it names a "
    "topic to whoever knows the topic's name or link (--topics-known), and nothing to others. Links are "
    "encrypted under every model: outsiders see none of it, and could count what goes over a link at most."
)


def attacks_on(model: str) -> tuple[str, ...]:
    """Return the attacks that are tried under a model."""
    if model == "full":
        return tuple(name for name in ATTACKS if name != "member-key")
    on_what_is_shown = {"clear": ("dictionary",), "hash": ("dictionary",)}
    on_what_is_shown |= dict.fromkeys(("community", "group"), ("member-key",))
    return (*on_what_is_shown.get(model, ()), *_WATCHING)


def said(rows: Sequence[Row]) -> list[str]:
    """Return a line for each profile: which claim of the paper it reaches, and what speaks against it."""
    found = []
    for profile in dict.fromkeys(row["profile"] for row in rows):
        ours = [row for row in rows if row["profile"] == profile]
        share = min({row["colluding"] for row in ours}, key=lambda one: (abs(one - _FIRST_SHARE), one))
        by = {row["attack"]: row for row in ours if row["colluding"] == share}
        lines = [*_claim(by), *_layers(by), *_watched(by)] or [
            "no attack that is tried under it reads anything"
        ]
        found.append(f"Brokers, {profile}, {percent(share)} colluding: {'; '.join(lines)}.")
    return found


def _claim(by: dict[str, Row]) -> Iterable[str]:
    shown = [by[name] for name in OPENING if name in by]
    if not shown:
        model = next(iter(by.values()))["model"]
        yield f"{CLAIMS.get(model, model)}: not tried, traces do not say who is a member"
        return
    model = shown[0]["model"]
    best = max(shown, key=lambda row: row["accuracy_low"])
    what = CLAIMS.get(model, model)
    if model in ("community", "group"):
        yield (
            f"{what}: it holds against brokers outside, which open nothing; with the key of one client of it "
            f"brokers read {_read(best)} of honest clients' interests"
        )
    elif best["accuracy_low"] < READ:
        yield f"{what}: it holds, no attack on what is shown reads more than {percent(_most(shown))}"
    elif model == "clear":
        yield f"{what}: of honest clients' interests colluders read {_read(best)}"
    else:
        yield (
            f"{what}: it does not hold for topics that colluders can guess, {best['attack']} reads "
            f"{_read(best)} of honest clients' interests"
        )


def _layers(by: dict[str, Row]) -> Iterable[str]:
    row, other = by.get("consecutive"), by.get("broker-and-child")
    if row is None or other is None or row["model"] != "full":
        return
    m = row["layers"]
    # The second has whatever the first has: one interest more is a refutation, not chance.
    if other["accuracy"] > row["accuracy"]:
        yield (
            f"that it takes {m} colluders in a row does not hold either: these read {_read(row)}, a broker "
            f"and one child {_read(other)}"
        )
    else:
        yield f"that it takes {m} colluders in a row holds at a client's own broker: these read {_read(row)}"
    if (alone := by.get("made-up-child")) is None:
        return
    if alone["accuracy"] > row["accuracy"]:
        yield f"a broker alone, with a child that it makes up, reads {_read(alone)}"
    else:
        yield "a child that a broker makes up gives it nothing: those above do not say what compares children"


def _watched(by: dict[str, Row]) -> Iterable[str]:
    if (row := by.get("known-topic")) is not None and row["accuracy_low"] >= READ:
        yield f"who is sent a topic that a colluder reads, too, a broker sees under every model: {_read(row)}"
    if (row := by.get("traffic-shares")) is not None:
        links = by.get("link-shares")
        on_links = f", on links alone {_read(links)}" if links is not None else ""
        yield f"by counting messages alone it names {_read(row)}{on_links}, a guess {percent(row['bound'])}"


def _most(rows: Iterable[Row]) -> float:
    return max(float(row["accuracy_high"]) for row in rows)


def _read(row: Row) -> str:
    return f"{percent(row['accuracy'])} ({percent(row['accuracy_low'])} to {percent(row['accuracy_high'])})"


def lines(rows: Sequence[Row]) -> list[str]:
    """Return a table as text for each profile and share: what each observer learns."""
    table = []
    for profile, share in dict.fromkeys((row["profile"], row["colluding"]) for row in rows):
        ours = [row for row in rows if (row["profile"], row["colluding"]) == (profile, share)]
        head = (f"brokers, {profile}, {percent(share)}", *OBSERVED.values())
        cells = [head, *((row["observer"], *_cells(row)) for row in ours)]
        widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
        for each in cells:
            padded = (cell.ljust(width) for cell, width in zip(each, widths, strict=True))
            table.append("  ".join(padded).rstrip())
    return table


def _cells(row: Row) -> list[str]:
    """Return what an observer learns, a cell for each of `OBSERVED`."""
    found = [percent(row[what]) if what in row else "–" for what in OBSERVED]
    if "chance" in row:
        found[-1] += f" ({percent(row['chance'])})"
    return found


def section(rows: Sequence[Row], observers: Sequence[Row] = ()) -> list[str]:
    """Return the section of the report as HTML."""
    if not rows:
        return []
    columns = ("attack", "profile", "colluding", "draws", "trials", "read", "from", "to", "chance")
    table = [
        {
            **row,
            "read": row["accuracy"],
            "from": row["accuracy_low"],
            "to": row["accuracy_high"],
            "chance": row["bound"],
        }
        for row in rows
    ]
    does = "".join(
        f"<dt>{escape(name)}</dt><dd>{escape(f'It {what}.')}</dd>"
        for name, what in ATTACKS.items()
        if any(row["attack"] == name for row in rows)
    )
    names = ("network", "who", "of what", "found")
    beside = [dict(zip(names, each, strict=True)) for each in BESIDE]
    return [
        "<h2>Brokers</h2>",
        *(f"<p>{html.text(line)}</p>" for line in said(rows)),
        *_who_learns_what(observers),
        html.table(table, columns),
        f"<p>{html.text(_LEGEND)}</p><dl>{does}</dl>",
        "<h3>Beside it: all models, and the other carriers, as the lab measured them</h3>",
        html.table(beside, names),
    ]


def _who_learns_what(observers: Sequence[Row]) -> list[str]:
    if not observers:
        return []
    table = [
        {
            "profile": row["profile"],
            "colluding": row["colluding"],
            "observer": row["observer"],
            **dict(zip(OBSERVED.values(), _cells(row), strict=True)),
        }
        for row in observers
    ]
    has = "".join(
        f"<dt>{escape(name)}</dt><dd>{escape(f'It {one.has}.')}</dd>" for name, one in OBSERVERS.items()
    )
    return [
        "<h3>Who learns what</h3>",
        html.table(table, tuple(table[0])),
        f"<p>{html.text(_OBSERVED_LEGEND)}</p><dl>{has}</dl>",
    ]
