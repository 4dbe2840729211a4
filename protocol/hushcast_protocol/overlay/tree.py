"""The tree planner: a random balanced spanning tree of all relays under one root (VB §4.2).

Needs the standard library alone, so that analyses can plan trees without the daemon's dependencies.
"""

from __future__ import annotations

import hashlib
import heapq
import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

RelayKey = bytes
_PERSON = b"hc.tree"

MOST_LEAVING = 4  # at most one in so many relays of a tree is removed at once; the others wait an epoch
LEAST_LEAVING = 4  # relays that may be removed at once in any case
STRAINED = 2.0  # strain from which on a tree is drawn anew for the next day

_HOST, _ROOT, _NEWCOMER, _SPARE = range(4)  # where newcomers are seated first


@dataclass(frozen=True)
class Tree:
    """Each relay's next hop on the way up; `None` is the root itself, which is not among the relays."""

    parents: Mapping[RelayKey, RelayKey | None]

    @cached_property
    def children(self) -> Mapping[RelayKey | None, Sequence[RelayKey]]:
        """The relays directly under each relay that has some, and under the root (`None`)."""
        below: dict[RelayKey | None, list[RelayKey]] = {}
        for relay, parent in self.parents.items():
            below.setdefault(parent, []).append(relay)
        return below

    @cached_property
    def levels(self) -> Mapping[RelayKey, int]:
        """The number of transmissions from each relay to the root."""
        found: dict[RelayKey, int] = dict.fromkeys(self.children.get(None, ()), 1)
        reached = list(found)
        for relay in reached:
            for child in self.children.get(relay, ()):
                found[child] = found[relay] + 1
                reached.append(child)
        return found

    @property
    def is_whole(self) -> bool:
        """Whether every relay's way ends at the root: none goes round, none leads out of the tree."""
        return len(self.levels) == len(self.parents)

    def path_length(self, relay: RelayKey) -> int:
        """Return the number of transmissions from `relay` to the root."""
        steps, above = 1, self.parents[relay]
        while above is not None:
            steps, above = steps + 1, self.parents[above]
        return steps

    def way(self, relay: RelayKey) -> tuple[RelayKey, ...]:
        """Return the relays that a message from `relay` passes on its way to the root, `relay` first."""
        passed = [relay]
        while (above := self.parents[passed[-1]]) is not None:
            passed.append(above)
        return tuple(passed)

    def only(self, relays: Iterable[RelayKey]) -> Tree:
        """Return the tree of some of the relays; those whose next hop is not among them come to the top."""
        kept = set(relays)
        return Tree(
            {
                relay: parent if parent in kept else None
                for relay, parent in self.parents.items()
                if relay in kept
            }
        )


def shuffled(relays: Iterable[RelayKey], seed: bytes) -> list[RelayKey]:
    """Return the relays in an order that is uniform for a uniform `seed` (16 to 64 bytes), and replays."""
    return sorted(relays, key=lambda relay: hashlib.blake2b(relay, key=seed, person=_PERSON).digest())


def branching(relays: int, depth: int) -> int:
    """Return the smallest number of children with which `depth` levels seat that many relays."""
    width = 1
    while sum(width**level for level in range(1, depth + 1)) < relays:
        width += 1
    return width


def plan(relays: Iterable[RelayKey], depth: int, seed: bytes) -> Tree:
    """Plan a tree of `depth` levels (1 or more) over all `relays`, drawn by `seed` (16 to 64 bytes).

    Level d holds b^d relays, b the smallest number that suffices; the last level holds the rest. The children
    of two relays of one level differ by one at most.
    """
    if depth < 1:
        raise ValueError("a tree has at least one level")
    waiting = shuffled(relays, seed)
    width = branching(len(waiting), depth)
    parents: dict[RelayKey, RelayKey | None] = {}
    level: list[RelayKey | None] = [None]
    for number in range(1, depth + 1):
        size = width**number if number < depth else len(waiting)
        seated, waiting = waiting[:size], waiting[size:]
        for index, relay in enumerate(seated):
            parents[relay] = level[index % len(level)]
        level = list(seated)
    return Tree(parents)


