"""Mending: what becomes of a tree as relays leave and come, by the planner's rules.

The same law as `mend` and `graft` of `hushcast_protocol.tree`: the seat of a relay that left goes to a leaf,
newcomers become leaves, all others stay.
"""

from __future__ import annotations

import heapq

import numpy as np
import numpy.typing as npt

Numbers = npt.NDArray[np.int64]
Hops = npt.NDArray[np.int32]
Marks = npt.NDArray[np.bool_]

NONE = -1  # no next hop: relays without a seat, among them a listed root in its own tree


def levels(hops: Hops, root: int) -> Numbers:
    """Return the level of each relay: 1 under the root, 0 without a seat."""
    found: Numbers = (hops == root).astype(np.int64)
    at = np.flatnonzero(found)
    below = np.flatnonzero((hops != NONE) & (found == 0))
    level = 1
    while len(at) and len(below):
        level += 1
        here = found[np.minimum(hops[below], len(hops) - 1)] == level - 1
        at, below = below[here], below[~here]
        found[at] = level
    return found


def mended(hops: Hops, root: int, listed: Marks, depth: int, places: Numbers, graft_places: Numbers) -> Hops:
    """Return each relay's next hop once those not `listed` are out of a tree, and those new to it are in.

    `root` is the next hop of the top relays. `places` and `graft_places` are two random orders of the relays,
    each relay's place: who takes a seat that is free, and who a newcomer.
    """
    hops = hops.copy()
    level = levels(hops, root)
    seated = level > 0
    gone = np.flatnonzero(seated & ~listed)
    gone = gone[np.argsort(places[gone], kind="stable")]
    for relay in gone[np.argsort(-level[gone], kind="stable")]:
        if not (hops == relay).any():
            hops[relay] = NONE
    leaves = np.flatnonzero(seated & listed & (loads(hops) == 0))
    spare = leaves[np.argsort(places[leaves], kind="stable")].tolist()
    for relay in gone[np.argsort(level[gone], kind="stable")]:
        below = np.flatnonzero(hops == relay)
        if hops[relay] == NONE:
            continue
        above = hops[relay]
        if len(below) and spare:
            leaf = spare.pop()
            hops[leaf], above = above, leaf
        hops[below[below != above]] = above
        hops[relay] = NONE
    return _grafted(hops, root, np.flatnonzero(listed & ~seated), depth, graft_places)


def _grafted(hops: Hops, root: int, newcomers: Numbers, depth: int, places: Numbers) -> Hops:
    """Seat newcomers as leaves, under those above the last level with the fewest children."""
    level, load = levels(hops, root), loads(hops)
    hosts = np.flatnonzero((level > 0) & (level < depth))
    waiting = list(zip(load[hosts].tolist(), places[hosts].tolist(), hosts.tolist(), strict=True))
    heapq.heapify(waiting)
    for newcomer in newcomers[np.argsort(places[newcomers], kind="stable")]:
        hops[newcomer] = root
        if waiting:
            fewest, place, host = waiting[0]
            hops[newcomer] = host
            heapq.heapreplace(waiting, (fewest + 1, place, host))
    return hops


def loads(hops: Hops) -> Numbers:
    """Return how many relays each has under it."""
    found: Numbers = np.bincount(hops[(hops != NONE) & (hops < len(hops))], minlength=len(hops))
    return found
