"""A figure as SVG text: a line for each way over alpha or theta. Pure."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from html import escape

WIDTH, HEIGHT = 520, 320
_LEFT, _RIGHT, _TOP, _BOTTOM = 66, 16, 34, 46
_COLOURS = ("#d1495b", "#00798c", "#b8860b", "#7b5ea7")
_TICKS = 5  # at least so many on the axis of y

Line = Sequence[tuple[float, float]]


def picture(title: str, labels: tuple[str, str], lines: Mapping[str, Line]) -> str:
    """Draw lines by their names; `labels` are of x, which goes from 0.1 in steps of 0.1, and of y from 0."""
    points = [point for line in lines.values() for point in line]
    xs = sorted({x for x, _ in points})
    top = max((y for _, y in points), default=0) or 1.0
    step = _round_step(top / _TICKS)
    ticks = [step * number for number in range(math.ceil(top / step - 1e-9) + 1)]
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" role="img" '
        'font-family="system-ui, sans-serif" font-size="12" fill="#1b1b1b">',
        f"<title>{escape(title)}</title>",
        f'<rect width="{WIDTH}" height="{HEIGHT}" fill="#fff"/>',
    ]
    low, high = (xs[0], xs[-1]) if xs else (0.0, 1.0)

    def place(x: float, y: float) -> tuple[float, float]:
        across = (x - low) / (high - low or 1.0)
        return (
            round(_LEFT + 14 + across * (WIDTH - _LEFT - _RIGHT - 28), 1),
            round(HEIGHT - _BOTTOM - y / ticks[-1] * (HEIGHT - _BOTTOM - _TOP), 1),
        )

    digits = max(0, -math.floor(math.log10(step) + 1e-9))
    for y in ticks:
        height = place(low, y)[1]
        parts.append(f'<path d="M{_LEFT} {height}H{WIDTH - _RIGHT}" stroke="#e4e4e4"/>')
        parts.append(f'<text x="{_LEFT - 6}" y="{height + 4}" text-anchor="end">{y:.{digits}f}</text>')
    for x in xs:
        across = place(x, 0)[0]
        parts.append(f'<path d="M{across} {HEIGHT - _BOTTOM}v4" stroke="#1b1b1b"/>')
        parts.append(f'<text x="{across}" y="{HEIGHT - _BOTTOM + 18}" text-anchor="middle">{x:g}</text>')
    parts += _frame(labels)
    for number, (name, line) in enumerate(lines.items()):
        colour = _COLOURS[number % len(_COLOURS)]
        at = [place(*point) for point in line]
        way = " ".join(f"{x},{y}" for x, y in at)
        parts.append(f'<polyline points="{way}" fill="none" stroke="{colour}" stroke-width="1.8"/>')
        parts += [f'<circle cx="{x}" cy="{y}" r="3.5" fill="{colour}"/>' for x, y in at]
        left = _LEFT + 8 + (WIDTH - _LEFT - _RIGHT) // max(len(lines), 3) * number
        parts.append(f'<path d="M{left} 16h20" stroke="{colour}" stroke-width="1.8"/>')
        parts.append(f'<text x="{left + 26}" y="20">{escape(name)}</text>')
    return "\n".join([*parts, "</svg>"]) + "\n"


def _frame(labels: tuple[str, str]) -> list[str]:
    bottom, right = HEIGHT - _BOTTOM, WIDTH - _RIGHT
    return [
        f'<path d="M{_LEFT} {_TOP}V{bottom}H{right}" fill="none" stroke="#1b1b1b"/>',
        f'<text x="{(_LEFT + right) / 2}" y="{HEIGHT - 8}" text-anchor="middle">{escape(labels[0])}</text>',
        f'<text transform="translate(14 {(_TOP + bottom) / 2}) rotate(-90)" text-anchor="middle">'
        f"{escape(labels[1])}</text>",
    ]


def _round_step(least: float) -> float:
    """Return the smallest of 1, 2 and 5 times a power of ten that is not below `least`."""
    power = 10 ** math.floor(math.log10(least))
    return float(min(step for step in (1, 2, 5, 10) if step * power >= least * (1 - 1e-9)) * power)
