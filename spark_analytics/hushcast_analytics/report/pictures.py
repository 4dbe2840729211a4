"""The report's pictures, each an SVG element as text."""

from __future__ import annotations

import io
import math
from dataclasses import dataclass, field
from typing import Any, ClassVar

import matplotlib

matplotlib.use("svg")
from matplotlib.axes import Axes
from matplotlib.figure import Figure

Row = dict[str, Any]


@dataclass
class Findings:
    """What an analysis found: plain figures, none of which grows with the traces."""

    MOST_DRAWN: ClassVar[int] = 60  # relays in a picture of a tree

    network: dict[str, float]
    latencies: list[Row]
    loads: list[Row]
    tree: dict[str, str | None]
    attacks: list[Row] = field(default_factory=list)
    over_time: list[Row] = field(default_factory=list)


def accuracy(rows: list[Row], title: str) -> str:
    """Draw accuracy against the share of colluding relays, a line for each attack, with its interval."""
    figure, axes = _figure()
    for name in dict.fromkeys(row["attack"] for row in rows):
        line = sorted((row for row in rows if row["attack"] == name), key=lambda row: row["colluding"])
        x = [row["colluding"] for row in line]
        y = [row["accuracy"] for row in line]
        low = [max(0.0, row["accuracy"] - row["accuracy_low"]) for row in line]
        high = [max(0.0, row["accuracy_high"] - row["accuracy"]) for row in line]
        axes.errorbar(x, y, yerr=[low, high], marker="o", markersize=4, capsize=2, label=name)
    bounds = sorted({(row["colluding"], row["bound"]) for row in rows})
    axes.plot(
        *zip(*bounds, strict=True), color="black", linestyle="dotted", label="bound"
    ) if bounds else None
    axes.set(title=title, xlabel="share of relays that collude", ylabel="share named", yscale="symlog")
    axes.set_yscale("symlog", linthresh=1e-3)
    axes.set_ylim(0, 1.05)
    axes.legend(fontsize="x-small")
    return _svg(figure)


def entropy(rows: list[Row]) -> str:
    """Draw the mean entropy of the posterior over epochs."""
    figure, axes = _figure()
    for key in dict.fromkeys((row["attack"], row["profile"]) for row in rows):
        line = [row for row in rows if (row["attack"], row["profile"]) == key]
        axes.plot(
            [row["epochs"] for row in line], [row["entropy_bits"] for row in line], "o-", label=", ".join(key)
        )
    axes.set(title="What is left to guess", xlabel="epochs watched", ylabel="entropy, bits", ylim=(0, None))
    axes.legend(fontsize="x-small")
    return _svg(figure)


def loads(rows: list[Row], other: list[Row] | None) -> str:
    """Draw how many relays sent how many messages."""
    figure, axes = _figure()
    for label, each in (("these traces", rows), ("baseline", other or [])):
        if each:
            axes.plot([row["sent"] for row in each], [row["relays"] for row in each], "o-", label=label)
    axes.set(title="Load across relays", xlabel="messages sent", ylabel="relays", ylim=(0, None))
    axes.legend(fontsize="x-small")
    return _svg(figure)


def latencies(rows: list[Row], other: list[Row] | None) -> str:
    """Draw the quantiles of the time from the wish to publish to delivery."""
    figure, axes = _figure()
    for label, each in (("these traces", rows), ("baseline", other or [])):
        points = sorted((row["quantile"], row["seconds"]) for row in each if row["seconds"] is not None)
        if points:
            axes.plot([s for _, s in points], [100 * q for q, _ in points], "o-", label=label)
    axes.set(title="Delivery", xlabel="seconds", ylabel="% delivered by then", xlim=(0, None), ylim=(0, 105))
    axes.legend(fontsize="x-small")
    return _svg(figure)


def tree(parents: dict[str, str | None]) -> str:
    """Draw one tree, its root in the middle, each level a circle around it."""
    figure, axes = _figure()
    below: dict[str | None, list[str]] = {}
    for relay in sorted(parents):
        below.setdefault(parents[relay], []).append(relay)
    places: dict[str | None, tuple[float, float]] = {None: (0.0, 0.0)}

    def seat(above: str | None, start: float, end: float, level: int) -> None:
        children = below.get(above, [])
        for index, child in enumerate(children):
            low = start + (end - start) * index / len(children)
            high = start + (end - start) * (index + 1) / len(children)
            angle = 2 * math.pi * (low + high) / 2
            places[child] = (level * math.cos(angle), level * math.sin(angle))
            seat(child, low, high, level + 1)

    seat(None, 0.0, 1.0, 1)
    for child, above in parents.items():
        (x, y), (u, v) = places[child], places[above]
        axes.plot([x, u], [y, v], color="0.7", linewidth=0.8, zorder=1)
    relays = [place for name, place in places.items() if name is not None]
    axes.scatter([x for x, _ in relays], [y for _, y in relays], s=14, zorder=2, label="relay")
    axes.scatter([0], [0], s=60, marker="s", zorder=3, label="root")
    axes.set(title="One subscription's tree", aspect="equal")
    axes.axis("off")
    axes.legend(fontsize="x-small", loc="lower right")
    return _svg(figure)


def _figure() -> tuple[Figure, Axes]:
    figure = Figure(figsize=(6.2, 4.2), layout="constrained")
    return figure, figure.subplots()


_METADATA = ("Date", "Creator", "Format", "Type")  # none: with any, matplotlib names pages elsewhere


def _svg(figure: Figure) -> str:
    text = io.StringIO()
    # Neither date nor random ids: the same figures draw the same picture.
    with matplotlib.rc_context({"svg.hashsalt": "hushcast", "svg.fonttype": "none"}):
        figure.savefig(text, format="svg", metadata=dict.fromkeys(_METADATA))
    drawn = text.getvalue()
    return drawn[drawn.index("<svg") :]
