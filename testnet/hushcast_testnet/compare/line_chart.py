"""A figure as the paper draws it, as SVG text: each system's line over x, the spread of the seeds. Pure."""

from __future__ import annotations

import math
from collections.abc import Mapping
from html import escape

from hushcast_testnet.compare.curves import Curve

WIDTH, HEIGHT = 520, 320
_LEFT, _RIGHT, _TOP, _BOTTOM = 62, 16, 34, 46
_COLOURS = {"central": "#d1495b", "tree": "#00798c", "brokers": "#b8860b"}
_NAMES = {"central": "Central server", "tree": "Spanning tree", "brokers": "Brokers"}
_MARKS = {"central": "circle", "tree": "square", "brokers": "diamond"}
_TICKS = 5  # at least so many on an axis, where that goes


def figure(title: str, x_label: str, curves: Mapping[str, Curve]) -> str:
    """Draw the curves of all systems; y is seconds."""
    places = [place for curve in curves.values() for place in curve]
    across = _Axis(0.0, max((place.x for place in places), default=1), _LEFT, WIDTH - _RIGHT)
    up = _Axis(0.0, max((place.high for place in places), default=1.0), HEIGHT - _BOTTOM, _TOP)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" role="img" '
        'font-family="system-ui, sans-serif" font-size="12" fill="#1b1b1b">',
        f"<title>{escape(title)}</title>",
        f'<rect width="{WIDTH}" height="{HEIGHT}" fill="#fff"/>',
    ]
    parts += _axes(across, up, x_label)
    for system, curve in curves.items():
        parts += _line(system, curve, across, up)
    parts += _legend(list(curves))
    return "\n".join([*parts, "</svg>"]) + "\n"


class _Axis:
    """Values on a line of the picture, with round numbers beside it."""

    def __init__(self, low: float, high: float, start: float, end: float) -> None:
        step = _round_step((high - low or 1.0) / _TICKS)
        self._low = low
        self._high = low + step * max(1, math.ceil((high - low) / step - 1e-9))
        self._start, self._end = start, end
        count = round((self._high - low) / step)
        self.ticks = [low + step * number for number in range(count + 1)]
        self._digits = max(0, -math.floor(math.log10(step) + 1e-9))

    def __call__(self, value: float) -> float:
        share = (value - self._low) / (self._high - self._low)
        return round(self._start + share * (self._end - self._start), 1)

    def text(self, value: float) -> str:
        return f"{value:.{self._digits}f}"


def _round_step(least: float) -> float:
    """Return the largest of 1, 2 and 5 times a power of ten that is not above `least`."""
    power = 10 ** math.floor(math.log10(least))
    return float(max(step for step in (1, 2, 5) if step * power <= least * (1 + 1e-9)) * power)


def _axes(across: _Axis, up: _Axis, x_label: str) -> list[str]:
    bottom, right = HEIGHT - _BOTTOM, WIDTH - _RIGHT
    parts = []
    for value in up.ticks:
        y = up(value)
        parts.append(f'<path d="M{_LEFT} {y}H{right}" stroke="#e4e4e4"/>')
        parts.append(f'<text x="{_LEFT - 6}" y="{y + 4}" text-anchor="end">{up.text(value)}</text>')
    for value in across.ticks:
        x = across(value)
        parts.append(f'<path d="M{x} {bottom}v4" stroke="#1b1b1b"/>')
        parts.append(f'<text x="{x}" y="{bottom + 18}" text-anchor="middle">{across.text(value)}</text>')
    middle = (_TOP + bottom) / 2
    return [
        *parts,
        f'<path d="M{_LEFT} {_TOP}V{bottom}H{right}" fill="none" stroke="#1b1b1b"/>',
        f'<text x="{(_LEFT + right) / 2}" y="{HEIGHT - 8}" text-anchor="middle">{escape(x_label)}</text>',
        f'<text transform="translate(14 {middle}) rotate(-90)" text-anchor="middle">Time (s)</text>',
    ]


def _line(system: str, curve: Curve, across: _Axis, up: _Axis) -> list[str]:
    colour, parts = _COLOURS[system], []
    for place in curve:  # the spread behind the marks
        x, low, high = across(place.x), up(place.low), up(place.high)
        if low != high:
            parts.append(f'<path d="M{x} {low}V{high}M{x - 3} {low}h6M{x - 3} {high}h6" stroke="{colour}"/>')
    way = " ".join(f"{across(place.x)},{up(place.seconds)}" for place in curve)
    parts.append(f'<polyline points="{way}" fill="none" stroke="{colour}" stroke-width="1.8"/>')
    return parts + [_mark(system, across(place.x), up(place.seconds)) for place in curve]


def _mark(system: str, x: float, y: float) -> str:
    if _MARKS[system] == "circle":
        return f'<circle cx="{x}" cy="{y}" r="3.5" fill="{_COLOURS[system]}"/>'
    if _MARKS[system] == "diamond":
        return f'<path d="M{x} {y - 4.5}l4.5 4.5l-4.5 4.5l-4.5 -4.5z" fill="{_COLOURS[system]}"/>'
    return f'<rect x="{x - 3.5}" y="{y - 3.5}" width="7" height="7" fill="{_COLOURS[system]}"/>'


def _legend(systems: list[str]) -> list[str]:
    parts = []
    for number, system in enumerate(systems):
        x = _LEFT + 8 + 148 * number
        parts.append(f'<path d="M{x} 16h24" stroke="{_COLOURS[system]}" stroke-width="1.8"/>')
        parts.append(_mark(system, x + 12, 16))
        parts.append(f'<text x="{x + 30}" y="20">{_NAMES[system]}</text>')
    return parts
