"""Installations: a subscription's tree for one day, turned into instructions and sealed parcels."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property

from hushcast_protocol.base.crypto.hashes import LABEL, Domain, digest
from hushcast_protocol.base.crypto.proof_of_work import ProofOfWork, mint
from hushcast_protocol.base.crypto.secrets import LeaseSecret, Randomness, Seed
from hushcast_protocol.base.roster import Roster
from hushcast_protocol.base.versions.translations import UNCHANGED, Translation
from hushcast_protocol.base.wire import RelayId
from hushcast_protocol.overlay.box_frames import Hold
from hushcast_protocol.overlay.confirmations import expected
from hushcast_protocol.overlay.elements import ORIGIN, element
from hushcast_protocol.overlay.host_cards import HostCard
from hushcast_protocol.overlay.lane_holds import LaneHold
from hushcast_protocol.overlay.leases import (
    MAX_ELEMENTS,
    Install,
    Instruction,
    ToHost,
    ToListedHost,
    ToRelay,
    Withdraw,
    bypass_token,
    lease_id,
    lease_mark,
    lease_word,
)
from hushcast_protocol.overlay.parcels import (
    MAX_PATIENCE,
    OnwardParcel,
    Parcel,
    instructed,
    price,
    seal_parcel,
)
from hushcast_protocol.overlay.profile import Profile
from hushcast_protocol.overlay.tree import Tree

_BOX = b"box"  # what a lease for a box is told by from the one that its host has as a relay of the tree


@dataclass(frozen=True)
class ListedRoot:
    """The root is the subscriber's own relay, as published."""

    relay: RelayId


@dataclass(frozen=True)
class HostRoot:
    """The root is a host, which keeps the box with this key, and has no seat in the tree itself."""

    box: Seed
    relay: RelayId

    def bare_hold(self, day: int, unused: bytes) -> Hold:
        """Return a hold that makes the box and brings nothing: of an element (16 bytes) nobody sends by."""
        key, of_day = self.box.reveal(), day.to_bytes(8, "big")
        word = digest(Domain.LEASE_WORD, self.relay, _BOX, of_day, key=key, size=LABEL)
        return Hold(0, lease_id(word), day, (unused,), (), None)


InstallationRoot = ListedRoot | HostRoot


@dataclass(frozen=True)
class Installation:
    """One subscription on one day: under which root, along which tree, for which tokens.

    Messages enter the tree at any relay by one of the `entries`, and climb it by the `trunk`.
    """

    day: int
    root: InstallationRoot
    tree: Tree
    trunk: bytes
    entries: tuple[bytes, ...]
    secret: LeaseSecret
    copy: int = 0
    """Which of its topic's shards the tree spans."""

    def install(self, profile: Profile, relay: RelayId, card: HostCard | None = None) -> Install:
        """Return the instruction for `relay`: take from its children and from publishers, send upwards.

        Where a host is the root, `card` is its own; without one it is a relay that all list.
        """
        lease = lease_id(lease_word(self.secret, relay))
        above = self.tree.parents[relay]
        if above is not None:
            hop: ToRelay | ToHost | ToListedHost = ToRelay(above)
        elif isinstance(self.root, HostRoot):
            hop = ToListedHost(self.root.relay) if card is None else ToHost(card)
        else:
            hop = ToRelay(self.root.relay)
        mark = lease_mark(self.trunk, relay)
        elements = self._elements(profile, relay, self.tree.children.get(relay, ()))
        return Install(lease, self.day, hop, elements, mark, self._bypass)

    def hold(self, profile: Profile, former: Iterable[RelayId] = ()) -> Hold:
        """Return what the host is asked for: to take from publishers and top relays for the box.

        `former` are those that stood at the top: messages may wait there for this host, or they have not
        heard yet that they do not. The first of them count, as far as there is room. The frame has neither
        number nor stamp yet.
        """
        assert isinstance(self.root, HostRoot)
        lease = lease_id(
            digest(Domain.LEASE_WORD, self.root.relay, _BOX, key=self.secret.reveal(), size=LABEL)
        )
        tops = list(dict.fromkeys([*self.tree.children.get(None, ()), *former]))
        tops = tops[: MAX_ELEMENTS - len(self.entries) - 1]
        elements = self._elements(profile, self.root.relay, tops)
        return Hold(0, lease, self.day, elements, tuple(sorted(tops)), None)

    def withdraw(self, relay: RelayId) -> Withdraw:
        """Return the instruction for `relay` to forget its lease."""
        return Withdraw(lease_word(self.secret, relay))

    @cached_property
    def _bypass(self) -> bytes:
        return bypass_token(self.secret)

    def _elements(self, profile: Profile, relay: RelayId, below: Iterable[RelayId]) -> tuple[bytes, ...]:
        entries = (*self.entries, self._bypass) if profile.detours else self.entries
        elements = {element(profile, entry, relay, ORIGIN) for entry in entries}
        elements.update([element(profile, self.trunk, relay, child) for child in below])
        # Sorted, as hashes are, so that the order tells nothing and equal installs are equal bytes.
        return tuple(sorted(elements))


