"""The report's pictures, each an SVG element as text, drawn for the width of a phone."""

from __future__ import annotations

import io
import math
from collections.abc import Mapping, Sequence
from itertools import cycle

import matplotlib

matplotlib.use("svg")
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, MaxNLocator

from hushcast_analytics.report.analysis_findings import Row, SeenTree
from hushcast_analytics.report.phrases import GOALS
from hushcast_analytics.report.verdict import goal_of

# Names come from traces: a dollar sign in one is no formula, which might be none that can be set.
matplotlib.rcParams["text.parse_math"] = False

WIDTH = 4.8  # inches, of which a phone shows 80: letters stay legible
_COLOURS = {"paper": "#d1495b", "hardened": "#00798c"}
_OTHERS = ("#edae49", "#7b5ea7", "#444444")
_GREY = "0.78"


def contrast(series: Mapping[str, Sequence[Row]]) -> str:
    """Draw how often each attack is right, by what the rows are called, beside chance.

    The rows of a name are of one share of colluding relays: one for each attack.
    """
    places: list[tuple[str, str | None]] = []
    every = [row for rows in series.values() for row in rows]
    for goal in GOALS:
        names = dict.fromkeys(row["attack"] for row in every if goal_of(row) == goal)
        places += [(goal, None), *((goal, name) for name in names)] if names else []
    figure, axes = blank(0.25 * len(places) + 1.6)
    height = {place: -index for index, place in enumerate(places)}
    part = 0.8 / len(series)  # of a row, for each name: its mark, and its own chance behind it
    for index, (label, rows) in enumerate(series.items()):
        shift = 0.4 - part * (index + 0.5)
        for number, row in enumerate(rows):
            y = height[goal_of(row), row["attack"]] + shift
            axes.plot(
                [row["bound"]] * 2, [y - part / 2, y + part / 2], color="black", linewidth=1.4, zorder=1,
                label=None if index or number else "chance",
            )  # fmt: skip
        x = [row["accuracy"] for row in rows]
        axes.errorbar(
            x, [height[goal_of(row), row["attack"]] + shift for row in rows], xerr=_whiskers(rows),
            fmt="o", markersize=5, capsize=2, color=_colour(label, index), label=label, zorder=2,
        )  # fmt: skip
    # The names of goals stand in rows that hold no marks.
    for goal, name in places:
        if name is None:
            axes.text(0, height[goal, name], GOALS[goal], fontweight="bold", va="center")
    named = [place for place in places if place[1] is not None]
    axes.set_yticks([height[place] for place in named], [str(name) for _, name in named])
    axes.tick_params(axis="y", length=0)
    axes.set(xlabel="right answers", xlim=(-0.02, 1.02))
    percents(axes, "x")
    axes.grid(axis="x", color="0.9")
    legend(figure, axes)
    return svg(figure)


def accuracy(lines: Mapping[str, Sequence[Row]], title: str) -> str:
    """Draw accuracy against the share of colluding relays, with its interval and chance.

    The rows of a name are of one attack, under one profile; all are of one subject, and have one chance.
    """
    figure, axes = blank(3.4)
    shares = sorted({row["colluding"] for rows in lines.values() for row in rows})
    step = (shares[-1] - shares[0]) / 40 if len(shares) > 1 else 0.0
    for index, (label, rows) in enumerate(lines.items()):
        line = sorted(rows, key=lambda row: row["colluding"])
        # Side by side, or equal ones would hide each other.
        x = [row["colluding"] + step * (index - (len(lines) - 1) / 2) for row in line]
        colour = _colour(label, index)
        axes.errorbar(
            x, [row["accuracy"] for row in line], yerr=_whiskers(line), marker="o", markersize=5, capsize=2,
            color=colour, label=f"{label}: {line[0]['attack']}",
        )  # fmt: skip
        axes.plot(
            x, [row["bound"] for row in line], color="black", linestyle="dotted",
            label=None if index else "chance",
        )  # fmt: skip
    axes.set(title=title, xlabel="relays that collude", ylabel="right answers", xticks=shares)
    top = max(max(row["accuracy_high"], row["bound"]) for rows in lines.values() for row in rows)
    axes.set_ylim(0, min(1.05, 1.1 * top))
    percents(axes, "x")
    percents(axes, "y")
    legend(figure, axes)
    return svg(figure)


def entropy(rows: Sequence[Row]) -> str:
    """Draw the mean entropy of the posterior over epochs."""
    figure, axes = blank(3.4)
    styles = dict(zip(dict.fromkeys(row["attack"] for row in rows), cycle(("o-", "s:")), strict=False))
    for index, key in enumerate(dict.fromkeys((row["profile"], row["attack"]) for row in rows)):
        line = [row for row in rows if (row["profile"], row["attack"]) == key]
        axes.plot(
            [row["epochs"] for row in line], [row["entropy_bits"] for row in line], styles[key[1]],
            color=_colour(key[0], index), label=": ".join(key),
        )  # fmt: skip
    axes.set(title="What is left to guess", xlabel="epochs watched", ylabel="bits", ylim=(0, None))
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    legend(figure, axes)
    return svg(figure)


