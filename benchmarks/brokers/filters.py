"""Figure: filters that come and go in a poset, and match, against comparing with all."""

from __future__ import annotations

import random
import sys
import time
from collections.abc import Iterator
from itertools import islice

from benchmarks.figures import Effort, Figure, alternate, at_most, times_faster
from benchmarks.processes import printed_by, resident
from hushcast_cli.analysis.filter_workload import ATTRIBUTES, Place, anywhere, ends, in_towns, kind
from hushcast_protocol.brokers.anonymity_levels import Levels
from hushcast_protocol.brokers.filters import Filter, Side, Sides, covers
from hushcast_protocol.brokers.poset import LookBudget
from hushcast_protocol.content.topics import make_topic

FILTERS = 100_000
FEWER = 10  # times fewer: what growth is told against
PLACES = {"uniform": anywhere, "clustered": in_towns}
_TOPIC = make_topic("events", ATTRIBUTES)
_MORE = 200  # filters that come and go on top, a turn
_WITH_ALL = 3  # of them that are compared with all


def figures(effort: Effort) -> Iterator[Figure]:
    """Measure on one topic, the worst case: filters of two topics are never compared."""
    for name in PLACES:
        yield from _beside_all(effort, name)


def _beside_all(effort: Effort, workload: str) -> Iterator[Figure]:
    count = effort.amount(FILTERS)
    few = count // FEWER
    drawn = draw(PLACES[workload], count + _MORE)
    levels = _built(drawn[:count])
    cost = _costs(effort, levels, drawn, _points(PLACES[workload]))
    name, every = f"of one topic, {workload}", f"comparing with {count:,}"
    target = 50 if effort.share == 1 else None  # it grows with their number
    for figure, ours, peer, theirs, times in (
        (f"filter into a poset {name}", "in", every, "all", target),
        (f"filter out of it {name}", "out", every, "all", target),
        (f"filters that match a message {name}", "match", every, "match all", None),
    ):
        yield times_faster(f"{figure}, µs: times faster", cost[ours], peer, cost[theirs], times)
    less = f"the same among {few:,}"
    yield at_most(f"growth, in {name}, µs: at most times", cost["in"], less, cost["fewer in"], FEWER)
    yield at_most(f"growth, out {name}, µs: at most times", cost["out"], less, cost["fewer out"], None)
    taken = printed_by("benchmarks.brokers.filters", workload, str(count))
    order = levels.poset.order(_TOPIC)
    assert order is not None
    looks = LookBudget()
    below = (order.highest(order.successors(one), looks) for one in islice(order.slots, _MORE))
    direct = sum(group.bit_count() for groups in below for group in groups) / _MORE
    yield at_most(
        f"memory of a filter {name}, bytes: at most times", taken, "directly below it", direct, None
    )


def _costs(effort: Effort, levels: Levels, drawn: list[Filter], points: list[Sides]) -> dict[str, float]:
    """Measure in turn, in µs; all but the last of the filters drawn are in the poset."""
    held, more = drawn[:-_MORE], drawn[-_MORE:]
    few = held[: len(held) // FEWER]
    fewer = _built(few)
    return alternate(
        effort.runs,
        {
            "in": lambda: _insert(levels, more),
            "out": lambda: _remove(levels, more),
            "all": lambda: _with_all(held, more[:_WITH_ALL]),
            "fewer in": lambda: _insert(fewer, more),
            "fewer out": lambda: _remove(fewer, more),
            "match": lambda: _match(levels, points),
            "match all": lambda: _match_all(held, points[:_WITH_ALL]),
            "fewer match": lambda: _match(fewer, points),
        },
    )


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
        found.append((places[0], kind(chance), *places[1:]))
    return found


def _side(chance: random.Random, place: Place, name: str) -> Side:
    return kind(chance) if name == "kind" else ends(chance, place)


def _built(filters: list[Filter]) -> Levels:
    home = Levels()
    for at, one in enumerate(filters):
        home.insert(one, at)
    return home


def _insert(home: Levels, more: list[Filter]) -> float:
    began = time.perf_counter()
    for one in more:
        home.insert(one, 0)
    return (time.perf_counter() - began) / len(more) * 1e6


def _remove(home: Levels, more: list[Filter]) -> float:
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


def _match(home: Levels, points: list[Sides]) -> float:
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


def _memory(workload: str, count: int) -> float:
    """Return the bytes that a filter takes in a poset, itself not counted."""
    drawn = draw(PLACES[workload], count)
    before = resident()
    levels = _built(drawn)
    return (resident() - before) / len(levels)


if __name__ == "__main__":
    print(_memory(sys.argv[1], int(sys.argv[2])))
