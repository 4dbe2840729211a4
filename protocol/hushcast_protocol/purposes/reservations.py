"""Where reservations are kept: a list, or a tree of topic levels (paper: section V-D).

The list is there to be compared with; `cached_reservations.py` remembers what a tree decided. A reservation
is for messages, whatever they are called: it is kept under all filters that match other names of them, too
(its *images*), and topics are asked for in one spelling.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence

from hushcast_protocol.base.budget import Budget
from hushcast_protocol.base.shares import Shares
from hushcast_protocol.mqtt.topics.filter_tree import FilterTree
from hushcast_protocol.mqtt.topics.topic_filters import intersects, matches, normal
from hushcast_protocol.purposes.clauses import Clause
from hushcast_protocol.purposes.purpose_decision import PurposeDecision, decide
from hushcast_protocol.purposes.purpose_names import Purpose

Images = Callable[[str], Sequence[str]]
"""Tells by which filters, in one spelling, all names of the messages are matched that a filter means."""

_Key = tuple[str, str]  # owner, and filter as it was reserved

MAX_RESERVATIONS = 20_000  # of all owners, each its share; some thousands for a fleet, 1 to 2 KB each


def one_spelling(wanted: str) -> Sequence[str]:
    """Return the one filter for the messages of a filter that has no other names."""
    return (normal(wanted),)


class Reservations(ABC):
    """The reservations of all owners, one for each owner and filter."""

    def __init__(self, images: Images = one_spelling) -> None:
        self._images = images
        self._held: dict[_Key, Clause] = {}
        self._places = Shares(MAX_RESERVATIONS)

    @abstractmethod
    def put(self, clause: Clause) -> None:
        """Keep a reservation in place of the owner's for the same filter, whether there is room or not."""

    def _hold(self, clause: Clause) -> _Key:
        """Return the key that it is kept by, for who keeps it in another place, too: it takes memory once."""
        key = (clause.owner, clause.filter)
        if key not in self._held:
            self._places.take(clause.owner)
        self._held[key] = clause
        return key

    def has_room_for(self, owner: str, wanted: str) -> bool:
        """Tell whether an owner may reserve a filter: it has reserved it, or its share is not full."""
        return (owner, wanted) in self._held or self._places.may_take(owner)

    def remove(self, owner: str, wanted: str) -> bool:
        """Take a reservation away; return whether there was one."""
        if self._held.pop((owner, wanted), None) is None:
            return False
        self._places.give_back(owner)
        return True

    @abstractmethod
    def covering(self, topic: str) -> Sequence[Clause]:
        """Return the reservations whose filter matches a topic name, in any order."""

    @abstractmethod
    def intersecting(self, wanted: str, budget: Budget | None = None) -> Sequence[Clause]:
        """Return the reservations whose filter has a topic in common with another, in any order.

        Each look at a level of them is a step of a budget; raises `BudgetExhausted`.
        """

    def decide(self, topic: str, purpose: Purpose | None, strict: bool = False) -> PurposeDecision:
        """Decide whether a topic's messages, without clauses of their own, may be used for a purpose."""
        return decide(self.covering(topic), purpose, strict)

    def get(self, owner: str, wanted: str) -> Clause | None:
        """Return an owner's reservation for a filter, `None` where there is none."""
        return self._held.get((owner, wanted))

    def __iter__(self) -> Iterator[Clause]:
        """Yield all reservations."""
        return iter(self._held.values())

    def __len__(self) -> int:
        """Count them."""
        return len(self._held)


class ReservationList(Reservations):
    """A list: every question looks at every reservation."""

    def __init__(self, images: Images = one_spelling) -> None:
        super().__init__(images)
        self._under: dict[_Key, Sequence[Clause]] = {}

    def put(self, clause: Clause) -> None:
        """Keep a reservation."""
        key = self._hold(clause)
        self._under[key] = [clause.under(image) for image in self._images(clause.filter)]

    def remove(self, owner: str, wanted: str) -> bool:
        """Take a reservation away; return whether there was one."""
        self._under.pop((owner, wanted), None)
        return super().remove(owner, wanted)

    def covering(self, topic: str) -> Sequence[Clause]:
        """Return those whose filter matches a topic name."""
        name = normal(topic)
        return [one for theirs in self._under.values() for one in theirs if matches(one.filter, name)]

    def intersecting(self, wanted: str, budget: Budget | None = None) -> Sequence[Clause]:
        """Return those whose filter has a topic in common with another; raises `BudgetExhausted`."""
        if budget is not None:
            budget.take(len(self))
        name = normal(wanted)
        return [one for theirs in self._under.values() for one in theirs if intersects(one.filter, name)]


class ReservationTree(Reservations):
    """A tree of levels: a question takes the steps of its topic."""

    def __init__(self, images: Images = one_spelling) -> None:
        super().__init__(images)
        # Most filters are reserved by one owner: a table for each takes memory, and time to go through.
        self._tree: FilterTree[Clause | dict[_Key, Clause]] = FilterTree()

    def put(self, clause: Clause) -> None:
        """Keep a reservation."""
        key = self._hold(clause)
        wanted = clause.filter
        for image in self._images(wanted):
            one = clause if image == wanted else clause.under(image)
            there = self._tree.put(image, one)
            if isinstance(there, dict):
                there[key] = one
                self._tree.put(image, there)
            elif there is not None and (theirs := (there.owner, there.of or there.filter)) != key:
                self._tree.put(image, {theirs: there, key: one})
            self._changed(image)

    def remove(self, owner: str, wanted: str) -> bool:
        """Take a reservation away; return whether there was one."""
        if not super().remove(owner, wanted):
            return False
        for image in self._images(wanted):
            there = self._tree.get(image)
            if isinstance(there, dict):
                del there[owner, wanted]
            if not isinstance(there, dict) or not there:
                self._tree.remove(image)
            self._changed(image)
        return True

    def covering(self, topic: str) -> Sequence[Clause]:
        """Return those whose filter matches a topic name."""
        found: list[Clause] = []
        for there in self._tree.match(normal(topic)):
            if isinstance(there, dict):
                found += there.values()
            else:
                found.append(there)
        return found

    def intersecting(self, wanted: str, budget: Budget | None = None) -> Sequence[Clause]:
        """Return those whose filter has a topic in common with another; raises `BudgetExhausted`."""
        found: list[Clause] = []
        for there in self._tree.intersecting(normal(wanted), budget):
            if budget is not None:
                budget.take(len(there) if isinstance(there, dict) else 1)
            if isinstance(there, dict):
                found += there.values()
            else:
                found.append(there)
        return found

    def _changed(self, image: str) -> None:
        """Hear that other reservations hold for what a filter matches."""
