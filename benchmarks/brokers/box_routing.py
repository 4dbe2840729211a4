"""Three ways to route boxes, measured: tokens of a publication, elements of a subscription, excess.

    python benchmarks/brokers/box_routing.py

A subscription wants a box in 2 or 3 dimensions of 16 bits, or names two of three; a publication is a point.
Excess is the share of messages that enter the trees of subscriptions that do not want them, over all pairs
that do not match. What trees of one topic share comes on top and is the same for all three.
"""

from __future__ import annotations

import random
import statistics
import time
from collections.abc import Callable, Iterator

from hushcast_protocol.content.dyadic_covers import around, cover
from hushcast_protocol.content.messages import MAX_TOKENS
from hushcast_protocol.content.tokens import MAX_COVER

BITS = 16
SIZE = 1 << BITS
BOXES, POINTS = 120, 4000
SHARES = (0.01, 0.03, 0.1, 0.3)  # of a dimension's places that a box takes

Point = tuple[int, ...]
Box = tuple[tuple[int, int], ...]
Cell = tuple[int, Point]  # level, and a place in each dimension over 2^level
Entered = Callable[[Point], bool]
Scheme = Callable[[Box], tuple[int, Entered]]  # elements of a subscription, and what it lets in


def inside(box: Box, point: Point) -> bool:
    """Tell whether a box holds a point."""
    return all(low <= at <= high for (low, high), at in zip(box, point, strict=True))


def rarest(box: Box) -> tuple[int, Entered]:
    """Let in by the cover of the narrowest side."""
    at = min(range(len(box)), key=lambda side: box[side][1] - box[side][0])
    low, high = box[at]
    return len(cover(low, high, BITS)), lambda point: low <= point[at] <= high


def quadtree(box: Box) -> tuple[int, Entered]:
    """Let in by `MAX_COVER` quadtree cells at most: the largest that juts out is split while all fit."""
    whole: list[Cell] = []
    jutting: list[Cell] = [(BITS, (0,) * len(box))]
    while jutting:
        jutting.sort()
        level, place = jutting[-1]
        below = [cell for cell in split(level, place) if touches(cell, box)] if level else []
        if not level or len(whole) + len(jutting) - 1 + len(below) > MAX_COVER:
            break
        jutting.pop()
        for cell in below:
            (whole if within(cell, box) else jutting).append(cell)
    cells = {*whole, *jutting}
    levels = {level for level, _ in cells}
    return len(cells), lambda point: any((at, tuple(c >> at for c in point)) in cells for at in levels)


def split(level: int, place: Point) -> Iterator[Cell]:
    """Return the 2^dimensions cells that a cell is made of."""
    for corner in range(1 << len(place)):
        yield level - 1, tuple(2 * at + (corner >> side & 1) for side, at in enumerate(place))


def touches(cell: Cell, box: Box) -> bool:
    """Tell whether a cell and a box share a point."""
    level, place = cell
    return all(
        at << level <= high and (at + 1 << level) > low for at, (low, high) in zip(place, box, strict=True)
    )


def within(cell: Cell, box: Box) -> bool:
    """Tell whether a cell lies in a box."""
    level, place = cell
    return all(
        low <= at << level and (at + 1 << level) - 1 <= high
        for at, (low, high) in zip(place, box, strict=True)
    )


def crossed(levels: int) -> Scheme:
    """Let in by products of intervals, one a dimension, of grids with `levels` levels."""

    def scheme(box: Box) -> tuple[int, Entered]:
        coarse = BITS - levels + 1
        sides = [(low >> coarse, high >> coarse) for low, high in box]
        elements = 1
        for low, high in sides:
            elements *= len(cover(low, high, levels - 1))
        return elements, lambda point: inside(tuple(sides), tuple(at >> coarse for at in point))

    return scheme


def uniform(chance: random.Random) -> int:
    """Draw a place, each as likely."""
    return chance.randrange(SIZE)


def clustered(chance: random.Random) -> int:
    """Draw a place near one of three towns, the first of which most people live in."""
    town = chance.choices((9_000, 30_000, 52_000), (6, 3, 1))[0]
    return min(max(int(chance.gauss(town, 1_500)), 0), SIZE - 1)


def draw_box(chance: random.Random, centre: Point, named: int) -> Box:
    """Draw a box around a place where messages are; sides that are not named are open."""
    sides = []
    for side, at in enumerate(centre):
        if side >= named:
            sides.append((0, SIZE - 1))
            continue
        width = int(SIZE * chance.choice(SHARES) * chance.uniform(0.5, 1.5))
        low = min(max(at - chance.randint(0, width), 0), SIZE - 1 - width)
        sides.append((low, low + width))
    return tuple(sides)


def measure(scheme: Scheme, boxes: list[Box], points: list[Point]) -> tuple[list[int], float]:
    """Return the elements of each subscription, and the excess; every match must be let in."""
    elements, excess, pairs = [], 0, 0
    for box in boxes:
        count, entered = scheme(box)
        elements.append(count)
        for point in points:
            if inside(box, point):
                assert entered(point)
            else:
                pairs += 1
                excess += entered(point)
    return elements, excess / pairs


def main() -> None:
    """Print the table."""
    began = time.perf_counter()
    print("| boxes | messages | scheme | tokens | elements, median | elements, most | excess |")
    print("|---|---|---|---|---|---|---|")
    for dimensions, named in ((2, 2), (3, 3), (3, 2)):
        levels = max(one for one in range(1, BITS + 2) if 1 + one**dimensions <= MAX_TOKENS)
        around_point = len(around(0, BITS))
        schemes: list[tuple[str, int, Scheme]] = [
            ("rarest attribute", 1 + dimensions * around_point, rarest),
            ("quadtree cells", 1 + around_point, quadtree),
            (f"cross products, {levels - 1} bits", 1 + levels**dimensions, crossed(levels)),
        ]
        for draw in (uniform, clustered):
            chance = random.Random(dimensions)  # noqa: S311 - the same table every time
            points = [tuple(draw(chance) for _ in range(dimensions)) for _ in range(POINTS)]
            boxes = [draw_box(chance, chance.choice(points), named) for _ in range(BOXES)]
            for name, tokens, scheme in schemes:
                elements, excess = measure(scheme, boxes, points)
                print(
                    f"| {named} of {dimensions} | {draw.__name__} | {name} | {tokens} |"
                    f" {statistics.median(elements):.0f} | {max(elements)} | {excess:.1%} |"
                )
    print(f"\n{BOXES} boxes, {POINTS} messages; {time.perf_counter() - began:.0f} s")


if __name__ == "__main__":
    main()
