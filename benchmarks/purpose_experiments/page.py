"""The page: the published tables beside ours, what grows, and what came that should not. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from html import escape

import msgspec

from benchmarks.purpose_experiments.inside import Large, Sweep
from benchmarks.purpose_experiments.picture import bars, lines
from benchmarks.purpose_experiments.sides import MOSQUITTO, NONE
from benchmarks.purpose_experiments.tables import Row
from benchmarks.purpose_experiments.verdicts import Size, Verdicts
from hushcast_runtime.web_page import document

PAPER = {  # percentages of tables I and II, by the side that does the same here
    "on subscribe, tree": (12.59, 6.89),
    "nothing reserved": (13.59, 9.01),
    "on publish, cached": (20.08, 19.64),
    "hybrid, tree": (25.00, 34.02),
    "on publish, tree": (25.85, 36.16),
    "on publish, flat": (43.72, 2167.57),
}
_MOST = 50.0, 60.0  # percent, at which bars are cut
_AXES = {
    "reservations": "reservations, each for another car",
    "topics": "topics on which messages are published",
    "wildcards": "readers of cars/#, each of which gets every message",
    "purposes": "purposes that each reservation allows",
}
_STYLE = """
p { max-width: 60rem }
td { white-space: nowrap } th { vertical-align: bottom }
td:first-child, th:first-child { text-align: left }
"""


class Results(msgspec.Struct, frozen=True):
    """All that was measured; parts may be missing."""

    machine: str = ""
    rows: tuple[Row, ...] = ()
    sweeps: tuple[Sweep, ...] = ()
    large: tuple[Large, ...] = ()
    verdicts: tuple[Verdicts, ...] = ()
    size: Size = Size()
    clients: int = 0
    many: int = 0


def lost(row: Row, none: Row) -> float | None:
    """Return the share of its messages that a broker with one core busy no longer passes, in percent."""
    if row.work is None or none.work is None:
        return None
    return 100 * (1 - none.work / row.work)


def later(row: Row, none: Row) -> float | None:
    """Return by how many percent a message is there later."""
    if row.latency is None or none.latency is None:
        return None
    return 100 * (row.latency / none.latency - 1)


def files(results: Results) -> dict[str, str]:
    """Return the files by their names: each picture as SVG, and `index.html`."""
    drawn = {
        "purposes-throughput.svg": _bars("Throughput lost", results, lost, 0),
        "purposes-latency.svg": _bars("Later by", results, later, 1),
    }
    for axis, label in _AXES.items():
        found = {one.side: one.values for one in results.sweeps if one.axis == axis}
        if found:
            drawn[f"purposes-{axis}.svg"] = lines(f"µs of CPU for a message over {label}", label, found)
    parts = [
        "<h1>What purposes cost a gateway, and whether they hold</h1>",
        _intro(results),
        "<h2>Tables I and II</h2>",
        _figures(drawn, {"throughput": "Throughput lost (table I)", "latency": "Later by (table II)"}),
        _tables(results),
        "<h2>What grows</h2><p>The broker alone, without sockets and disk, in µs of CPU for a message. "
        "All else stays as in the tables; a message goes to one reader, and to those of wildcards.</p>",
        _figures(drawn, {axis: f"Over {label}" for axis, label in _AXES.items()}),
        f"<h2>{results.many:,} reservations and {results.many:,} subscriptions</h2>",
        _large(results),
        "<h2>What came, and what should have come</h2>",
        _verdicts(results),
    ]
    drawn["index.html"] = document("Hushcast: purposes", parts, _STYLE)
    return drawn


def _intro(results: Results) -> str:
    return f"""<p>Tables I and II of Wolf and others, <i>Messaging with Purpose Limitation</i> (2021),
