"""The rule of HivePBAC, as its paper and its published program have it: to show what it does."""

from __future__ import annotations

import re
from collections.abc import Sequence

Tuple_ = tuple[frozenset[str], frozenset[str]]  # allowed and prohibited purposes


def compatible(purpose: str, eip: Tuple_) -> bool:
    """Section IV-A: it or an ancestor is allowed, and neither it nor an ancestor is prohibited."""
    levels = purpose.split("/")
    above = {"/".join(levels[:count]) for count in range(1, len(levels) + 1)}
    return bool(above & eip[0]) and not above & eip[1]


def united(reservations: Sequence[Tuple_]) -> Tuple_:
    """Section IV-D: allowed is what any reservation allows, prohibited what any prohibits."""
    return (
        frozenset().union(*(aip for aip, _ in reservations)),
        frozenset().union(*(pip for _, pip in reservations)),
    )


def restricted(first: Tuple_, *others: Tuple_) -> Tuple_:
    """Section V-C1, as the program does it: what is allowed is intersected, and the rest goes."""
    aip, pip = first
    for other, _ in others:
        aip &= other
    return aip, pip


def matches(wanted: str, topic: str) -> bool:
    """Section V-D: "basic string operations where possible and regular expressions where necessary"."""
    if wanted.endswith("/#") and "+" not in wanted:
        return topic.startswith(wanted[:-1])
    return re.fullmatch(wanted.replace("+", "[^/]+").replace("#", ".*"), topic) is not None


def spelled(text: str) -> str:
    """How wildcards come back out of a command's topic."""
    return text.replace("HASH", "#").replace("PLUS", "+")


class Store:
    """Section V-A: a new reservation overwrites, and one without purposes removes."""

    def __init__(self) -> None:
        self.held: dict[str, Tuple_] = {}

    def reserve(self, wanted: str, eip: Tuple_) -> None:
        if eip[0] or eip[1]:
            self.held[wanted] = eip
        else:
            self.held.pop(wanted, None)

    def allowed(self, topic: str, purpose: str) -> bool:
        found = [eip for wanted, eip in self.held.items() if matches(wanted, topic)]
        return not found or compatible(purpose, united(found))
