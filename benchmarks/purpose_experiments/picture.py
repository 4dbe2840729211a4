"""Pictures as SVG text: bars beside those of the paper, and lines over what grows. Pure."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from html import escape
from itertools import cycle

from hushcast_runtime.line_chart import (
    COLOURS,
    WIDTH,
    ChartLine,
    ChartPoint,
    Scale,
    line_chart,
    scale_of,
    svg,
)

_OURS, _PAPER = "#00798c", "#c9ccd1"
_NAMES, _END = 138, 64  # what names and numbers take at the sides of bars
_ROW, _BAR, _TOP = 40, 13, 34

Bar = tuple[str, float | None, float]
"""A name, our percentage (`None` where it was not measured), the paper's."""
Line = Sequence[tuple[float, float]]


def bars(title: str, rows: Sequence[Bar], most: float) -> str:
    """Draw two bars for each row; what is longer than `most` percent is cut, and its number says so."""
    height = _TOP + _ROW * len(rows) + 8
    parts = [
        *_square(_NAMES, 14, _OURS, "here"),
        *_square(_NAMES + 70, 14, _PAPER, "paper"),
    ]
    for number, (name, ours, paper) in enumerate(rows):
        top = _TOP + _ROW * number + 4
        parts.append(f'<text x="{_NAMES - 8}" y="{top + _BAR + 4}" text-anchor="end">{escape(name)}</text>')
        parts += _bar(top, ours, most, _OURS) + _bar(top + _BAR + 1, paper, most, _PAPER)
    parts.append(f'<path d="M{_NAMES} {_TOP}V{height - 8}" stroke="#1b1b1b"/>')
    return svg(title, height, parts)


def lines(title: str, label: str, drawn: Mapping[str, Line]) -> str:
    """Draw lines by their names, both axes logarithmic; an x of 0 stands left of all."""
    points = [point for line in drawn.values() for point in line]
    xs = sorted({x for x, _ in points})
    low = math.floor(math.log10(min(y for _, y in points)))
    high = max(math.ceil(math.log10(max(y for _, y in points))), low + 1)
    places = scale_of(_position(x, xs) for x in xs)
    across = Scale(xs, lambda x: places.share(_position(x, xs)), "{:,g}".format)
    up = Scale(
        [10.0**power for power in range(low, high + 1)],
        lambda y: (math.log10(y) - low) / (high - low),
        "{:,g}".format,
    )
    charted = [
        ChartLine(name, colour, [ChartPoint(*point) for point in line])
        for (name, line), colour in zip(drawn.items(), cycle(COLOURS), strict=False)
    ]
    return line_chart(title, (label, "µs a message"), charted, across, up)


def _position(x: float, xs: Sequence[float]) -> float:
    """Return a logarithm; that of 0 is as far below the next as the next is from its own."""
    if x > 0:
        return math.log10(x)
    others = [math.log10(one) for one in xs if one > 0]
    return others[0] - (others[1] - others[0] if len(others) > 1 else 1.0)


def _bar(top: float, value: float | None, most: float, colour: str) -> list[str]:
    if value is None:
        return [f'<text x="{_NAMES + 6}" y="{top + _BAR - 2}" fill="#777">not measured</text>']
    length = round(max(0.0, min(value, most)) / most * (WIDTH - _NAMES - _END), 1)
    cut = f'<path d="M{_NAMES + length - 12} {top - 1}l5 {_BAR + 2}h4l-5 {-_BAR - 2}z" fill="#fff"/>' * (
        value > most
    )
    number = f"{value:,.0f} %" if abs(value) >= 100 else f"{round(value, 1) or 0.0} %"
    return [
        f'<rect x="{_NAMES}" y="{top}" width="{length}" height="{_BAR}" fill="{colour}"/>{cut}',
        f'<text x="{_NAMES + length + 5}" y="{top + _BAR - 2}">{number}</text>',
    ]


def _square(x: float, y: float, colour: str, name: str) -> list[str]:
    return [
        f'<rect x="{x}" y="{y - 6}" width="12" height="12" fill="{colour}"/>',
        f'<text x="{x + 18}" y="{y + 4}">{escape(name)}</text>',
    ]