section VI, with our gateway, and with mosquitto beside it. {escape(results.machine)}.</p>
<p>{results.clients} clients of MQTT 3.1.1, one topic of each on which 256 bytes are published at QoS 0; a
reservation of each for its own topics by one wildcard, with two purposes allowed and one prohibited below
them; three subscriptions of each without wildcards, for one purpose of two levels, all allowed. So every
message goes to one reader on every side. All sides run at once and are measured in turns.</p>"""


def _bars(title: str, results: Results, value: Callable[[Row, Row], float | None], which: int) -> str:
    rows = {row.name: row for row in results.rows}
    none = rows.get(NONE.name, Row(NONE.name))
    drawn = [
        (name, value(rows[name], none) if name in rows else None, percent[which])
        for name, percent in PAPER.items()
    ]
    return bars(title, drawn, _MOST[which])


def _figures(drawn: dict[str, str], captions: dict[str, str]) -> str:
    each = (
        f"<figure>{drawn[f'purposes-{name}.svg']}<figcaption>{escape(caption)}</figcaption></figure>"
        for name, caption in captions.items()
        if f"purposes-{name}.svg" in drawn
    )
    return f'<div class="pair">{"".join(each)}</div>'


def _tables(results: Results) -> str:
    none = next((row for row in results.rows if row.name == NONE.name), Row(NONE.name))
    body = []
    for row in results.rows:
        paper = PAPER.get(row.name, (None, None))
        is_peer = row.name == MOSQUITTO.name
        body.append(
            (
                row.name + (f" ({row.missing})" if row.missing else ""),
                _number(row.work),
                _percent(None if is_peer else lost(row, none)),
                _percent(paper[0]),
                _number(row.rate),
                _number(row.latency),
                _number(row.latency_high),
                _percent(None if is_peer else later(row, none)),
                _percent(paper[1]),
            )
        )
    head = (
        "side",
        "µs of CPU a message",
        "throughput lost",
        "paper",
        "messages a second, load on the same machine",
        "µs until it is there",
        "99 of 100",
        "later by",
        "paper",
    )
    about = """<p>Throughput lost is what a broker no longer passes with one core busy, from the CPU time that
its process takes for a message, the least of the turns. Latencies are medians of messages sent one at a
time, the least of the turns. The
paper's percentages are to its broker without the extension. It does not name the store of filtering on
subscribe and of the hybrid mode; they stand beside our tree.</p>"""
    return about + _table(head, body)


def _large(results: Results) -> str:
    body = []
    for one in results.large:
        changes = (one.new, one.changed, one.look) if one.new else ()
        body.append((one.side, _number(one.message), *(_number(each) for each in changes)))
    about = f"""<p>A hundredth of the subscriptions is to <code>cars/#</code>: a message goes to
{results.many // 100} readers or one more. 500 topics are busy. In the broker alone, µs of CPU: a message; a
new reservation; one of a busy topic that is changed, with the next message on it; and what is left to look
at a second later, however many changed. The list is left out, for each message would take a million
comparisons.</p>"""
    head = ("side", "message", "new reservation", "changed, and a message", "look after changes")
    return about + _table(head, body)


def _verdicts(results: Results) -> str:
    size = results.size
    body = []
    for one in results.verdicts:
        counts = (
            one.asked,
            one.allowed,
            one.false_accepts,
            one.false_rejects,
            one.with_subscription,
            one.refused,
        )
        name = one.name + (f" ({one.missing})" if one.missing else "")
        body.append((name, *(f"{each:,}" for each in counts)))
    head = (
        "side",
        "messages and readers",
        "allowed",
        "false accepts",
        "false rejects",
        "went with the subscription",
        "subscriptions refused",
    )
    about = f"""<p>A drawn world: {size.topics} topics, {size.clients} clients with {size.subscriptions}
subscriptions each, {size.reservations} reservations by clients and {size.reservations // 6} in the
configuration, which is another owner. A quarter of the levels of filters are <code>+</code>, three of ten
filters end in <code>#</code>; 30 purposes in three levels, a tenth of subscriptions without any.
{size.rounds} rounds of a message on each topic, with {size.changes} changes of reservations between them.
What clients got is compared with plain sets that share no code with the gateway, message by message. A whole
subscription that is refused or rests takes along what of it is allowed: that is the price of those modes.
Brokers without purposes stand here to show that faults are found.</p>"""
    return about + _table(head, body)


def _table(head: Sequence[str], body: Iterable[Sequence[str]]) -> str:
    rows = "".join("<tr>" + "".join(f"<td>{escape(each)}</td>" for each in row) + "</tr>\n" for row in body)
    return (
        '<div class="wide"><table><tr>'
        + "".join(f"<th>{escape(each)}</th>" for each in head)
        + f"</tr>\n{rows}</table></div>"
    )


def _number(value: float | None) -> str:
    if value is None:
        return "–"
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def _percent(value: float | None) -> str:
    return "" if value is None else f"{round(value, 1) or 0.0:,.1f} %"
