"""Places on the earth as three integers, and the squares of distances between them.

A place is a point on the unit sphere, each coordinate times 2^30 (about 6 mm on the ground), rounded once by
whoever names the place. What travels, is hashed and is compared are the integers: the same on every machine.
Distances are chords, straight through the earth. They grow with the distance on the ground, and have no seam
at 180 degrees and none at the poles.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from decimal import Context, Decimal, localcontext
from typing import Annotated

import msgspec

from hushcast_protocol.base.errors import UsageError

SCALE = 2**30
EARTH = 6371.0088  # kilometres; the mean radius (IUGG)
MAX_DISTANCE = 2 * SCALE  # of two places: through the middle of the earth
_LATITUDE, _LONGITUDE = 90.0, 180.0  # degrees
_DOUBT = 1e-4  # of a unit: how far from a half floats may be trusted; they are off by a thousandth of it
_PI = Decimal("3.1415926535897932384626433832795028841971694")
_LEAST = Decimal("1e-38")

Coordinate = Annotated[int, msgspec.Meta(ge=-SCALE, le=SCALE)]
Place = tuple[Coordinate, Coordinate, Coordinate]
Box = tuple[Place, Place]
"""The least and the greatest of each coordinate."""


def place_of(latitude: float, longitude: float) -> Place:
    """Return the place at these degrees; raise `UsageError` for what is not on the earth."""
    if not (abs(latitude) <= _LATITUDE and abs(longitude) <= _LONGITUDE):  # so that NaN is refused, too
        raise UsageError(
            f"latitude {latitude} and longitude {longitude} are no place: from -90 to 90, and -180 to 180"
        )
    north, east = math.radians(latitude), math.radians(longitude)
    flat = math.cos(north)
    near = flat * math.cos(east) * SCALE, flat * math.sin(east) * SCALE, math.sin(north) * SCALE
    # Sines differ from one machine to another in their last digits, which matters where halves are rounded.
    if any(abs(one - math.floor(one) - 0.5) < _DOUBT for one in near):
        return _exactly(latitude, longitude)
    x, y, z = map(round, near)
    return x, y, z


def _exactly(latitude: float, longitude: float) -> Place:
    """Return the place at these degrees, reckoned in 40 digits: the same on every machine, and slow."""
    with localcontext(Context(prec=40)):
        (sine, flat), (east, west) = _sine(latitude), _sine(longitude)
        x, y, z = (round(SCALE * one) for one in (flat * west, flat * east, sine))
        return x, y, z


def _sine(degrees: float) -> tuple[Decimal, Decimal]:
    """Return sine and cosine, from their series."""
    angle = Decimal(degrees) * _PI / 180
    sums = [Decimal(0), Decimal(0)]
    term, number = Decimal(1), 0
    while abs(term) > _LEAST:
        sums[number % 2] += term if number % 4 < 2 else -term
        number += 1
        term = term * angle / number
    return sums[1], sums[0]


def middle_of(places: Sequence[Place]) -> Place:
    """Return the middle of places, one at least; raise `UsageError` where they have none, as both poles."""
    sums = [sum(one) for one in zip(*places, strict=True)]
    length = math.isqrt(sum(one * one for one in sums))
    if not length:
        raise UsageError("these places have no middle: they lie all around the earth")
    x, y, z = ((2 * SCALE * one + length) // (2 * length) for one in sums)
    return x, y, z


def degrees_of(place: Place) -> tuple[float, float]:
    """Return latitude and longitude, for people: to seven digits behind the point, about a centimetre."""
    x, y, z = place
    north = math.degrees(math.atan2(z, math.hypot(x, y)))
    return round(north, 7), round(math.degrees(math.atan2(y, x)), 7)


def on_earth(place: Place) -> bool:
    """Tell whether a place is one that `place_of` can return: each coordinate is off by half at most."""
    return abs(sum(one * one for one in place) - SCALE * SCALE) < 2 * SCALE


def chord(kilometres: float) -> int:
    """Return a distance on the ground as a chord, in the places' scale, 1 at least; raise `UsageError`."""
    half_round = math.pi * EARTH
    if not 0 < kilometres < math.inf:
        raise UsageError(f"{kilometres} is not a number of kilometres above 0")
    return max(round(2 * SCALE * math.sin(min(kilometres, half_round) / (2 * EARTH))), 1)


def square(one: Place, other: Place) -> int:
    """Return the square of the distance of two places."""
    x, y, z = one[0] - other[0], one[1] - other[1], one[2] - other[2]
    return x * x + y * y + z * z


def square_to_box(place: Place, box: Box) -> int:
    """Return the square of the least distance from a place to a box, 0 inside of it."""
    total = 0
    for at, low, high in zip(place, box[0], box[1], strict=True):
        away = low - at if at < low else at - high if at > high else 0
        total += away * away
    return total


def around(boxes: Iterable[Box]) -> Box:
    """Return the smallest box around boxes, of which there is one at least."""
    lows, highs = zip(*boxes, strict=True)
    (x, y, z), (east, north, up) = map(min, zip(*lows, strict=True)), map(max, zip(*highs, strict=True))
    return (x, y, z), (east, north, up)
