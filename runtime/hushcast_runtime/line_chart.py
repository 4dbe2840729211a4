"""Charts of lines as SVG text. Pure."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from html import escape
from typing import Literal, NamedTuple

WIDTH, HEIGHT = 520, 320
COLOURS = ("#d1495b", "#00798c", "#b8860b", "#7b5ea7", "#1b1b1b", "#5c8a3a")
_LEFT, _RIGHT, _TOP, _BOTTOM = 66, 16, 16, 46
_NAMES = 3  # in a row of the legend
_ROW = 18  # a row's height
_INSET = 0.03  # of an axis, before and after values that it begins and ends with
_TICKS = 5  # at least so many on an axis of round numbers, where that goes

Mark = Literal["circle", "square", "diamond"]


class ChartPoint(NamedTuple):
    """A point of a line, and the spread that it stands for."""

    x: float
    y: float
    low: float | None = None
    high: float | None = None


class ChartLine(NamedTuple):
    """A line of a chart."""

    name: str
    colour: str
    points: Sequence[ChartPoint]
    mark: Mark = "circle"


@dataclass(frozen=True)
class Scale:
    """Values along an axis."""

    ticks: Sequence[float]
    """The values that have a number beside the axis."""
    share: Callable[[float], float]
    """Where a value is: 0 at the axis's beginning, 1 at its end."""
    text: Callable[[float], str] = "{:g}".format


def round_scale(highest: float) -> Scale:
    """Return a scale from 0 to a round number that is not below `highest`."""
    step = round_step((highest or 1.0) / _TICKS)
    count = max(1, math.ceil(highest / step - 1e-9))
    digits = max(0, -math.floor(math.log10(step) + 1e-9))
    return Scale(
        [step * number for number in range(count + 1)],
        lambda value: value / (step * count),
        f"{{:.{digits}f}}".format,
    )


def scale_of(values: Iterable[float]) -> Scale:
    """Return a scale that has just these values."""
    ticks = sorted(set(values)) or [0.0, 1.0]
    low, span = ticks[0], ticks[-1] - ticks[0] or 1.0
    return Scale(ticks, lambda value: _INSET + (value - low) / span * (1 - 2 * _INSET))


def round_step(least: float) -> float:
    """Return the largest of 1, 2 and 5 times a power of ten that is not above `least`."""
    power = 10 ** math.floor(math.log10(least))
    return float(max(step for step in (1, 2, 5) if step * power <= least * (1 + 1e-9)) * power)


def line_chart(
    title: str, labels: tuple[str, str], lines: Sequence[ChartLine], across: Scale, up: Scale
) -> str:
    """Draw lines; `labels` are those of x and y."""
    top = _TOP + _ROW * max(1, math.ceil(len(lines) / _NAMES))
    bottom, right = HEIGHT - _BOTTOM, WIDTH - _RIGHT

    def x_of(value: float) -> float:
        return round(_LEFT + across.share(value) * (right - _LEFT), 1)

    def y_of(value: float) -> float:
        return round(bottom - up.share(value) * (bottom - top), 1)

    parts: list[str] = []
    for value in up.ticks:
        y = y_of(value)
        parts.append(f'<path d="M{_LEFT} {y}H{right}" stroke="#e4e4e4"/>')
        parts.append(f'<text x="{_LEFT - 6}" y="{y + 4}" text-anchor="end">{up.text(value)}</text>')
    for value in across.ticks:
        x = x_of(value)
        parts.append(f'<path d="M{x} {bottom}v4" stroke="#1b1b1b"/>')
        parts.append(f'<text x="{x}" y="{bottom + 18}" text-anchor="middle">{across.text(value)}</text>')
    middle = (_LEFT + right) / 2, (top + bottom) / 2
    parts += [
        f'<path d="M{_LEFT} {top}V{bottom}H{right}" fill="none" stroke="#1b1b1b"/>',
        f'<text x="{middle[0]}" y="{HEIGHT - 8}" text-anchor="middle">{escape(labels[0])}</text>',
        f'<text transform="translate(14 {middle[1]}) rotate(-90)" text-anchor="middle">'
        f"{escape(labels[1])}</text>",
    ]
    for number, line in enumerate(lines):
        places = [(x_of(point.x), y_of(point.y)) for point in line.points]
        parts += _spread(line, x_of, y_of)
        way = " ".join(f"{x},{y}" for x, y in places)
        parts.append(f'<polyline points="{way}" fill="none" stroke="{line.colour}" stroke-width="1.8"/>')
        parts += [_mark(line, x, y) for x, y in places]
        left = _LEFT + 8 + (right - _LEFT) // _NAMES * (number % _NAMES)
        height = _TOP + _ROW * (number // _NAMES)
        parts.append(f'<path d="M{left} {height}h24" stroke="{line.colour}" stroke-width="1.8"/>')
        parts.append(_mark(line, left + 12, height))
        parts.append(f'<text x="{left + 30}" y="{height + 4}">{escape(line.name)}</text>')
    return svg(title, HEIGHT, parts)


def svg(title: str, height: int, parts: Iterable[str]) -> str:
    """Return a picture of the width of charts, as text."""
    begin = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" role="img" '
        'font-family="system-ui, sans-serif" font-size="12" fill="#1b1b1b">'
    )
    ground = f'<rect width="{WIDTH}" height="{height}" fill="#fff"/>'
    return "\n".join([begin, f"<title>{escape(title)}</title>", ground, *parts, "</svg>"]) + "\n"


def _spread(line: ChartLine, x_of: Callable[[float], float], y_of: Callable[[float], float]) -> list[str]:
    parts = []
    for point in line.points:
        if point.low is not None and point.high is not None and point.low != point.high:
            x, low, high = x_of(point.x), y_of(point.low), y_of(point.high)
            parts.append(
                f'<path d="M{x} {low}V{high}M{x - 3} {low}h6M{x - 3} {high}h6" stroke="{line.colour}"/>'
            )
    return parts


def _mark(line: ChartLine, x: float, y: float) -> str:
    if line.mark == "circle":
        return f'<circle cx="{x}" cy="{y}" r="3.5" fill="{line.colour}"/>'
    if line.mark == "diamond":
        return f'<path d="M{x} {y - 4.5}l4.5 4.5l-4.5 4.5l-4.5 -4.5z" fill="{line.colour}"/>'
    return f'<rect x="{x - 3.5}" y="{y - 3.5}" width="7" height="7" fill="{line.colour}"/>'
