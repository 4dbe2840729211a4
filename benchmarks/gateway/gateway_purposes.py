"""What purposes cost a gateway and whether they hold, in each mode and store; the page is drawn apart."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import trio

from benchmarks.figures import Effort, Figure, at_most, missing
from benchmarks.purpose_experiments.inside import MANY, large
from benchmarks.purpose_experiments.sides import MOSQUITTO, NONE
from benchmarks.purpose_experiments.tables import CLIENTS, Row, measured
from benchmarks.purpose_experiments.verdicts import Size, judged

# How many times the work, and the time, without purposes they may take; the others are for comparison.
TARGETS = {"on subscribe, cached": 1.03, "on publish, cached": 1.08, "hybrid, cached": 1.10}


def figures(effort: Effort) -> Iterator[Figure]:
    """Yield the figures."""
    yield from _tables(effort)
    yield from _verdicts(effort)
    yield from _many(effort)


def _tables(effort: Effort) -> Iterator[Figure]:
    rows = {row.name: row for row in trio.run(measured, effort)}
    values: dict[str, Callable[[Row], float | None]] = {
        "µs of CPU a message": lambda row: row.work,
        "µs until a message is there": lambda row: row.latency,
    }
    for what, value in values.items():
        none = value(rows[NONE.name])
        for name, row in rows.items():
            if name in (NONE.name, MOSQUITTO.name):
                continue
            figure = f"purposes in a gateway, {CLIENTS} clients, {name}: {what}: at most times"
            yield _at_most(figure, value(row), row, none, TARGETS.get(name))
        figure = f"purposes in a gateway, {CLIENTS} clients, {NONE.name}: {what}: at most times"
        peer = rows[MOSQUITTO.name]
        theirs = None if peer.missing else value(peer)
        if none is None or theirs is None:
            yield missing(figure, none, peer.name, peer.missing, None)
        else:
            yield at_most(figure, none, peer.name, theirs, None)


def _at_most(figure: str, value: float | None, row: Row, none: float | None, target: float | None) -> Figure:
    if value is None or none is None:
        return missing(figure, value, NONE.name, row.missing, target)
    return at_most(figure, value, NONE.name, none, target)


def _verdicts(effort: Effort) -> Iterator[Figure]:
    size = Size() if effort.share >= 1 else Size(topics=100, clients=10, rounds=2)
    for one in trio.run(judged, size):
        for what, count in (("accepts", one.false_accepts), ("rejects", one.false_rejects)):
            figure = f"purposes in a gateway, {one.name}: false {what} of {one.asked:,} messages and readers"
            if one.missing:
                yield missing(figure, None, "plain sets", one.missing, None)
            elif one.name in (NONE.name, MOSQUITTO.name):  # they show that faults are found
                yield Figure(figure, count, "plain sets", 0.0, None, None, None)
            else:
                yield Figure(figure, count, "plain sets", 0.0, float(count), 0.0, count == 0)


def _many(effort: Effort) -> Iterator[Figure]:
    many = max(100, effort.amount(MANY))
    none, *others = large(effort, many)
    for one in others:
        among = f"purposes, {many:,} reservations and subscriptions, {one.side}"
        yield at_most(f"{among}: µs a message: at most times", one.message, NONE.name, none.message, None)
        for what, value in (
            ("a new reservation", one.new),
            ("one of a busy topic, and a message", one.changed),
        ):
            figure = f"{among}: µs of CPU for {what}: at most times"
            yield at_most(figure, value, "a message without purposes", none.message, None)
