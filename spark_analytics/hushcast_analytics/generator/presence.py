"""Presence: which daemon is there in which epoch."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
import numpy.typing as npt

from hushcast_analytics.generator.asked import Asked
from hushcast_analytics.generator.draws import uniform

Presence = npt.NDArray[np.bool_]


@lru_cache(maxsize=2)
def presence(asked: Asked) -> Presence:
    """Return whether each daemon (row) is there in each epoch (column).

    Each is up and down in turn, for a geometrically distributed number of epochs with the means asked for,
    and begins as likely up as it is on average.
    """
    there = np.ones((asked.daemons, asked.epochs), dtype=np.bool_)
    if not asked.down:
        return there
    daemons = np.arange(asked.daemons)
    now = uniform(asked.seed, "begins up", daemons) < asked.up / (asked.up + asked.down)
    leaves, returns = 1 / asked.up, min(1.0, 1 / asked.down)
    for epoch in range(asked.epochs):
        if epoch:
            chance = uniform(asked.seed, "comes or goes", daemons, epoch)
            now = np.where(now, chance >= leaves, chance < returns)
        there[:, epoch] = now
    return there


@lru_cache(maxsize=2)
def returns(asked: Asked) -> npt.NDArray[np.int32]:
    """Return the first epoch, at or after each, in which a daemon is there; `epochs` stands for none."""
    there = presence(asked)
    found = np.full((asked.daemons, asked.epochs + 1), asked.epochs, dtype=np.int32)
    for epoch in reversed(range(asked.epochs)):
        found[:, epoch] = np.where(there[:, epoch], epoch, found[:, epoch + 1])
    return found
