"""What the figures say, in words; computed from the measurements alone. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from hushcast_runtime.wording import counted
from hushcast_testnet.compare.curves import CLEAR, SYSTEMS, Curve, Fit, Measurement, crossing, curves_of, fit

LINEAR = 0.95  # R² from which a curve is called a line
_TWO = "The lines of the central server and the trees"
_ROUGHLY = 0.5  # from which it is roughly one
_NAMES = {"central": "the central server", "tree": "the spanning trees", "brokers": "the brokers"}


def said(
    measurements: Sequence[Measurement], profile: str, figure: int, loads: Mapping[str, Any]
) -> list[str]:
    """Return sentences on a figure under a profile; `loads` is of each network who had most to do."""
    curves = curves_of(measurements, profile, figure)
    fits = {system: fit(each) for system, each in curves.items()}
    sentences = [_shape(_NAMES[system], curves[system], fits[system], figure) for system in curves]
    if not (curves["central"] and curves["tree"]):
        return sentences
    sentences.append(_order(curves, figure))
    if figure == 3:
        sentences += _busiest(profile, loads)
    elif figure == 5:
        sentences += _slopes(fits)
    return sentences


def _shape(name: str, curve: Curve, found: Fit | None, figure: int) -> str:
    name = name[0].upper() + name[1:]
    if not curve:
        return f"{name}: not measured."
    first, last = curve[0], curve[-1]
    least = counted(first.x, "publisher" if figure == 5 else "subscriber")
    text = f"{name}: {first.seconds:.2f} s at {least}, {last.seconds:.2f} s at {last.x}"
    if found is None:
        return text + "."
    line = "a line" if found.r2 >= LINEAR else "roughly a line" if found.r2 >= _ROUGHLY else "no line"
    more = f"{1000 * abs(found.slope):.2f} ms {'more' if found.slope >= 0 else 'less'}"
    return f"{text}; {line} (R² {found.r2:.3f}) of {more} for each."


def _order(curves: Mapping[str, Curve], figure: int) -> str:
    of = "publishers" if figure == 5 else "subscribers"
    met = crossing(curves["central"], curves["tree"])
    if met is not None:
        return f"{_TWO} cross at about {met:.0f} {of}: beyond, the trees take less time."
    back = crossing(curves["tree"], curves["central"])
    if back is not None:
        return f"{_TWO} cross at about {back:.0f} {of}: beyond, the central server takes less time."
    of_tree = {place.x: place for place in curves["tree"]}
    both = [(place, of_tree[place.x]) for place in curves["central"] if place.x in of_tree]
    if not both:
        return "No number was measured with both."
    central, tree = both[-1]
    less, more = sorted((central.seconds, tree.seconds))
    quicker = "the central server stays" if central.seconds <= tree.seconds else "the trees stay"
    ratio = f"{more / less:.1f} times as fast at {central.x}" if less > 0 else "faster"
    return f"{_TWO} do not cross: {quicker} ahead throughout, {ratio}."


def _slopes(fits: Mapping[str, Fit | None]) -> Iterator[str]:
    central, tree = fits["central"], fits["tree"]
    if central is None or tree is None:
        return
    if tree.slope <= 0 < central.slope:
        yield "More publishers do not slow the trees at all; each slows the central server."
    elif tree.slope > 0:
        ratio = central.slope / tree.slope
        yield f"Each more publisher costs {ratio:.1f} times as much with the central server."


def _busiest(profile: str, loads: Mapping[str, Any]) -> Iterator[str]:
    """Say who is the bottleneck where most subscribe, from the first seed."""
    for system in SYSTEMS:
        under = CLEAR if system == "brokers" else profile
        of = [(name, load) for name, load in loads.items() if name.startswith(f"{system}, {under}, ")]
        if not of:
            continue
        name, load = max(of, key=lambda item: int(item[0].split(", ")[2].split()[0]))
        count = name.split(", ")[2]
        processor, tor = load["processor"], load["tor"]
        yield (
            f"With {count}, the busiest processor of {_NAMES[system]} ({processor['most']}) works"
            f" {processor['seconds']:.2f} s, the mean one {processor['mean']:.3f} s; the busiest tor"
            f" ({tor['most']}) {tor['seconds']:.2f} s, the mean one {tor['mean']:.3f} s."
        )
