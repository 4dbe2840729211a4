"""Seating: the places of a balanced tree, the same in every tree of one size; only who sits there is not."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Literal

from hushcast_protocol.overlay.tree import branching

Shape = Literal["even", "full"]


@dataclass(frozen=True)
class Seating:
    """Places 0, 1, … of a tree of `depth` levels, level after level, over so many `relays`.

    `even` is the shape of `overlay.tree.plan`: the children of two relays of a level differ by one
    at most. Under `full` each relay takes b children while there are relays left. With `hosted` place 0 is a
    host's, above the levels of all others.
    """

    relays: int
    depth: int
    shape: Shape = "even"
    hosted: bool = False

    @property
    def width(self) -> int:
        """The branching factor b: how many are at the top, in the first places, or after a host's."""
        return branching(self.relays - self.hosted, self.depth)

    @cached_property
    def parents(self) -> list[int]:
        """The place above each place; -1 is the root."""
        found: list[int] = [-1] * self.hosted
        level = [self.hosted - 1]
        while len(found) < self.relays:
            size = min(len(level) * self.width, self.relays - len(found))
            if self.shape == "even":
                above = [level[index % len(level)] for index in range(size)]
            else:
                above = [level[index // self.width] for index in range(size)]
            level = list(range(len(found), len(found) + size))
            found += above
        return found

    @cached_property
    def children(self) -> list[int]:
        """How many children each place has."""
        found = [0] * self.relays
        for above in self.parents:
            if above >= 0:
                found[above] += 1
        return found

    @cached_property
    def paths(self) -> list[list[int]]:
        """The places from each place up to the top, itself included."""
        found: list[list[int]] = []
        for place, above in enumerate(self.parents):
            found.append([place, *(found[above] if above >= 0 else ())])
        return found
