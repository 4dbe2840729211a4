"""A figure as the paper draws it, as SVG text: each system's line over x, the spread of the seeds. Pure."""

from __future__ import annotations

from collections.abc import Mapping

from hushcast_runtime.line_chart import ChartLine, ChartPoint, Mark, line_chart, round_scale
from hushcast_testnet.compare.curves import Curve

_SYSTEMS: dict[str, tuple[str, str, Mark]] = {
    "central": ("Central server", "#d1495b", "circle"),
    "tree": ("Spanning tree", "#00798c", "square"),
    "brokers": ("Brokers", "#b8860b", "diamond"),
}
"""The name, colour and mark of each."""


def figure(title: str, x_label: str, curves: Mapping[str, Curve]) -> str:
    """Draw the curves of all systems; y is seconds."""
    places = [place for curve in curves.values() for place in curve]
    lines = []
    for system, curve in curves.items():
        name, colour, mark = _SYSTEMS[system]
        points = [ChartPoint(place.x, place.seconds, place.low, place.high) for place in curve]
        lines.append(ChartLine(name, colour, points, mark))
    across = round_scale(max((place.x for place in places), default=1))
    up = round_scale(max((place.high for place in places), default=1.0))
    return line_chart(title, (x_label, "Time (s)"), lines, across, up)