@dataclass(frozen=True)
class SealedBranch:
    """The parcel for a relay at the top of a tree, around those for all relays below it."""

    sealed: bytes
    _awaited: Mapping[bytes, RelayId] = field(repr=False)

    def confirmed(self, confirmations: Iterable[bytes]) -> set[RelayId]:
        """Return the relays that confirm by an answer to this parcel; all else in it counts as nothing."""
        return {self._awaited[one] for one in confirmations if one in self._awaited}


def seal_down(
    tree: Tree,
    instructions: Mapping[RelayId, Instruction | LaneHold | None],
    roster: Roster,
    epoch: int,
    randomness: Randomness,
    by: Translation = UNCHANGED,
) -> dict[RelayId, SealedBranch]:
    """Seal one instruction a relay layer by layer down the tree; return what is for the top relays.

    `by` is of the wire that the network speaks. Each gets a word of its own, fresh each time: what confirms
    one parcel confirms no other.

    All relays of the tree have an instruction and stand in the roster. Those that ask for stamps get one
    each, usually by 2^16 tries a relay or less (`proof_of_work.inside`): call it from a worker thread.
    """
    sealed: dict[RelayId, bytes] = {}
    levels: dict[RelayId, int] = {}
    network = roster.network.id
    words = {relay: randomness(LABEL) for relay in tree.parents}
    for relay in _leaves_first(tree):
        below = tree.children.get(relay, ())
        levels[relay] = 1 + max([levels[child] for child in below]) if below else 0
        onward = tuple([OnwardParcel(child, sealed.pop(child)) for child in below])
        patience = min(levels[relay] * by.manner.patience_a_level, MAX_PATIENCE)
        listed, instruction = roster.relays[relay], instructions[relay]
        stamp = _stamp(relay, instruction, listed.difficulty, epoch, randomness)
        parcel = Parcel(network, relay, epoch, instruction, patience, onward, words[relay], stamp)
        sealed[relay] = seal_parcel(parcel, listed.parcel_key, randomness, by)
    return {top: SealedBranch(sealed[top], awaited) for top, awaited in expected(tree, words).items()}


def seal_through(
    host: RelayId,
    tree: Tree,
    instructions: Mapping[RelayId, Instruction],
    roster: Roster,
    epoch: int,
    randomness: Randomness,
    by: Translation = UNCHANGED,
) -> dict[RelayId, SealedBranch]:
    """Seal as `seal_down`, the parcel of each top relay inside one for the host, which has but to pass it on.

    The host has no seat in the tree, and stands in the roster. What confirms it counts for none of the tree.
    """
    below: dict[RelayId, dict[RelayId, RelayId | None]] = {}
    for relay, above in tree.parents.items():
        seats = below.setdefault(tree.way(relay)[-1], {host: None})
        seats[relay] = host if above is None else above
    told = {**instructions, host: None}
    return {
        top: seal_down(Tree(seats), told, roster, epoch, randomness, by)[host] for top, seats in below.items()
    }


def _stamp(
    relay: RelayId,
    instruction: Instruction | LaneHold | None,
    difficulty: int,
    epoch: int,
    randomness: Randomness,
) -> ProofOfWork | None:
    bits = price(instruction, difficulty)
    return mint(relay, epoch, instructed(instruction), bits, randomness) if bits else None


def _leaves_first(tree: Tree) -> list[RelayId]:
    ordered: list[RelayId] = list(tree.children.get(None, ()))
    for relay in ordered:
        ordered.extend(tree.children.get(relay, ()))
    ordered.reverse()
    return ordered