def loads(rows: Sequence[Row], other: Sequence[Row] | None) -> str:
    """Draw how many relays sent how many messages."""
    figure, axes = blank(3.2)
    for label, each in (("these traces", rows), ("baseline", other or [])):
        if each:
            axes.plot([row["sent"] for row in each], [row["relays"] for row in each], "o-", label=label)
    axes.set(title="Load across relays", xlabel="messages sent", ylabel="relays", ylim=(0, None))
    axes.yaxis.set_major_locator(MaxNLocator(integer=True))
    legend(figure, axes)
    return svg(figure)


def latencies(rows: Sequence[Row], other: Sequence[Row] | None) -> str:
    """Draw the quantiles of the time from the wish to publish to delivery."""
    figure, axes = blank(3.2)
    for label, each in (("these traces", rows), ("baseline", other or [])):
        points = sorted((row["quantile"], row["seconds"]) for row in each if row["seconds"] is not None)
        if points:
            axes.plot([s for _, s in points], [q for q, _ in points], "o-", label=label)
    axes.set(title="Delivery", xlabel="seconds", ylabel="delivered by then", xlim=(0, None), ylim=(0, 1.05))
    percents(axes, "y")
    legend(figure, axes)
    return svg(figure)


def tree(drawn: SeenTree) -> str:
    """Draw one tree, its root in the middle, each level a circle around it, and what colluders see of it."""
    figure, axes = blank(5.0)
    places = _seats(drawn.parents)
    for colour, width, of in (
        (_GREY, 0.5, drawn.parents.keys() - drawn.seen),
        (_COLOURS["paper"], 1.0, drawn.seen),
    ):
        lines = [(places[child], places[drawn.parents[child]]) for child in sorted(of)]
        axes.add_collection(LineCollection(lines, colors=colour, linewidths=width, zorder=1))
    size = 26 if len(drawn.parents) <= 60 else 7
    hidden = drawn.parents.keys() - drawn.neighbours - drawn.colluders
    for names, colour, label in (
        (hidden, _GREY, "not seen"),
        (drawn.neighbours, _OTHERS[0], "seen by a colluder"),
        (drawn.colluders & drawn.parents.keys(), _COLOURS["paper"], "colluder"),
    ):
        at = [places[name] for name in sorted(names)]
        axes.scatter([x for x, _ in at], [y for _, y in at], s=size, color=colour, zorder=2, label=label)
    axes.scatter([0], [0], s=90, marker="s", color="black", zorder=3, label="root")
    axes.set(aspect="equal")
    axes.axis("off")
    legend(figure, axes)
    return svg(figure)


def _seats(parents: Mapping[str, str | None]) -> dict[str | None, tuple[float, float]]:
    """Return a place for each relay: leaves around the circle, others in the middle of those below them."""
    below: dict[str | None, list[str]] = {}
    for relay in sorted(parents):
        below.setdefault(parents[relay], []).append(relay)
    places: dict[str | None, tuple[float, float]] = {None: (0.0, 0.0)}

    def leaves(relay: str | None) -> int:
        return sum(map(leaves, below.get(relay, []))) or 1

    def seat(above: str | None, start: float, end: float, level: int) -> None:
        whole = leaves(above)
        for child in below.get(above, []):
            width = (end - start) * leaves(child) / whole
            angle = 2 * math.pi * (start + width / 2)
            places[child] = (level * math.cos(angle), level * math.sin(angle))
            seat(child, start, start + width, level + 1)
            start += width

    seat(None, 0.0, 1.0, 1)
    return places


def _colour(label: str, index: int) -> str:
    return _COLOURS.get(label, _OTHERS[index % len(_OTHERS)])


def _whiskers(rows: Sequence[Row]) -> list[list[float]]:
    low = [max(0.0, row["accuracy"] - row["accuracy_low"]) for row in rows]
    return [low, [max(0.0, row["accuracy_high"] - row["accuracy"]) for row in rows]]


def percents(axes: Axes, which: str) -> None:
    """Show an axis, `x` or `y`, in percent."""
    axis = axes.xaxis if which == "x" else axes.yaxis
    axis.set_major_formatter(FuncFormatter(lambda share, _: f"{100 * share:.3g} %"))


def blank(height: float) -> tuple[Figure, Axes]:
    """Return a picture of so many inches height, with nothing in it."""
    figure = Figure(figsize=(WIDTH, height), layout="constrained")
    axes = figure.subplots()
    axes.spines[["top", "right"]].set_visible(False)
    return figure, axes


def legend(figure: Figure, axes: Axes) -> None:
    """Put the legend above the picture, off what is drawn; one name needs none."""
    handles, labels = axes.get_legend_handles_labels()
    if len(labels) > 1:
        columns = 2 if max(map(len, labels)) > 14 or len(labels) == 4 else min(4, len(labels))
        figure.legend(
            handles, labels, loc="outside upper left", ncols=columns, fontsize="small", frameon=False
        )


_METADATA = ("Date", "Creator", "Format", "Type")  # none: with any, matplotlib names pages elsewhere


def svg(figure: Figure) -> str:
    """Return a picture as an SVG element."""
    text = io.StringIO()
    # Neither date nor random ids: the same figures draw the same picture.
    with matplotlib.rc_context({"svg.hashsalt": "hushcast", "svg.fonttype": "none"}):
        figure.savefig(text, format="svg", metadata=dict.fromkeys(_METADATA))
    drawn = text.getvalue()
    return drawn[drawn.index("<svg") :]
