"""Letter parcels: a tree's instructions cut into parcels that fit letters, each along the tree.

No relay learns of another by it than those that it stands beside in the tree anyway: what does not fit with
those above is in a parcel of its own for the same relay above, which then has but to pass it on.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence, Set
from dataclasses import dataclass

from hushcast_protocol.base.crypto.secrets import Randomness
from hushcast_protocol.base.errors import Refusal
from hushcast_protocol.base.roster import Roster
from hushcast_protocol.base.versions.translations import UNCHANGED, Translation
from hushcast_protocol.base.wire import RelayId, encode
from hushcast_protocol.overlay.installations import seal_down
from hushcast_protocol.overlay.lane_holds import LaneHold
from hushcast_protocol.overlay.leases import Instruction
from hushcast_protocol.overlay.tree import Tree, branching

PARCEL_ROOM = 3_700  # bytes of a sealed parcel in a letter; the others say whom it is for
# Bytes of a sealed parcel beside its instruction, at most: seal, what binds it, word, stamp.
_BESIDE = 190
_USUAL = 420  # bytes of a relay's own part in one, as trees without a condition have it
_ONWARD = 50  # bytes, at most, that a parcel takes besides in the one that it is passed on with


@dataclass(frozen=True, slots=True)
class LetterParcel:
    """Which relays one parcel tells, and by whose hands."""

    shape: Tree
    """One relay at the top, to which the parcel is handed."""
    told: frozenset[RelayId]
    """Those that find an instruction in it."""

    @property
    def top(self) -> RelayId:
        """To whom it is handed."""
        return self.shape.children[None][0]

    def among(self, listed: Set[RelayId]) -> LetterParcel:
        """Return what is left of it where some relays are not listed; raise `Refusal` where nothing is."""
        way = self.shape.way
        kept = {relay for relay in self.shape.parents if set(way(relay)) <= listed}
        if not self.told & kept:
            raise Refusal("the relays that a letter was to tell are not listed")
        return LetterParcel(self.shape.only(kept), self.told & kept)

    def sealed(
        self,
        instructions: Mapping[RelayId, Instruction | LaneHold],
        roster: Roster,
        epoch: int,
        randomness: Randomness,
        by: Translation = UNCHANGED,
    ) -> bytes:
        """Seal it for an epoch, as `seal_down`; raise `Refusal` where it does not fit after all."""
        told = {relay: instructions[relay] if relay in self.told else None for relay in self.shape.parents}
        sealed = seal_down(self.shape, told, roster, epoch, randomness, by)[self.top].sealed
        if len(sealed) > PARCEL_ROOM:
            raise Refusal("a parcel does not fit a letter")
        return sealed


@dataclass(frozen=True, slots=True)
class _Piece:
    size: int
    told: tuple[RelayId, ...]


def letters_of(relays: int, depth: int) -> int:
    """Return how many letters a tree over so many relays takes, about: with a few values of a condition."""
    tops = branching(relays, depth)
    return tops * max(1, -(-relays * _USUAL // (tops * PARCEL_ROOM)))


def letter_parcels(
    tree: Tree, relays: Collection[RelayId], instructions: Mapping[RelayId, Instruction]
) -> list[LetterParcel]:
    """Cut what is to be told to some relays of a tree into parcels that fit letters.

    The first parcel of each relay comes before the second of any: those that go in one round are for several.
    Raises `Refusal` where one instruction alone does not fit.
    """
    waiting: dict[RelayId, list[_Piece]] = {}
    parcels: list[tuple[RelayId, _Piece]] = []
    for relay in sorted(tree.parents, key=lambda one: -tree.levels[one]):
        own = _BESIDE
        if relay in relays:
            own += len(encode(instructions[relay]))
        if own > PARCEL_ROOM:
            raise Refusal("a condition has too many values to be told in a letter")
        bins = _packed(_Piece(own, (relay,) if relay in relays else ()), waiting.pop(relay, []))
        first, *others = [one for one in bins if one.told] or [_Piece(0, ())]
        parcels += [(relay, one) for one in others]
        above = tree.parents[relay]
        if first.told and (above is None or first.size + _ONWARD + _BESIDE > PARCEL_ROOM):
            parcels.append((relay, first))
        elif first.told and above is not None:
            waiting.setdefault(above, []).append(first)
    numbers: Counter[RelayId] = Counter()
    in_turn: list[tuple[int, LetterParcel]] = []
    for relay, one in parcels[::-1]:
        numbers[relay] += 1
        in_turn.append((numbers[relay], LetterParcel(_shape(tree, relay, one.told), frozenset(one.told))))
    return [parcel for _, parcel in sorted(in_turn, key=lambda one: one[0])]


def _packed(own: _Piece, below: Sequence[_Piece]) -> list[_Piece]:
    """Put what is for below into as few parcels for one relay as fit, with its own instruction first."""
    bins = [own]
    for piece in sorted(below, key=lambda one: -one.size):
        size = piece.size + _ONWARD
        for number, held in enumerate(bins):
            if held.size + size <= PARCEL_ROOM:
                bins[number] = _Piece(held.size + size, held.told + piece.told)
                break
        else:
            bins.append(_Piece(_BESIDE + size, piece.told))
    return bins


def _shape(tree: Tree, top: RelayId, told: Collection[RelayId]) -> Tree:
    """Return the ways from a relay down to those that are told."""
    parents: dict[RelayId, RelayId | None] = {top: None}
    for relay in told:
        for one in tree.way(relay):
            if one == top:
                break
            parents[one] = tree.parents[one]
    return Tree(parents)
