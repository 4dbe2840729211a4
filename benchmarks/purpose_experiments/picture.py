"""Pictures as SVG text: bars beside those of the paper, and lines over what grows. Pure."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from html import escape

WIDTH = 520
COLOURS = ("#1b1b1b", "#00798c", "#d1495b", "#b8860b", "#7b5ea7", "#5c8a3a")
_OURS, _PAPER = "#00798c", "#c9ccd1"
_NAMES, _END = 138, 64  # what names and numbers take at the sides of bars
_ROW, _BAR, _TOP = 40, 13, 34
_HEIGHT, _LEFT, _RIGHT, _BOTTOM, _LEGEND = 340, 72, 16, 46, 52

Bar = tuple[str, float | None, float]
"""A name, our percentage (`None` where it was not measured), the paper's."""
Line = Sequence[tuple[float, float]]


def bars(title: str, rows: Sequence[Bar], most: float) -> str:
    """Draw two bars for each row; what is longer than `most` percent is cut, and its number says so."""
    height = _TOP + _ROW * len(rows) + 8
    parts = [
        *_begun(title, height),
        *_square(_NAMES, 14, _OURS, "here"),
        *_square(_NAMES + 70, 14, _PAPER, "paper"),
    ]
    for number, (name, ours, paper) in enumerate(rows):
        top = _TOP + _ROW * number + 4
        parts.append(f'<text x="{_NAMES - 8}" y="{top + _BAR + 4}" text-anchor="end">{escape(name)}</text>')
        parts += _bar(top, ours, most, _OURS) + _bar(top + _BAR + 1, paper, most, _PAPER)
    parts.append(f'<path d="M{_NAMES} {_TOP}V{height - 8}" stroke="#1b1b1b"/>')
    return _ended(parts)


def lines(title: str, label: str, drawn: Mapping[str, Line]) -> str:
    """Draw lines by their names, both axes logarithmic; an x of 0 stands left of all."""
    points = [point for line in drawn.values() for point in line]
    xs = sorted({x for x, _ in points})
    decades = (
        math.floor(math.log10(min(y for _, y in points))),
        math.ceil(math.log10(max(y for _, y in points))),
    )
    low, high = decades[0], max(decades[1], decades[0] + 1)
    first, last = _position(xs[0], xs), _position(xs[-1], xs)
    bottom, right = _HEIGHT - _BOTTOM, WIDTH - _RIGHT

    def place(x: float, y: float) -> tuple[float, float]:
        across = (_position(x, xs) - first) / (last - first or 1.0)
        up = (math.log10(y) - low) / (high - low)
        return (
            round(_LEFT + 14 + across * (right - _LEFT - 28), 1),
            round(bottom - up * (bottom - _LEGEND), 1),
        )

    parts = _begun(title, _HEIGHT)
    for power in range(low, high + 1):
        y = place(xs[0], 10.0**power)[1]
        parts.append(f'<path d="M{_LEFT} {y}H{right}" stroke="#e4e4e4"/>')
        parts.append(f'<text x="{_LEFT - 6}" y="{y + 4}" text-anchor="end">{10.0**power:,g}</text>')
    for x in xs:
        at = place(x, 1.0)[0]
        parts.append(f'<path d="M{at} {bottom}v4" stroke="#1b1b1b"/>')
        parts.append(f'<text x="{at}" y="{bottom + 18}" text-anchor="middle">{x:,g}</text>')
    parts.append(f'<path d="M{_LEFT} {_LEGEND}V{bottom}H{right}" fill="none" stroke="#1b1b1b"/>')
    middle = (_LEFT + right) / 2, (_LEGEND + bottom) / 2
    parts.append(f'<text x="{middle[0]}" y="{_HEIGHT - 8}" text-anchor="middle">{escape(label)}</text>')
    parts.append(
        f'<text transform="translate(14 {middle[1]}) rotate(-90)" text-anchor="middle">µs a message</text>'
    )
    for number, (name, line) in enumerate(drawn.items()):
        colour = COLOURS[number % len(COLOURS)]
        at_all = [place(*point) for point in line]
        way = " ".join(f"{x},{y}" for x, y in at_all)
        parts.append(f'<polyline points="{way}" fill="none" stroke="{colour}" stroke-width="1.8"/>')
        parts += [f'<circle cx="{x}" cy="{y}" r="3" fill="{colour}"/>' for x, y in at_all]
        parts += _square(24 + 164 * (number % 3), 12 + 18 * (number // 3), colour, name)
    return _ended(parts)


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


def _begun(title: str, height: int) -> list[str]:
    return [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" role="img" '
        'font-family="system-ui, sans-serif" font-size="12" fill="#1b1b1b">',
        f"<title>{escape(title)}</title>",
        f'<rect width="{WIDTH}" height="{height}" fill="#fff"/>',
    ]


def _ended(parts: list[str]) -> str:
    return "\n".join([*parts, "</svg>"]) + "\n"
