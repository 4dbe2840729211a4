"""The page with figures 6 to 9: pictures, what they are of, and a table with every number. Pure."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from html import escape
from itertools import cycle

from hushcast_located.figures.matching_costs import FigurePoint, MatchingMeans, WorkloadSize
from hushcast_located.figures.proof_costs import MANY, ProofComparison
from hushcast_runtime.line_chart import COLOURS, ChartLine, ChartPoint, line_chart, round_scale, scale_of
from hushcast_runtime.web_page import document

PAGE = "index.html"
Values = dict[str, Callable[[FigurePoint], float | None]]
"""How each line's value follows from a point."""

_AXES = (("alpha", "α, at θ = 0.7"), ("theta", "θ, at α = 0.5"))
_MIDDLE = 500, 700
_PUBLISHED = "SP", "SP + IIP"


def _of_ways(value: Callable[[MatchingMeans], float], names: Sequence[str] = _PUBLISHED) -> Values:
    def of(name: str) -> Callable[[FigurePoint], float | None]:
        return lambda point: value(point.ways[name])

    return {name: of(name) for name in names}


def _of_proofs(value: Callable[[ProofComparison], float]) -> Callable[[FigurePoint], float | None]:
    return lambda point: None if point.proofs is None else value(point.proofs.all)


FIGURES: dict[str, tuple[str, str, str, Values]] = {
    "figure6-accessed": (
        "Figure 6: subscriptions met in lists",
        "accessed, % of all",
        "In the lists of one message, on average; what nodes met on the way stands in the table.",
        _of_ways(lambda found: 100 * found.accessed),
    ),
    "figure6-candidates": (
        "Figure 6: candidates",
        "candidates, % of all",
        "For one message, on average. They are the same for both: what a node prunes is no candidate of a"
        " message below it.",
        _of_ways(lambda found: 100 * found.candidates),
    ),
    "compared": (
        "Not in the paper: candidates that are compared",
        "compared, % of all",
        "For one message, on average. SP compares all candidates. Settled, and with pruning here, those are"
        " not compared that are so near that one word is enough.",
        _of_ways(lambda found: 100 * found.compared, (*_PUBLISHED, "SP, settled")),
    ),
    "figure7": (
        "Figure 7: time of the provider",
        "milliseconds",
        "Finding subscriptions for one message (SP, SP + IIP), and one subscriber's proof (VO).",
        {
            **_of_ways(lambda found: 1000 * found.seconds),
            "VO": lambda point: None if point.proofs is None else 1000 * point.proofs.making,
        },
    ),
    "figure8": (
        "Figure 8: bytes of an answer",
        "kilobytes",
        "To one subscriber who gets something. ALPF: messages and proof. BL: messages, each signed.",
        {
            "ALPF": _of_proofs(lambda one: one.size / 1000),
            "BL": _of_proofs(lambda one: one.size_signed / 1000),
        },
    ),
    "figure9": (
        "Figure 9: time of the subscriber",
        "milliseconds",
        "To verify one answer. BL proves that nothing was changed, and not that nothing is missing.",
        {
            "ALPF": _of_proofs(lambda one: 1000 * one.verifying),
            "BL": _of_proofs(lambda one: 1000 * one.verifying_signed),
        },
    ),
}


def files(size: WorkloadSize, points: Sequence[FigurePoint]) -> dict[str, str]:
    """Return the files by their names: each figure as SVG, and the page."""
    drawn: dict[str, str] = {}
    parts = ["<h1>Located feeds: figures 6 to 9</h1>", _intro(size)]
    for name, (title, label, about, values) in FIGURES.items():
        parts.append(f'<h2>{escape(title)}</h2><p>{escape(about)}</p><div class="pair">')
        for axis, across in _AXES:
            lines = [
                ChartLine(line, colour, _line(points, axis, value))
                for (line, value), colour in zip(values.items(), cycle(COLOURS), strict=False)
            ]
            every = [point for line in lines for point in line.points]
            x, y = (
                scale_of(point.x for point in every),
                round_scale(max((point.y for point in every), default=0.0)),
            )
            drawn[f"{name}-{axis}.svg"] = line_chart(title, (across, label), lines, x, y)
            parts.append(f"<figure>{drawn[f'{name}-{axis}.svg']}</figure>")
        parts.append("</div>")
    parts.append(_table(points))
    drawn[PAGE] = document("Hushcast: located feeds", parts)
    return drawn


def _line(
    points: Sequence[FigurePoint], axis: str, value: Callable[[FigurePoint], float | None]
) -> list[ChartPoint]:
    alpha, theta = _MIDDLE
    by_alpha = axis == "alpha"
    of_axis = [one for one in points if (one.theta == theta if by_alpha else one.alpha == alpha)]
    found = [((one.alpha if by_alpha else one.theta) / 1000, value(one)) for one in of_axis]
    return [ChartPoint(x, y) for x, y in sorted((x, y) for x, y in found if y is not None)]


def _intro(size: WorkloadSize) -> str:
    if size.seed is None:
        data = f"{size.subscriptions:,} subscriptions and {size.messages:,} messages that were given."
    else:
        data = (
            f"{size.subscriptions:,} subscriptions of 1 to 5 words, {size.messages:,} messages of 41 words in"
            f" one interval, seed {size.seed}. Words and places are drawn, not theirs."
        )
    return (
        "<p>Yan, Cheng, Su, Zhang and Xu, <i>Authenticated Location-Aware Publish/Subscribe Services in"
        f" Untrusted Outsourced Environments</i>, §4, measured: {data} Times are of the processor.</p>"
    )


def _table(points: Sequence[FigurePoint]) -> str:
    columns: Values = {
        "α": lambda point: point.alpha / 1000,
        "θ": lambda point: point.theta / 1000,
        "wanted, %": lambda point: 100 * point.wanted,
    }
    for title, label, _, values in FIGURES.values():
        kind = title.partition(": ")[2] if label == "milliseconds" else label
        columns |= {f"{line}: {kind}": value for line, value in values.items()}
    columns["SP + IIP: met on the way, %"] = lambda one: 100 * one.ways["SP + IIP"].on_the_way
    columns["SP, settled by place: ms"] = lambda one: 1000 * one.ways["SP, settled"].seconds
    many: dict[str, Callable[[ProofComparison], float]] = {
        "messages": lambda one: one.messages,
        "bytes, ALPF / BL": lambda one: one.size / one.size_signed,
        "time, ALPF / BL": lambda one: one.verifying / one.verifying_signed,
        "bytes, ALPF / all messages of the batch, signed": lambda one: one.size / one.size_all,
        "time, ALPF / all messages of the batch, signed": lambda one: one.verifying / one.verifying_all,
    }
    for name, ratio in many.items():
        columns[f"{MANY} messages or more: {name}"] = _of_many(ratio)
    head = "".join(f"<th>{escape(name)}</th>" for name in columns)
    rows = "".join(
        "<tr>" + "".join(f"<td>{_text(value(point))}</td>" for value in columns.values()) + "</tr>"
        for point in sorted(points, key=lambda one: (one.alpha, one.theta))
    )
    return f'<h2>Numbers</h2><div class="wide"><table><tr>{head}</tr>{rows}</table></div>'


def _of_many(value: Callable[[ProofComparison], float]) -> Callable[[FigurePoint], float | None]:
    def of(point: FigurePoint) -> float | None:
        return None if point.proofs is None or point.proofs.many is None else value(point.proofs.many)

    return of


def _text(value: float | None) -> str:
    return "–" if value is None else f"{value:.3g}"
