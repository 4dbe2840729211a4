"""Seats: who subscribes, and every relay's next hop in each subscriber's tree."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
import numpy.typing as npt

from hushcast_analytics.generator.asked import Asked
from hushcast_analytics.generator.draws import words
from hushcast_protocol.tree import branching

Numbers = npt.NDArray[np.int64]

NONE = -1  # no next hop: a listed root has no seat in its own tree


@lru_cache(maxsize=8)
def shape(relays: int, depth: int) -> tuple[Numbers, Numbers]:
    """Return, by place in the planner's order, the place of the next hop (−1 for the root) and the level.

    The same law as `hushcast_protocol.tree.plan`: level d holds b^d relays, children dealt out in turn.
    """
    width = branching(relays, depth)
    above, levels = np.full(relays, NONE), np.ones(relays, dtype=np.int64)
    begin, size = 0, min(width, relays)
    for level in range(2, depth + 1):
        following = begin + size
        count = min(width**level, relays - following) if level < depth else relays - following
        above[following : following + count] = begin + np.arange(count) % size
        levels[following : following + count] = level
        if count <= 0:
            break
        begin, size = following, count
    return above, levels


@lru_cache(maxsize=64)
def subscribers(asked: Asked, topic: int) -> Numbers:
    """Return the daemons that subscribe to a topic."""
    first, count = (0, asked.nodes) if asked.relays_subscribe else (asked.nodes, asked.client_count)
    pool = np.arange(first, first + count)
    chosen = np.argsort(words(asked.seed, "subscriber", topic, pool), kind="stable")
    return np.sort(pool[chosen[: asked.subscribers]])


def plan(asked: Asked, topic: int, term: int, subscriber: int) -> tuple[Numbers, Numbers]:
    """Return each relay's next hop and level in the tree of a topic's subscriber (an index) for one term.

    A next hop is a relay's number, or `nodes` + subscriber for its mailbox. A listed root has next hop `NONE`
    and level 0.
    """
    relays = np.arange(asked.nodes)
    order = np.argsort(words(asked.seed, "tree", topic, subscriber, term, relays), kind="stable")
    root = asked.nodes + subscriber
    hops, levels = np.full(asked.nodes, NONE), np.zeros(asked.nodes, dtype=np.int64)
    if asked.listed:
        root = int(subscribers(asked, topic)[subscriber])
        order = order[order != root]
    above, level = shape(len(order), asked.behaviour.depth)
    hops[order] = np.where(above < 0, root, order[above])
    levels[order] = level
    return hops, levels


@lru_cache(maxsize=2)
def forest(asked: Asked, topic: int, term: int) -> npt.NDArray[np.int32]:
    """Return the next hops in all trees of a topic: one row a relay, one column a subscriber."""
    trees = [plan(asked, topic, term, subscriber)[0] for subscriber in range(asked.subscribers)]
    return np.stack([hops.astype(np.int32) for hops in trees], axis=1)
