"""Figure: what deciding about a purpose costs, and changing a reservation, in a list, a tree and a cache."""

from __future__ import annotations

import random
import sys
import time
from collections.abc import Callable, Iterator

from benchmarks.figures import Effort, Figure, alternate, at_most, times_faster
from benchmarks.processes import printed_by, resident
from hushcast_protocol.purposes.cached_reservations import CachedReservationTree
from hushcast_protocol.purposes.clauses import Clause
from hushcast_protocol.purposes.filter_reach import FilterReach
from hushcast_protocol.purposes.purpose_names import Purpose
from hushcast_protocol.purposes.reservations import ReservationList, Reservations, ReservationTree
from hushcast_protocol.purposes.topic_tree import TopicTree
from hushcast_protocol.purposes.vocabulary import shipped

RESERVATIONS = (10, 1_000, 10_000)
_KINDS = ("position", "speed", "fuel", "doors", "driver")  # topics of a car
_READERS = 3  # purposes that are asked for
_BUSY = 10_000  # topics on which messages are published
_ASKED = 2_000  # decisions a turn
_ASKED_FLAT = 50  # of a list, which takes long
_CHANGED = 200  # reservations replaced a turn
_LOOKED = 10_000  # reservations that looks at all topics go through in a turn
_BETWEEN = 100  # decisions between two changes, where both are mixed

Question = tuple[str, Purpose]


class ForgetsAll(CachedReservationTree):
    """The paper's cache: every change forgets everything (section V-D)."""

    def _changed(self, image: str) -> None:
        self._kept.clear()
        self._topics = TopicTree()
        self._count = 0


def figures(effort: Effort) -> Iterator[Figure]:
    """Measure on a fleet: owners reserve for their cars, and five reservations are for all cars."""
    for count in RESERVATIONS:
        yield from _among(effort, count)
    taken = printed_by("benchmarks.purposes", str(RESERVATIONS[-1]))
    yield at_most("memory of a reservation in a tree, bytes: at most times", taken, "a KiB", 1024, None)


def _among(effort: Effort, count: int) -> Iterator[Figure]:
    fleet = Fleet(count)
    stores: dict[str, Callable[[], Reservations]] = {
        "flat": ReservationList,
        "tree": ReservationTree,
        "cached": CachedReservationTree,
    }
    flat, tree, cached = (fleet.store(kind) for kind in stores.values())
    asked, few = fleet.questions(_ASKED), fleet.questions(_ASKED_FLAT)
    cost = alternate(
        effort.runs,
        {
            "flat": lambda: _decide(flat, few),
            "tree": lambda: _decide(tree, asked),
            "cached": lambda: _decide(cached, asked),
            "reach": lambda: _reach(tree),
            **{f"{name} changes": _changes(fleet, kind) for name, kind in stores.items()},
            "tree mixed": _mixed(fleet, ReservationTree),
            "cached mixed": _mixed(fleet, CachedReservationTree),
            "forgetful mixed": _mixed(fleet, ForgetsAll),
        },
    )
    among = f"among {count:,} reservations, µs"
    most = count == RESERVATIONS[-1]
    yield times_faster(
        f"decision {among}: times faster", cost["tree"], "list", cost["flat"], 100 if most else None
    )
    name = f"decision that is remembered {among}: times faster"
    yield times_faster(name, cost["cached"], "tree", cost["tree"], 2)
    for kind in ("tree", "cached"):
        name = f"change of a reservation, {kind}, {among}: at most times"
        yield at_most(name, cost[f"{kind} changes"], "list", cost["flat changes"], None)
    name = f"decision, a change after each {_BETWEEN}, cached, {among}: times faster"
    yield times_faster(name, cost["cached mixed"], "tree", cost["tree mixed"], None)
    yield times_faster(name, cost["cached mixed"], "a cache that forgets all", cost["forgetful mixed"], None)
    name = f"subscription to #, all of its topics decided, {among}: at most times"
    yield at_most(name, cost["reach"], "a decision by a list", cost["flat"], None)


