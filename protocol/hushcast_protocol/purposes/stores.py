"""Where reservations are kept: a list, or a tree of topic levels (paper: section V-D).

The list is there to be compared with; `cached.py` remembers what a tree decided.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Protocol

from hushcast_protocol.base.errors import UsageError
from hushcast_protocol.mqtt.topics import intersects, matches
from hushcast_protocol.mqtt.tree import FilterTree
from hushcast_protocol.purposes.clauses import Clause
from hushcast_protocol.purposes.deciding import Decision, decide
from hushcast_protocol.purposes.names import Purpose

MAX_RESERVATIONS = 20_000  # of all owners; some thousands for a fleet, and each takes 1 to 2 KB
MAX_RESERVATIONS_OF_OWNER = 10_000  # so that no owner takes all places


class Reservations(Protocol):
    """The reservations of all owners, one for each owner and filter."""

    def put(self, clause: Clause) -> None:
        """Keep a reservation in place of the owner's for the same filter; raise `UsageError` at a bound."""

    def remove(self, owner: str, wanted: str) -> bool:
        """Take a reservation away; return whether there was one."""

    def covering(self, topic: str) -> Sequence[Clause]:
        """Return the reservations whose filter matches a topic name, in any order."""

    def intersecting(self, wanted: str) -> Sequence[Clause]:
        """Return the reservations whose filter has a topic in common with another, in any order."""

    def decide(self, topic: str, purpose: Purpose | None, strict: bool = False) -> Decision:
        """Decide whether a topic's messages, without clauses of their own, may be used for a purpose."""

    def get(self, owner: str, wanted: str) -> Clause | None:
        """Return an owner's reservation for a filter, `None` where there is none."""

    def __iter__(self) -> Iterator[Clause]:
        """Yield all reservations."""

    def __len__(self) -> int:
        """Count them."""


class _Held:
    """All reservations by owner and filter, within their bounds."""

    def __init__(self) -> None:
        self._held: dict[tuple[str, str], Clause] = {}
        self._owned: dict[str, int] = {}

    def put(self, clause: Clause) -> None:
        key = (clause.owner, clause.filter)
        if key not in self._held:
            count = self._owned.get(clause.owner, 0)
            if count >= MAX_RESERVATIONS_OF_OWNER:
                raise UsageError(
                    f"{MAX_RESERVATIONS_OF_OWNER} reservations of one owner are the most: "
                    "take some away, or reserve by wildcards"
                )
            if len(self._held) >= MAX_RESERVATIONS:
                raise UsageError(f"there are {MAX_RESERVATIONS} reservations, and more are not kept")
            self._owned[clause.owner] = count + 1
        self._held[key] = clause

    def remove(self, owner: str, wanted: str) -> bool:
        if self._held.pop((owner, wanted), None) is None:
            return False
        self._owned[owner] -= 1
        if not self._owned[owner]:
            del self._owned[owner]
        return True

    def get(self, owner: str, wanted: str) -> Clause | None:
        return self._held.get((owner, wanted))

    def __iter__(self) -> Iterator[Clause]:
        return iter(self._held.values())

    def __len__(self) -> int:
        return len(self._held)


class Flat(_Held):
    """A list: every question looks at every reservation."""

    def covering(self, topic: str) -> Sequence[Clause]:
        """Return those whose filter matches a topic name."""
        return [one for one in self if matches(one.filter, topic)]

    def intersecting(self, wanted: str) -> Sequence[Clause]:
        """Return those whose filter has a topic in common with another."""
        return [one for one in self if intersects(one.filter, wanted)]

    def decide(self, topic: str, purpose: Purpose | None, strict: bool = False) -> Decision:
        """Decide by those that cover the topic."""
        return decide(self.covering(topic), purpose, strict)


class Tree(_Held):
    """A tree of levels: a question takes the steps of its topic."""

    def __init__(self) -> None:
        super().__init__()
        self._tree: FilterTree[dict[str, Clause]] = FilterTree()

    def put(self, clause: Clause) -> None:
        """Keep a reservation; raise `UsageError` at a bound."""
        super().put(clause)
        owners = self._tree.get(clause.filter)
        if owners is None:
            owners = {}
            self._tree.put(clause.filter, owners)
        owners[clause.owner] = clause

    def remove(self, owner: str, wanted: str) -> bool:
        """Take a reservation away; return whether there was one."""
        if not super().remove(owner, wanted):
            return False
        owners = self._tree.get(wanted)
        assert owners is not None
        del owners[owner]
        if not owners:
            self._tree.remove(wanted)
        return True

    def covering(self, topic: str) -> Sequence[Clause]:
        """Return those whose filter matches a topic name."""
        return [one for owners in self._tree.match(topic) for one in owners.values()]

    def intersecting(self, wanted: str) -> Sequence[Clause]:
        """Return those whose filter has a topic in common with another."""
        return [one for owners in self._tree.intersecting(wanted) for one in owners.values()]

    def decide(self, topic: str, purpose: Purpose | None, strict: bool = False) -> Decision:
        """Decide by those that cover the topic."""
        return decide(self.covering(topic), purpose, strict)