def mend(tree: Tree, relays: Iterable[RelayKey], shaky: Iterable[RelayKey], seed: bytes) -> Tree:
    """Remove relays that are not among `relays` from a tree, and make `shaky` ones leaves.

    Each of them that is not a leaf gives its seat to a leaf; a shaky one gets that leaf's seat instead. All
    others keep their seats. If no leaf is left, the children of a removed relay go to its next hop.
    """
    present, weak = set(relays), set(shaky)
    parents = dict(tree.parents)
    below: _Below = {relay: set(tree.children.get(relay, ())) for relay in [None, *parents]}
    order = shuffled(parents, seed)
    lost = [relay for relay in order if relay not in present or relay in weak]
    for relay in sorted(lost, key=tree.path_length, reverse=True):
        if relay not in present and not below[relay]:
            _take_out(relay, parents, below)
    leaves = [relay for relay in order if relay in present and relay not in weak and not below[relay]]
    for relay in sorted(lost, key=tree.path_length):
        if relay in parents and below[relay] and leaves:
            _exchange(relay, leaves.pop(), parents, below)
        if relay in parents and relay not in present:
            _take_out(relay, parents, below)
    return Tree(parents)


_Parents = dict[RelayKey, RelayKey | None]
_Below = dict[RelayKey | None, set[RelayKey]]


def _take_out(relay: RelayKey, parents: _Parents, below: _Below) -> None:
    """Remove a relay; its children go to its next hop."""
    above = parents.pop(relay)
    below[above].remove(relay)
    for child in below.pop(relay):
        parents[child] = above
        below[above].add(child)


def _exchange(relay: RelayKey, leaf: RelayKey, parents: _Parents, below: _Below) -> None:
    """Swap the seats of a relay and a leaf."""
    above, host = parents[relay], parents[leaf]
    if host == relay:
        host = leaf
    for child in below[relay] - {leaf}:
        parents[child] = leaf
    for one in (relay, leaf):
        below[parents[one]].remove(one)
    below[leaf], below[relay] = below[relay] - {leaf}, set()
    parents[leaf], parents[relay] = above, host
    below[above].add(leaf)
    below[host].add(relay)


def leaving(tree: Tree, kept: Collection[RelayKey], seed: bytes) -> set[RelayKey]:
    """Return the relays of a tree to remove now: those that are not `kept`, but not too many at once."""
    gone = [relay for relay in shuffled(tree.parents, seed) if relay not in kept]
    return set(gone[: max(LEAST_LEAVING, len(tree.parents) // MOST_LEAVING)])


def graft(
    tree: Tree,
    newcomers: Iterable[RelayKey],
    hosts: Iterable[RelayKey],
    depth: int,
    seed: bytes,
    spare: Iterable[RelayKey] = (),
) -> Tree:
    """Seat newcomers as leaves of a tree, under those `hosts` above the last level with the fewest children.

    No relay gets more children than `plan` would give for as many relays. When the hosts are full, newcomers
    go under the root (with the same limit), then under other newcomers, then under the `spare` relays of the
    tree. A newcomer for whom there is no room gets no seat.
    """
    late = shuffled(newcomers, seed)
    parents = dict(tree.parents)
    width = branching(len(parents) + len(late), depth)
    levels = tree.levels
    rooms: list[tuple[int, int, int, int, RelayKey | None]] = [
        (tier, len(tree.children.get(relay, ())), place, levels[relay], relay)
        for tier, relays in ((_HOST, hosts), (_SPARE, spare))
        for place, relay in enumerate(shuffled(relays, seed))
        if levels[relay] < depth
    ]
    rooms.append((_ROOT, len(tree.children.get(None, ())), 0, 0, None))
    heapq.heapify(rooms)
    for place, newcomer in enumerate(late):
        while rooms and rooms[0][1] >= width:
            heapq.heappop(rooms)
        if not rooms:
            break
        tier, load, order, level, host = rooms[0]
        heapq.heapreplace(rooms, (tier, load + 1, order, level, host))
        parents[newcomer] = host
        if level + 1 < depth:
            heapq.heappush(rooms, (_NEWCOMER, 0, place, level + 1, newcomer))
    return Tree(parents)


def strain(tree: Tree, depth: int) -> float:
    """Return how far a tree deviates from `plan` for as many relays: 1 as planned, infinite if too deep.

    Otherwise n if the root has 1/n of the children that it should have, or some relay n times as many.
    """
    if not tree.parents:
        return 1.0
    if max(tree.levels.values()) > depth:
        return math.inf
    width = branching(len(tree.parents), depth)
    return max(width / len(tree.children[None]), max(map(len, tree.children.values())) / width)
