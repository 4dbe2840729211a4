"""The repair of trees: how a tree changes as relays leave and join, by the planner's rules.

The same rules as `mend` and `graft` of `overlay.tree`: the seat of a relay that left goes to a leaf,
newcomers become leaves, all others stay.
"""

from __future__ import annotations

import heapq

import numpy as np
import numpy.typing as npt

from hushcast_protocol.overlay.tree import branching

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


def mended(
    hops: Hops, root: int, listed: Marks, kept: Marks, depth: int, places: Numbers, graft_places: Numbers
) -> Hops:
    """Return each relay's next hop once those not `kept` are out of a tree, and those `listed` are in.

    `root` is the next hop of the top relays. `places` and `graft_places` are two random orders of the relays,
    each relay's place: who takes a seat that is free, and who a newcomer.
    """
    hops = hops.copy()
    level = levels(hops, root)
    seated = level > 0
    gone = np.flatnonzero(seated & ~kept)
    gone = gone[np.argsort(places[gone], kind="stable")]
    for relay in gone[np.argsort(-level[gone], kind="stable")]:
        if not (hops == relay).any():
            hops[relay] = NONE
    leaves = np.flatnonzero(seated & kept & (loads(hops) == 0))
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
    return _grafted(hops, root, listed, np.flatnonzero(listed & ~seated), depth, graft_places)


def _grafted(hops: Hops, root: int, listed: Marks, newcomers: Numbers, depth: int, places: Numbers) -> Hops:
    """Seat newcomers as leaves, as `overlay.tree.graft` does; relays not `listed` are spare."""
    level, load = levels(hops, root), loads(hops)
    hosts = np.flatnonzero((level > 0) & (level < depth))
    width = branching(int((level > 0).sum()) + len(newcomers), depth)
    rooms = [(0 if listed[host] else 3, int(load[host]), int(places[host]), int(host)) for host in hosts]
    rooms.append((1, int((hops == root).sum()), 0, root))
    heapq.heapify(rooms)
    for newcomer in newcomers[np.argsort(places[newcomers], kind="stable")]:
        while rooms and rooms[0][1] >= width:
            heapq.heappop(rooms)
        if not rooms:
            break
        tier, children, place, host = rooms[0]
        heapq.heapreplace(rooms, (tier, children + 1, place, host))
        hops[newcomer] = host
        level[newcomer] = 1 if host == root else level[host] + 1
        if level[newcomer] < depth:
            heapq.heappush(rooms, (2, 0, int(places[newcomer]), int(newcomer)))
    return hops


def loads(hops: Hops) -> Numbers:
    """Return how many relays each has under it."""
    found: Numbers = np.bincount(hops[(hops != NONE) & (hops < len(hops))], minlength=len(hops))
    return found
