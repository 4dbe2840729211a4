"""Covers: the fewest keys that open a message for the purposes it is allowed for, and for no other.

Each purpose has two keys, `whole` for itself and all below it, `alone` for exactly itself. What a message is
allowed for falls into subtrees that are allowed as a whole, and single purposes with something prohibited
below: the complete subtrees of Naor, Naor and Lotspiech (2001), on the vocabulary's tree in place of a binary
one.
"""

from __future__ import annotations

from collections.abc import Iterable, Set
from typing import NamedTuple

from hushcast_protocol.purposes.clauses import Clause
from hushcast_protocol.purposes.purpose_decision import decide
from hushcast_protocol.purposes.purpose_names import Purpose, ancestors
from hushcast_protocol.purposes.vocabulary import Vocabulary


class CoverElement(NamedTuple):
    """A key by its place in the tree."""

    purpose: Purpose
    whole: bool
    """Whether it is for all below the purpose, too."""


def cover(aip: Iterable[Purpose], pip: Iterable[Purpose], vocabulary: Vocabulary) -> tuple[CoverElement, ...]:
    """Return the cover of one clause: what is in `aip` or below, less what is in `pip` or below.

    Raises `UsageError` for a purpose that is not in the vocabulary: there is no key for it.
    """
    return cover_of(allowed_by(aip, pip, vocabulary), vocabulary)


def allowed_by(aip: Iterable[Purpose], pip: Iterable[Purpose], vocabulary: Vocabulary) -> frozenset[Purpose]:
    """Return the purposes that one clause allows; raise `UsageError` as `cover`."""
    allowing, prohibiting = set(aip), set(pip)
    for purpose in sorted(allowing | prohibiting):
        vocabulary.check(purpose)
    return frozenset(
        purpose
        for purpose in vocabulary
        if not allowing.isdisjoint(ancestors(purpose)) and prohibiting.isdisjoint(ancestors(purpose))
    )


def cover_by(clauses: Iterable[Clause], strict: bool, vocabulary: Vocabulary) -> tuple[CoverElement, ...]:
    """Return the cover of what the clauses that reach a message allow, of all owners, by `decide`.

    They may name purposes that the vocabulary has not: what is prohibited below one that it has stays
    prohibited for a reader whom a later version knows.
    """
    found = tuple(clauses)
    named = {above for one in found for each in one.aip | one.pip for above in ancestors(each)}
    purposes = (*vocabulary, *(named - frozenset(vocabulary)))
    allowed = {purpose for purpose in purposes if decide(found, purpose, strict).allowed}
    return tuple(one for one in cover_of(allowed, purposes) if one.purpose in vocabulary)


def cover_of(allowed: Set[Purpose], tree: Iterable[Purpose]) -> tuple[CoverElement, ...]:
    """Return the fewest elements that are for exactly these purposes of a tree, whatever rule allowed them.

    `tree` is a vocabulary, or any purposes with all that are above them.
    """
    purposes = tuple(tree)
    # Where something at or below is not allowed; an ancestor of such a purpose is never whole.
    broken = {one for purpose in purposes if purpose not in allowed for one in ancestors(purpose)}
    found = []
    for purpose in purposes:
        if purpose not in allowed:
            continue
        if purpose in broken:
            found.append(CoverElement(purpose, False))
        elif (above := ancestors(purpose)[1:2]) == () or above[0] in broken:
            found.append(CoverElement(purpose, True))
    return tuple(found)


def granted(purpose: Purpose) -> tuple[CoverElement, ...]:
    """Return the elements whose keys a reader for a purpose has: nine at most."""
    return (*(CoverElement(one, True) for one in ancestors(purpose)), CoverElement(purpose, False))
