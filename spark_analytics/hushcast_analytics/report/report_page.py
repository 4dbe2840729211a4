"""The report's page: a verdict in words, pictures, tables; one file that needs no other."""

from __future__ import annotations

from html import escape

from hushcast_analytics.report import (
    brokers_section,
    central_section,
    charts,
    html,
    lines_section,
    provenance_section,
)
from hushcast_analytics.report.analysis_findings import Findings, Row, SeenTree
from hushcast_analytics.report.phrases import (
    ATTACKS,
    CLAIMS,
    GOALS,
    SUBJECTS,
    colluding,
    counted,
    percent,
    times,
)
from hushcast_analytics.report.verdict import (
    NOBODY,
    AttackStanding,
    GoalVerdict,
    commands,
    goal_of,
    standing,
    verdicts,
)

_COLUMNS = (
    *("attack", "target", "profile", "colluding", "trials", "accuracy", "accuracy_low", "accuracy_high"),
    *("bound", "precision", "recall", "inverse_rank", "ndcg", "entropy_bits", "degree", "effective_set"),
    *("min_entropy_bits", "guessing_entropy", "anonymity_set"),
)
_FIRST_SHARE = 0.1  # of the relays that collude: that of the published scheme's figures
_DEFAULT_RELAYS = 500  # of a network to be made, where the one analysed tells nothing


def page(ours: Findings, other: Findings | None) -> str:
    """Return the report as HTML, with a baseline's findings beside ours if there are some."""
    series = _series(ours, other)
    decided, open_ = _verdicts(ours)
    parts = ["<h1>How anonymous was it?</h1>", *decided]
    if other is not None:
        parts += ["<h3>The baseline</h3>", *(each for said in _verdicts(other) for each in said)]
    if series:
        parts += _first_picture(series)
        parts += ["<h2>What these traces do not decide</h2>", *open_] if open_ else []
        parts += ["<h2>Attack by attack</h2>", _attacks(series)]
        by_share = _by_share(ours, other)
        parts += ["<h2>By how many collude</h2>", html.side_by_side(by_share)] if by_share else []
    watched = ours.over_time + ([{**r, "profile": "baseline"} for r in other.over_time] if other else [])
    if watched:
        share = min({row["colluding"] for row in watched}, key=_from_first_share)
        picture = html.side_by_side([charts.entropy([row for row in watched if row["colluding"] == share])])
        columns = ("epochs", "epochs_to_name", *_COLUMNS)
        parts += [f"<h2>Over time, {percent(share)} colluding</h2>", picture]
        parts.append(html.folded("Figures over time", html.table(watched, columns)))
    if ours.trees:
        drawn = "".join(_tree(tree) for tree in ours.trees)
        parts += ["<h2>What colluders see of a tree</h2>", f'<div class="pictures">{drawn}</div>']
    parts += central_section.section(_labelled(ours.central, other.central if other else []))
    parts += brokers_section.section(
        _labelled(ours.brokers, other.brokers if other else []),
        _labelled(ours.observers, other.observers if other else []),
    )
    parts += lines_section.section(_labelled(ours.lines, other.lines if other else []))
    with_loads = [charts.loads(ours.loads, other.loads if other else None)] if ours.loads else []
    drawn_network = [
        *with_loads,
        charts.latencies(ours.latencies, other.latencies if other else None),
    ]
    parts += [
        "<h2>The network</h2>",
        html.side_by_side(drawn_network),
        html.folded("Its figures", _network(ours, other)),
    ]
    parts += ["<h2>All figures</h2>", html.folded("Of these traces", html.table(ours.attacks, _COLUMNS))]
    if other is not None:
        parts.append(html.folded("Of the baseline", html.table(other.attacks, _COLUMNS)))
    parts.append(
        "<p>Accuracy: how often the candidate whom the attack believes in most is the true one, equals "
        "counted in part; intervals are Wilson's, 95 %, corrected for runs. The bound is chance: what the "
        "definitions of anonymity (VB §3) allow. Entropy and what follows from it tell how sure an attack "
        "is, rightly or not.</p>"
    )
    parts += provenance_section.section(ours.provenance)
    return html.document(parts)


def verdict(findings: Findings) -> list[GoalVerdict]:
    """Judge what each profile gives away of each goal."""
    return verdicts(findings.attacks)


def more(findings: Findings) -> list[str]:
    """Return the commands that make enough trials where these decide nothing."""
    return commands(verdict(findings), int(findings.network.get("relays") or _DEFAULT_RELAYS))


def too_few(findings: Findings) -> str | None:
    """Say which shares of the relays were left out, being less than one of them."""
    if not findings.unwatched:
        return None
    shares = ", ".join(percent(share) for share in findings.unwatched)
    return f"Left out: {shares} of these relays is less than one of them."


def _verdicts(findings: Findings) -> tuple[list[str], list[str]]:
    """Return what is decided, and what is not, with what to type for enough trials."""
    found = verdict(findings)
    decided = [_judged(each) for each in found if each.need is None]
    still = [_judged(each) for each in found if each.need is not None]
    if still and not decided:
        decided.append("<p>These traces decide nothing: there are too few trials.</p>")
    left_out = too_few(findings)
    decided += ([] if found or findings.central or findings.brokers else [f"<p>{escape(NOBODY)}</p>"]) + (
        [f"<p>{html.text(left_out)}</p>"] if left_out else []
    )
    if typed := more(findings):
        lines = "\n".join([*typed, "hushcast lab analyze /tmp/more --out /tmp/more-analysis"])
        still.append(f"<p>To decide it:</p><pre>{escape(lines)}</pre>")
    return decided, still


