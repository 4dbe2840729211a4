"""Figure: filters that come and go in a poset, and match, against comparing with all, and beside a forest."""

from __future__ import annotations

import gc
import random
import resource
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TypeVar

from benchmarks.figures import Effort, Figure, alternate, at_most, times_faster
from hushcast_protocol.brokers.filters import Filter, Side, Sides, covers
from hushcast_protocol.brokers.forest import Forest
from hushcast_protocol.brokers.levels import Levels
from hushcast_protocol.content.topics import make_topic

FILTERS = 100_000
FEWER = 10  # times fewer: what growth is told against, and where the forest stands beside
PLACES = 65_536
KINDS = 500
SHARES = (0.001, 0.003, 0.01, 0.03)  # of a number's places that a condition takes
_TOPIC = make_topic("events", ["alt:0..65535", "kind", "lat:0..65535", "lon:0..65535"])
_MORE = 200  # filters that come and go on top, a turn
_WITH_ALL = 3  # of them that are compared with all

Place = Callable[[random.Random], int]
HomeT = TypeVar("HomeT", Levels, Forest)


def figures(effort: Effort) -> Iterator[Figure]:
    """Measure on one topic, the worst case: filters of two topics are never compared."""
    for place in (uniform, clustered):
        yield from _beside_all(effort, place)


def _beside_all(effort: Effort, place: Place) -> Iterator[Figure]:
    count = effort.amount(FILTERS)
    drawn = draw(place, count + _MORE)
    held, more = drawn[:count], drawn[count:]
    fewer = _built(Levels(), held[: count // FEWER])
    before = _resident()
    levels = _built(Levels(), held)
    taken = (_resident() - before) / count
    forest = _built(Forest(), held[: count // FEWER])
    points = _points(place)
    cost = alternate(
        effort.runs,
        {
            "in": lambda: _insert(levels, more),
            "out": lambda: _remove(levels, more),
            "all": lambda: _with_all(held, more[:_WITH_ALL]),
            "fewer in": lambda: _insert(fewer, more),
            "fewer out": lambda: _remove(fewer, more),
            "forest in": lambda: _insert(forest, more),
            "forest out": lambda: _remove(forest, more),
            "match": lambda: _match(levels, points),
            "match all": lambda: _match_all(held, points[:_WITH_ALL]),
            "fewer match": lambda: _match(fewer, points),
            "forest match": lambda: _match(forest, points),
        },
    )
    name = f"of one topic, {place.__name__}"
    all_of_them = f"comparing with {count:,}"
    target = 50 if effort.share == 1 else None  # it grows with their number
    yield times_faster(
        f"filter into a poset {name}, µs: times faster", cost["in"], all_of_them, cost["all"], target
    )
    yield times_faster(
        f"filter out of it {name}, µs: times faster", cost["out"], all_of_them, cost["all"], target
    )
    yield times_faster(
        f"filters that match a message {name}, µs: times faster",
        cost["match"],
        all_of_them,
        cost["match all"],
        None,
    )
    less = f"the same among {count // FEWER:,}"
    yield at_most(f"growth, in {name}, µs: at most times", cost["in"], less, cost["fewer in"], FEWER)
    yield at_most(f"growth, out {name}, µs: at most times", cost["out"], less, cost["fewer out"], None)
    small = f"a forest of {count // FEWER:,}"
    yield times_faster(
        f"into a poset of as many {name}, µs: times faster", cost["fewer in"], small, cost["forest in"], None
    )
    yield times_faster(
        f"out of a poset of as many {name}, µs: times faster",
        cost["fewer out"],
        small,
        cost["forest out"],
        None,
    )
    yield times_faster(
        f"matching in a poset of as many {name}, µs: times faster",
        cost["fewer match"],
        small,
        cost["forest match"],
        None,
    )
    order = levels.poset.order(_TOPIC)
    assert order is not None
    edges = sum(map(len, order.below)) / count
    yield at_most(
        f"memory of a filter {name}, bytes: at most times", taken, "its immediate edges", edges, None
    )


def uniform(chance: random.Random) -> int:
    """Draw a place, each as likely."""
    return chance.randrange(PLACES)


def clustered(chance: random.Random) -> int:
    """Draw a place near one of three towns, the first of which most people live in."""
    town = chance.choices((9_000, 30_000, 52_000), (6, 3, 1))[0]
    return min(max(int(chance.gauss(town, 1_500)), 0), PLACES - 1)


def draw(place: Place, count: int) -> list[Filter]:
    """Draw distinct filters with conditions on one to four attributes."""
    chance = random.Random(1)  # noqa: S311 - the same filters every time
    found: dict[Filter, None] = {}
    while len(found) < count:
        named = chance.sample(_TOPIC.attributes, chance.randint(1, len(_TOPIC.attributes)))
        sides = tuple(_side(chance, place, one.name) if one in named else None for one in _TOPIC.attributes)
        found[Filter(_TOPIC, sides)] = None
    return list(found)


def _points(place: Place) -> list[Sides]:
    """Draw messages that have all attributes."""
    chance = random.Random(2)  # noqa: S311 - the same messages every time
    found: list[Sides] = []
    for _ in range(_MORE):
        places = [(at, at) for at in (place(chance), place(chance), place(chance))]
        found.append((places[0], _kind(chance), *places[1:]))
    return found


def _kind(chance: random.Random) -> str:
    return f"kind {min(int(chance.paretovariate(0.7)), KINDS)}"  # a few are common, most are rare


def _side(chance: random.Random, place: Place, name: str) -> Side:
    if name == "kind":
        return _kind(chance)
    width = int(PLACES * chance.choice(SHARES) * chance.uniform(0.5, 1.5))
    low = min(max(place(chance) - chance.randint(0, width), 0), PLACES - 1 - width)
    return low, low + width


def _built(home: HomeT, filters: list[Filter]) -> HomeT:
    for at, one in enumerate(filters):
        home.insert(one, at)
    return home


def _insert(home: Levels | Forest, more: list[Filter]) -> float:
    began = time.perf_counter()
    for one in more:
        home.insert(one, 0)
    return (time.perf_counter() - began) / len(more) * 1e6


def _remove(home: Levels | Forest, more: list[Filter]) -> float:
    began = time.perf_counter()
    for one in more:
        home.remove(one, 0)
    return (time.perf_counter() - began) / len(more) * 1e6


def _with_all(held: list[Filter], more: list[Filter]) -> float:
    """Find what covers a filter, and what it covers: without telling who is nearest."""
    began = time.perf_counter()
    for one in more:
        [other for other in held if covers(other, one)]
        [other for other in held if covers(one, other)]
    return (time.perf_counter() - began) / len(more) * 1e6


def _match(home: Levels | Forest, points: list[Sides]) -> float:
    began = time.perf_counter()
    for point in points:
        home.interested(_TOPIC, point)
    return (time.perf_counter() - began) / len(points) * 1e6


def _match_all(held: list[Filter], points: list[Sides]) -> float:
    began = time.perf_counter()
    for point in points:
        given = Filter(_TOPIC, point)
        [other for other in held if covers(other, given)]
    return (time.perf_counter() - began) / len(points) * 1e6


def _resident() -> int:
    gc.collect()
    return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize()
