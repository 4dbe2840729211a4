"""The trees of subscribers from epoch to epoch, and when a subscriber tells which relay of its seat.

As in daemons, a tree stays, and is mended according to the roster of an epoch; as published, each day has a
new one. A relay that is down when told is told in the epoch of its return.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from itertools import islice

import numpy as np

from hushcast_analytics.generator.draws import uniform, words
from hushcast_analytics.generator.presence import listed, presence
from hushcast_analytics.generator.scenario import EPOCH_SECONDS, GeneratorScenario
from hushcast_analytics.generator.tree_repair import NONE, Hops, Marks, Numbers, mended
from hushcast_analytics.generator.tree_seats import drawn, root_of
from hushcast_analytics.trace_schemas import EPOCHS_A_DAY

DAY_SECONDS = EPOCHS_A_DAY * EPOCH_SECONDS
MENDING = 0.7, 0.9  # shares of an epoch between which trees are mended; a test compares
UNSEAT_AFTER = 3  # rosters in a row that lack a relay before it loses its seat; a test compares


def kept(asked: GeneratorScenario, topic: int, subscriber: int) -> Iterator[Hops]:
    """Yield each relay's next hop (`tree_seats.drawn`) by epoch; the same array while nothing changes."""
    rosters, root = listed(asked), root_of(asked, topic, subscriber)
    hops = _new(asked, topic, 0, subscriber)
    for epoch in range(asked.epochs):
        if asked.listed:
            if epoch and epoch % EPOCHS_A_DAY == 0:
                hops = _new(asked, topic, epoch // EPOCHS_A_DAY, subscriber)
        elif (rosters[:, epoch, None] != rosters[:, max(0, epoch - UNSEAT_AFTER) : epoch]).any():
            members: Marks = rosters[:, max(0, epoch + 1 - UNSEAT_AFTER) : epoch + 1].max(axis=1)
            mends, grafts = (_places(asked, use, topic, subscriber, epoch) for use in ("mends", "grafts"))
            after = mended(hops, root, rosters[:, epoch], members, asked.behaviour.depth, mends, grafts)
            hops = after if (after != hops).any() else hops
        yield hops


def _new(asked: GeneratorScenario, topic: int, day: int, subscriber: int) -> Hops:
    """Return the tree that a subscriber draws for a day, over the relays that the roster then lists."""
    epoch = int(begins(asked, topic, day, subscriber) // EPOCH_SECONDS)
    return drawn(asked, topic, day, subscriber, np.flatnonzero(listed(asked)[:, epoch]))


def _places(asked: GeneratorScenario, purpose: str, *keys: int) -> Numbers:
    """Return the places of relays in a random order."""
    chance = words(asked.seed, purpose, *keys, np.arange(asked.nodes))
    return np.argsort(np.argsort(chance, kind="stable"), kind="stable")


def forest(asked: GeneratorScenario, topic: int, epoch: int) -> Hops:
    """Return the next hops in all trees of a topic: one row a relay, one column a subscriber.

    Quickest for epochs in their order.
    """
    return _walk(asked, topic).at(epoch)


class _Walk:
    """All trees of a topic in one epoch after the other."""

    def __init__(self, asked: GeneratorScenario, topic: int) -> None:
        self._asked, self._topic = asked, topic
        self._restart()

    def _restart(self) -> None:
        asked = self._asked
        self._epoch = -1
        self._trees = [kept(asked, self._topic, subscriber) for subscriber in range(asked.subscribers)]
        self._hops = np.full((asked.nodes, asked.subscribers), NONE, dtype=np.int32)

    def at(self, epoch: int) -> Hops:
        if epoch < self._epoch:
            self._restart()
        if epoch > self._epoch:
            ahead, self._epoch = epoch - self._epoch - 1, epoch
            self._hops = np.stack([next(islice(tree, ahead, None)) for tree in self._trees], axis=1)
        return self._hops


_walk = lru_cache(maxsize=2)(_Walk)


def begins(asked: GeneratorScenario, topic: int, day: int, subscriber: int) -> float:
    """Return when a subscription begins to install its tree for a day (seconds): at a moment of its own."""
    chance = float(uniform(asked.seed, "installs", topic, day, subscriber))
    if day == 0:
        return chance * EPOCH_SECONDS / 8
    # Between half and a quarter of a day before it is needed.
    return DAY_SECONDS * (day - 0.25 - 0.25 * chance)


@dataclass(frozen=True)
class SeatAnnouncement:
    """At a `moment` (seconds) a subscriber tells relays their seats in a tree that is new or `changed`."""

    moment: float
    hops: Hops
    changed: bool
    told: Marks


def tellings(asked: GeneratorScenario, topic: int, day: int, subscriber: int) -> Iterator[SeatAnnouncement]:
    """Yield what a subscriber tells relays of their seats on a day, the first time of all."""
    there = presence(asked)[: asked.nodes]
    moment = begins(asked, topic, day, subscriber)
    first, end = int(moment // EPOCH_SECONDS), min(asked.epochs, (day + 1) * EPOCHS_A_DAY)
    trees: Iterable[Hops] = islice(kept(asked, topic, subscriber), first, end)
    if asked.listed:
        trees = [_new(asked, topic, day, subscriber)] * (end - first)
    before = np.full(asked.nodes, NONE, dtype=np.int32)
    missing = np.zeros(asked.nodes, dtype=np.bool_)
    for epoch, hops in enumerate(trees, first):
        changed = hops is not before
        if changed:
            missing = (missing | _other_seats(before, hops)) & (hops != NONE)
        told = missing & there[:, epoch]
        missing &= ~told
        if epoch > first:
            chance = float(uniform(asked.seed, "tells", topic, day, subscriber, epoch))
            earliest, latest = MENDING
            moment = (epoch + earliest + (latest - earliest) * chance) * EPOCH_SECONDS
        if changed or told.any():
            yield SeatAnnouncement(moment, hops, changed, told)
        before = hops


def _other_seats(before: Hops, after: Hops) -> Marks:
    """Tell of each relay whether it has another next hop than before, or others that send to it."""
    moved = before != after
    marks: Marks = moved.copy()
    for above in (before[moved], after[moved]):
        marks[above[(above != NONE) & (above < len(marks))]] = True
    return marks
