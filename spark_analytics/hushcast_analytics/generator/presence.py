"""Presence: which daemon is there in which epoch, and which relays the rosters list."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from itertools import count, islice

import numpy as np
import numpy.typing as npt

from hushcast_analytics.generator.draws import uniform
from hushcast_analytics.generator.scenario import GeneratorScenario

Presence = npt.NDArray[np.bool_]

LISTED_FOR = (
    3  # epochs for which a relay that left stays on the roster, as its descriptor holds; a test compares
)


@lru_cache(maxsize=2)
def presence(asked: GeneratorScenario) -> Presence:
    """Return whether each daemon (row) is there in each epoch (column).

    Each is up and down in turn, for a geometrically distributed number of epochs with the means asked for,
    and begins as likely up as it is on average.
    """
    there = np.ones((asked.daemons, asked.epochs), dtype=np.bool_)
    if not asked.down:
        return there
    rows = there_by_epoch(asked.seed, np.arange(asked.daemons), asked.up, asked.down)
    for epoch, now in enumerate(islice(rows, asked.epochs)):
        there[:, epoch] = now
    there[: asked.watchers] = True
    return there


def there_by_epoch(seed: int, daemons: npt.NDArray[np.int64], up: float, down: float) -> Iterator[Presence]:
    """Yield, epoch by epoch without end, which of the daemons with these numbers are there.

    `up` and `down` are the mean epochs that one is there, and away; `down` is above 0.
    """
    now = uniform(seed, "begins up", daemons) < up / (up + down)
    for epoch in count(1):
        yield now
        chance = uniform(seed, "comes or goes", daemons, epoch)
        now = np.where(now, chance >= 1 / up, chance < min(1.0, 1 / down))


@lru_cache(maxsize=2)
def listed(asked: GeneratorScenario) -> Presence:
    """Return whether the roster of each epoch (column) lists each relay (row).

    Who registers in an epoch is listed from the next on; the first roster waits for all that are there.
    """
    there = presence(asked)[: asked.nodes]
    found = np.zeros_like(there)
    found[:, 0] = there[:, 0]
    for epoch in range(1, asked.epochs):
        found[:, epoch] = there[:, max(0, epoch - LISTED_FOR) : epoch].any(axis=1)
    return found


@lru_cache(maxsize=2)
def returns(asked: GeneratorScenario) -> npt.NDArray[np.int32]:
    """Return the first epoch, at or after each, in which a daemon is there; `epochs` stands for none."""
    there = presence(asked)
    found = np.full((asked.daemons, asked.epochs + 1), asked.epochs, dtype=np.int32)
    for epoch in reversed(range(asked.epochs)):
        found[:, epoch] = np.where(there[:, epoch], epoch, found[:, epoch + 1])
    return found
