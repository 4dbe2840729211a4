"""A map of a batch as one page: messages, subscriptions, and lines from these to what they want. Pure."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from html import escape

from hushcast_located.map.map_contents import MapContents, MapSubscription
from hushcast_located.meanings import MEANING, when
from hushcast_protocol.spatial.places import degrees_of
from hushcast_runtime.line_chart import round_step
from hushcast_runtime.web_page import document

WIDTH, MOST_HEIGHT, LEAST_HEIGHT = 1100, 900, 300
_EDGE = 46  # for the names of degrees
_TICKS = 5  # at least so many on the longer side
_TEXT = 60  # characters of a message that are shown
_KNOWN = (
    5  # subscriptions by name on the map: of more, names stand in what shows on hovering, and in the table
)
_TEAL, _RED, _GREY, _GOLD = "#00798c", "#d1495b", "#8a8a8a", "#b8860b"
_STYLE = f"""
.map line {{ stroke: {_TEAL}; stroke-width: 1; opacity: .3 }}
.map .wrong line {{ stroke: {_RED}; stroke-dasharray: 4 3; opacity: .6 }}
.map g:hover line {{ opacity: 1; stroke-width: 2 }}
.map .message {{ fill: {_GREY}; opacity: .6 }} .map .wanted {{ fill: {_TEAL}; opacity: .9 }}
.map .one {{ fill: {_GOLD}; stroke: #fff }} .map .wrong .one, .map .wrong text {{ fill: {_RED} }}
tr.wrong td {{ color: {_RED} }}
td:first-child, td:nth-child(2), td:last-child {{ text-align: left }}
"""


@dataclass(frozen=True)
class _Field:
    """Where places stand on the picture: degrees, as wide as they are in the middle of it."""

    west: float
    north: float
    scale: float
    """Pixels a degree of latitude."""
    flat: float
    """How wide a degree of longitude is beside one of latitude."""
    width: float
    height: float

    def at(self, latitude: float, longitude: float) -> tuple[float, float]:
        """Return where a place stands."""
        across = (longitude - self.west) % 360
        return (
            round(_EDGE + across * self.flat * self.scale, 1),
            round(_EDGE / 2 + (self.north - latitude) * self.scale, 1),
        )


def page(gathered: MapContents) -> str:
    """Return the page."""
    body = gathered.batch.body
    wrong = [one for one in gathered.answered if one.problem is not None]
    pairs = sum(len(one.wanted) for one in gathered.answered)
    about = (
        f"<p>Batch {body.number}, {body.seconds:,} s from {when(body.start)}:"
        f" {len(gathered.messages):,} messages (dots), {len(gathered.answered):,} subscriptions (diamonds),"
        f" {pairs:,} pairs that match (lines; what somebody wants is teal). "
        f"{len(gathered.answered) - len(wrong):,} answers hold, "
        f'<b style="color:{_RED}">{len(wrong):,} do not</b>'
        " (red, with dashed lines to what they should have told). Hover for what something is.</p>"
    )
    parts = ["<h1>Located feeds: who wanted what</h1>", about, _picture(gathered), _table(gathered.answered)]
    return document(f"Hushcast: batch {body.number}", parts, _STYLE)


def _picture(gathered: MapContents) -> str:
    places = {name: degrees_of(one.place) for name, one in gathered.messages.items()}
    homes = [degrees_of(one.subscription.place) for one in gathered.answered]
    field = _field([*places.values(), *homes])
    at = {name: field.at(*where) for name, where in places.items()}
    wanted = {name for one in gathered.answered for name in one.wanted}
    parts = [
        f'<svg class="map" xmlns="http://www.w3.org/2000/svg" role="img" '
        f'viewBox="0 0 {field.width:.0f} {field.height:.0f}" font-family="system-ui, sans-serif" '
        'font-size="12">',
        f"<title>Batch {gathered.batch.body.number}</title>",
        *_degrees(field),
    ]
    for name, (x, y) in at.items():
        kind = "message wanted" if name in wanted else "message"
        said = _short(gathered.messages[name].payload.decode(errors="replace"))
        parts.append(
            f'<circle class="{kind}" cx="{x}" cy="{y}" r="2.2"><title>{escape(name)}: {said}</title></circle>'
        )
    # Whose answer does not hold is drawn last, above all others.
    for one in sorted(gathered.answered, key=lambda one: one.problem is not None):
        parts.append(_lines(one, field, at, is_named=len(gathered.answered) <= _KNOWN))
    return "\n".join([*parts, "</svg>"])


def _lines(one: MapSubscription, field: _Field, at: dict[str, tuple[float, float]], is_named: bool) -> str:
    x, y = field.at(*degrees_of(one.subscription.place))
    drawn = "".join(f'<line x1="{x}" y1="{y}" x2="{at[name][0]}" y2="{at[name][1]}"/>' for name in one.wanted)
    mark = f'<path class="one" d="M{x} {y - 7}l5 7l-5 7l-5 -7z"/>'
    name = escape(one.name) if one.problem is None else f"{escape(one.name)}: {_problem(one)}"
    text = f'<text x="{x + 8}" y="{y - 6}">{name}</text>' if is_named or one.problem is not None else ""
    words = escape(", ".join(one.subscription.words))
    kind = "" if one.problem is None else ' class="wrong"'
    return f"<g{kind}><title>{name} ({words})</title>{drawn}{mark}{text}</g>"


def _field(places: Iterable[tuple[float, float]]) -> _Field:
    """Return the field that holds all places, some room around them; the seam is where nobody is."""
    some = list(places) or [(0.0, 0.0)]
    south, north = min(one[0] for one in some), max(one[0] for one in some)
    easts = sorted({one[1] for one in some})
    gaps = [(after - one) % 360 or 360.0 for one, after in zip(easts, [*easts[1:], easts[0]], strict=True)]
    widest = max(range(len(gaps)), key=gaps.__getitem__)
    west, span = easts[(widest + 1) % len(easts)], 360 - gaps[widest]
    room = max(north - south, span, 0.02) * 0.04
    south, north, west, span = max(south - room, -90), min(north + room, 90), west - room, span + 2 * room
    flat = max(math.cos(math.radians((south + north) / 2)), 0.05)
    scale = min((WIDTH - 2 * _EDGE) / (span * flat), (MOST_HEIGHT - 2 * _EDGE) / (north - south))
    height = max((north - south) * scale + 1.5 * _EDGE, LEAST_HEIGHT)
    return _Field(west, north, scale, flat, max(span * flat * scale + 2 * _EDGE, LEAST_HEIGHT), height)


def _degrees(field: _Field) -> Iterator[str]:
    """Yield lines of round degrees, with their numbers."""
    right, bottom = field.width - _EDGE / 2, field.height - _EDGE
    tall = (bottom - _EDGE / 2) / field.scale
    wide = (right - _EDGE) / (field.scale * field.flat)
    step = round_step(max(tall, wide) / _TICKS)
    digits = max(0, -math.floor(math.log10(step) + 1e-9))
    for number in range(math.ceil((field.north - tall) / step), math.floor(field.north / step) + 1):
        y = field.at(number * step, field.west)[1]
        yield f'<path d="M{_EDGE} {y}H{right:.0f}" stroke="#e4e4e4"/>'
        name = f"{number * step:.{digits}f}°"
        yield f'<text x="{_EDGE - 6}" y="{y + 4}" text-anchor="end" fill="#555">{name}</text>'
    for number in range(math.ceil(field.west / step), math.floor((field.west + wide) / step) + 1):
        x = round(_EDGE + (number * step - field.west) * field.flat * field.scale, 1)
        name = f"{(number * step + 180) % 360 - 180:.{digits}f}°"
        yield f'<path d="M{x} {_EDGE / 2}V{bottom:.0f}" stroke="#e4e4e4"/>'
        yield f'<text x="{x}" y="{bottom + 16:.0f}" text-anchor="middle" fill="#555">{name}</text>'


def _table(answered: Iterable[MapSubscription]) -> str:
    rows = []
    for one in sorted(answered, key=lambda one: (one.problem is None, one.name)):
        asked = one.subscription
        latitude, longitude = degrees_of(asked.place)
        cells = (
            escape(one.name),
            escape(", ".join(asked.words)),
            f"{latitude:.4f}",
            f"{longitude:.4f}",
            f"{asked.alpha / 1000:g}",
            f"{asked.threshold / 1000:g}",
            f"{len(one.wanted):,}",
            "holds" if one.problem is None else f"{_problem(one)}: {_meaning(one)}",
        )
        kind = "" if one.problem is None else ' class="wrong"'
        rows.append(f"<tr{kind}>" + "".join(f"<td>{cell}</td>" for cell in cells) + "</tr>")
    names = ("subscription", "keywords", "latitude", "longitude", "α", "θ", "wants", "answer")
    head = "".join(f"<th>{name}</th>" for name in names)
    return f'<h2>Answers</h2><div class="wide"><table><tr>{head}</tr>{"".join(rows)}</table></div>'


def _problem(one: MapSubscription) -> str:
    return "no answer" if not one.has_answer else str(one.problem)


def _meaning(one: MapSubscription) -> str:
    assert one.problem is not None
    return MEANING[one.problem] if one.has_answer else "there is no file with its name"


def _short(text: str) -> str:
    return escape(text if len(text) <= _TEXT else text[:_TEXT] + "…")