def _labelled(ours: list[Row], baseline: list[Row]) -> list[Row]:
    return ours + [{**row, "profile": f"baseline, {row['profile']}"} for row in baseline]


def _judged(said: GoalVerdict) -> str:
    head = f"<b>{escape(said.profile.capitalize())}, {escape(GOALS[said.goal])}: {said.standing.value}.</b>"
    return f'<div class="verdict {said.standing.name.lower()}">{head} {html.text(said.text)}</div>'


def _series(ours: Findings, other: Findings | None) -> dict[str, list[Row]]:
    """Return the rows of each profile, paper first, at the share of colluders that is shown first."""
    found = {}
    for label, findings in (("", ours), ("baseline, ", other)):
        rows = findings.attacks if findings is not None else []
        for profile in sorted({row["profile"] for row in rows}, reverse=True):
            of = [row for row in rows if row["profile"] == profile]
            shown = min({row["colluding"] for row in of}, key=_from_first_share)
            found[label + profile] = [row for row in of if row["colluding"] == shown]
    return found


def _from_first_share(share: float) -> tuple[float, float]:
    return abs(share - _FIRST_SHARE), share


def _first_picture(series: dict[str, list[Row]]) -> list[str]:
    """Draw the attacks that can fail; one that cannot would stand at the top for nothing."""
    can_fail = {
        label: [row for row in rows if standing(row) is not AttackStanding.CANNOT_FAIL]
        for label, rows in series.items()
    }
    shown = {label: rows for label, rows in can_fail.items() if rows}
    if not shown:
        return []
    who = "; ".join(f"{label}: {colluding(rows[0])}" for label, rows in shown.items())
    caption = (
        f"How often each attack is right, with the interval that its trials leave, beside chance. Colluding: "
        f"{who}."
    )
    drawn = charts.contrast(shown)
    return [f'<figure class="first">{drawn}<figcaption>{html.text(caption)}</figcaption></figure>']


def _attacks(series: dict[str, list[Row]]) -> str:
    """Say in a sentence for each attack what it tries and what it got, under what it is a claim against."""
    parts = []
    for goal in GOALS:
        rows = [(label, row) for label, of in series.items() for row in of if goal_of(row) == goal]
        if not rows:
            continue
        claim = escape(f"The claim: {CLAIMS[goal]}.")
        parts.append(f"<h3>{escape(GOALS[goal].capitalize())}</h3><p>{claim}</p><dl>")
        for name in dict.fromkeys(row["attack"] for _, row in rows):
            got = "; ".join(_got(label, row) for label, row in rows if row["attack"] == name)
            words = ATTACKS.get(name)
            tries = f"It {words.tries}. " if words else ""
            against = f" (Threat model, row {words.row}.)" if words and words.row else ""
            parts.append(f"<dt>{escape(name)}</dt><dd>{html.text(f'{tries}{got}.{against}')}</dd>")
        parts.append("</dl>")
    return "".join(parts)


def _got(label: str, row: Row) -> str:
    if standing(row) is AttackStanding.CANNOT_FAIL:
        why = "every candidate was right" if (row.get("candidates") or 1) > 1 else "one candidate only"
        return f"{label.capitalize()}: {why}, it could not fail"
    ratio = row["accuracy"] / row["bound"]
    return (
        f"{label.capitalize()}: right in {percent(row['accuracy'])} of {counted(row['trials'], 'trial')} "
        f"({percent(row['accuracy_low'])} to {percent(row['accuracy_high'])}), chance is "
        f"{percent(row['bound'])}" + (f", {times(ratio)} as often" if ratio >= 2 else "")
    )


def _by_share(ours: Findings, other: Findings | None) -> list[str]:
    """Draw, for what has one chance together, the strongest attack under each profile."""
    labelled = [(row["profile"], row) for row in ours.attacks]
    labelled += [(f"baseline, {row['profile']}", row) for row in (other.attacks if other else [])]
    shown = [(label, row) for label, row in labelled if standing(row) is not AttackStanding.CANNOT_FAIL]
    drawn = []
    for subject, title in SUBJECTS.items():
        lines: dict[str, list[Row]] = {}
        for label in sorted({label for label, _ in shown}, reverse=True):
            rows = [row for name, row in shown if name == label and row.get("subject") == subject]
            if rows:
                best = max(rows, key=lambda row: (row["accuracy_low"], row["accuracy"]))["attack"]
                lines[label] = [row for row in rows if row["attack"] == best]
        if len({row["colluding"] for rows in lines.values() for row in rows}) > 1:
            drawn.append(charts.accuracy(lines, title))
    return drawn


def _tree(tree: SeenTree) -> str:
    who = "a relay of the network, the subscriber's own" if tree.profile == "paper" else "a mailbox"
    met = "a colluder stands below it and sees its address" if tree.root_met else "no colluder meets it"
    relays, bad = counted(len(tree.parents), "relay"), len(tree.colluders & tree.parents.keys())
    who_sees = f"of {relays}, {counted(bad, 'colluder')} can see {len(tree.seen):,}"
    caption = (
        f"{tree.profile.capitalize()}: {who_sees} of {len(tree.parents):,} links of this subscription. "
        f"Its root is {who}; {met}."
    )
    return f"<figure>{charts.tree(tree)}<figcaption>{html.text(caption)}</figcaption></figure>"


def _network(ours: Findings, other: Findings | None) -> str:
    rows = [{"figure": name.replace("_", " "), "value": value} for name, value in ours.network.items()]
    columns = ["figure", "value"]
    if other is not None:
        columns.append("baseline")
        rows = [
            {**row, "baseline": other.network.get(name)} for row, name in zip(rows, ours.network, strict=True)
        ]
    return html.table(rows, columns)