class Fleet:
    """Cars, what their owners reserve, and what readers ask, the same every time."""

    def __init__(self, count: int) -> None:
        self._chance = random.Random(count)  # noqa: S311 - to be drawn again the same
        self._purposes = list(shipped())
        self._readers = self._purposes[:: len(self._purposes) // _READERS][:_READERS]
        self._cars = max(1, (count - len(_KINDS)) // 2)
        self._busy = min(self._cars, _BUSY // len(_KINDS))
        self.clauses = [self._clause("fleet", f"cars/+/{kind}") for kind in _KINDS]
        for car in range(self._cars):
            for wanted in (f"cars/{car}/#", f"cars/{car}/{_KINDS[car % len(_KINDS)]}"):
                self.clauses.append(self._clause(f"owner {car}", wanted))

    def _clause(self, owner: str, wanted: str) -> Clause:
        aip, pip = self._chance.sample(self._purposes, 6), self._chance.sample(self._purposes, 1)
        return Clause(owner, wanted, frozenset(aip), frozenset(pip))

    def store(self, kind: Callable[[], Reservations]) -> Reservations:
        """Return a store with all reservations, and what it remembers."""
        store = kind()
        for one in self.clauses:
            store.put(one)
        if isinstance(store, CachedReservationTree):
            cars = range(self._busy)
            _decide(
                store, [(f"cars/{car}/{k}", one) for car in cars for k in _KINDS for one in self._readers]
            )
        return store

    def changed(self, count: int) -> list[Clause]:
        """Draw what some owners of cars reserve instead."""
        some = self._chance.choices(self.clauses[len(_KINDS) :], k=count)
        return [self._clause(one.owner, one.filter) for one in some]

    def questions(self, count: int) -> list[Question]:
        """Draw topics of the cars on the road, and purposes of a few readers."""
        cars = [self._chance.randrange(self._busy) for _ in range(count)]
        return [
            (f"cars/{car}/{self._chance.choice(_KINDS)}", self._chance.choice(self._readers)) for car in cars
        ]


def _decide(store: Reservations, asked: list[Question]) -> float:
    began = time.process_time()
    for topic, purpose in asked:
        store.decide(topic, purpose)
    return (time.process_time() - began) / len(asked) * 1e6


def _changes(fleet: Fleet, kind: Callable[[], Reservations]) -> Callable[[], float]:
    store = fleet.store(kind)

    def turn() -> float:
        changed = fleet.changed(_CHANGED)
        began = time.process_time()
        for one in changed:
            store.put(one)
        return (time.process_time() - began) / len(changed) * 1e6

    return turn


def _mixed(fleet: Fleet, kind: Callable[[], Reservations]) -> Callable[[], float]:
    store = fleet.store(kind)

    def turn() -> float:
        changed, asked = fleet.changed(_ASKED // _BETWEEN), fleet.questions(_ASKED)
        began = time.process_time()
        for number, one in enumerate(changed):
            store.put(one)
            for topic, purpose in asked[number * _BETWEEN : (number + 1) * _BETWEEN]:
                store.decide(topic, purpose)
        return (time.process_time() - began) / len(asked) * 1e6

    return turn


def _reach(store: Reservations) -> float:
    purpose = next(iter(shipped()))
    looks = max(1, _LOOKED // len(store))
    began = time.process_time()
    for _ in range(looks):
        found = FilterReach("#", store.intersecting("#"), purpose)
        assert (found.everywhere, found.somewhere, found.is_whole) == (False, True, True)
    return (time.process_time() - began) / looks * 1e6


def _memory(count: int) -> float:
    """Return the bytes that a reservation takes in a tree, with its texts and purposes."""
    shipped()
    before = resident()
    store = Fleet(count).store(ReservationTree)
    return (resident() - before) / len(store)


if __name__ == "__main__":
    print(_memory(int(sys.argv[1])))
