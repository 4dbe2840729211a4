"""Seats of trees: who subscribes, and every relay's next hop in the tree that a subscriber draws."""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from hushcast_analytics.generator.draws import words
from hushcast_analytics.generator.scenario import GeneratorScenario
from hushcast_analytics.generator.tree_repair import NONE, Hops, Numbers
from hushcast_protocol.overlay.tree import branching


@lru_cache(maxsize=8)
def shape(relays: int, depth: int) -> Numbers:
    """Return, by place in the planner's order, the place of the next hop (−1 for the root).

    The same law as `overlay.tree.plan`: level d holds b^d relays, children dealt out in turn.
    """
    width = branching(relays, depth)
    above = np.full(relays, NONE)
    begin, size = 0, min(width, relays)
    for level in range(2, depth + 1):
        following = begin + size
        count = min(width**level, relays - following) if level < depth else relays - following
        above[following : following + count] = begin + np.arange(count) % size
        if count <= 0:
            break
        begin, size = following, count
    return above


@lru_cache(maxsize=64)
def subscribers(asked: GeneratorScenario, topic: int) -> Numbers:
    """Return the daemons that subscribe to a topic."""
    first, count = (0, asked.nodes) if asked.relays_subscribe else (asked.nodes, asked.client_count)
    pool = np.arange(first, first + count)
    chosen = np.argsort(words(asked.seed, "subscriber", topic, pool), kind="stable")
    return np.sort(pool[chosen[: asked.subscribers]])


def root_of(asked: GeneratorScenario, topic: int, subscriber: int) -> int:
    """Return the number of a tree's root: the subscriber's own relay, or `nodes` + subscriber (an index)."""
    return int(subscribers(asked, topic)[subscriber]) if asked.listed else asked.nodes + subscriber


def drawn(asked: GeneratorScenario, topic: int, day: int, subscriber: int, relays: Numbers) -> Hops:
    """Return each relay's next hop in a new tree over `relays`: a relay, the root, or `NONE` without a seat.

    A listed root has no seat in its own tree.
    """
    root = root_of(asked, topic, subscriber)
    relays = relays[relays != root]
    order = relays[np.argsort(words(asked.seed, "tree", topic, subscriber, day, relays), kind="stable")]
    above = shape(len(order), asked.behaviour.depth)
    hops = np.full(asked.nodes, NONE, dtype=np.int32)
    hops[order] = np.where(above < 0, root, order[above])
    return hops
