"""Installations: a subscription's tree for one day, turned into instructions and sealed parcels."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property

from hushcast_protocol.base.addresses import Address
from hushcast_protocol.base.hashes import LABEL
from hushcast_protocol.base.proof_of_work import ProofOfWork, mint
from hushcast_protocol.base.roster import Roster
from hushcast_protocol.base.secrets import LeaseSecret, Randomness, Seed
from hushcast_protocol.base.wire import RelayId
from hushcast_protocol.overlay.confirmations import expected
from hushcast_protocol.overlay.elements import ORIGIN, element
from hushcast_protocol.overlay.leases import (
    Install,
    Instruction,
    ToMailbox,
    ToRelay,
    Withdraw,
    bypass_token,
    give_consent,
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

PATIENCE_A_LEVEL = 20  # seconds that a relay awaits an answer for each level below: first contact takes 1–5 s


@dataclass(frozen=True)
class MailboxRoot:
    """The root is a mailbox: its key signs the consents, its address is where top relays send."""

    seed: Seed
    address: Address


@dataclass(frozen=True)
class ListedRoot:
    """The root is the subscriber's own relay, as published."""

    relay: RelayId


@dataclass(frozen=True)
class Installation:
    """One subscription on one day: under which root, along which tree, for which tokens.

    Messages enter the tree at any relay by one of the `entries`, and climb it by the `trunk`.
    """

    day: int
    root: MailboxRoot | ListedRoot
    tree: Tree
    trunk: bytes
    entries: tuple[bytes, ...]
    secret: LeaseSecret
    copy: int = 0
    """Which of its topic's shards the tree spans."""

    def install(self, profile: Profile, relay: RelayId) -> Install:
        """Return the instruction for `relay`: take from its children and from publishers, send upwards."""
        lease = lease_id(lease_word(self.secret, relay))
        above = self.tree.parents[relay]
        if above is not None:
            hop: ToRelay | ToMailbox = ToRelay(above)
        elif isinstance(self.root, MailboxRoot):
            hop = ToMailbox(give_consent(self.root.seed, self.root.address, relay, lease, self.day))
        else:
            hop = ToRelay(self.root.relay)
        mark = lease_mark(self.trunk, relay)
        return Install(lease, self.day, hop, self._elements(profile, relay), mark, self._bypass)

    def withdraw(self, relay: RelayId) -> Withdraw:
        """Return the instruction for `relay` to forget its lease."""
        return Withdraw(lease_word(self.secret, relay))

    @cached_property
    def _bypass(self) -> bytes:
        return bypass_token(self.secret)

    def _elements(self, profile: Profile, relay: RelayId) -> tuple[bytes, ...]:
        entries = (*self.entries, self._bypass) if profile.detours else self.entries
        elements = {element(profile, entry, relay, ORIGIN) for entry in entries}
        if below := self.tree.children.get(relay):
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
    instructions: Mapping[RelayId, Instruction],
    roster: Roster,
    epoch: int,
    randomness: Randomness,
) -> dict[RelayId, SealedBranch]:
    """Seal one instruction a relay layer by layer down the tree; return what is for the top relays.

    Each gets a word of its own, fresh each time: what confirms one parcel confirms no other.

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
        patience = min(levels[relay] * PATIENCE_A_LEVEL, MAX_PATIENCE)
        listed, instruction = roster.relays[relay], instructions[relay]
        stamp = _stamp(relay, instruction, listed.difficulty, epoch, randomness)
        parcel = Parcel(network, relay, epoch, instruction, patience, onward, words[relay], stamp)
        sealed[relay] = seal_parcel(parcel, listed.parcel_key, randomness)
    return {top: SealedBranch(sealed[top], awaited) for top, awaited in expected(tree, words).items()}


def _stamp(
    relay: RelayId, instruction: Instruction, difficulty: int, epoch: int, randomness: Randomness
) -> ProofOfWork | None:
    bits = price(instruction, difficulty)
    return mint(relay, epoch, instructed(instruction), bits, randomness) if bits else None


def _leaves_first(tree: Tree) -> list[RelayId]:
    ordered: list[RelayId] = list(tree.children.get(None, ()))
    for relay in ordered:
        ordered.extend(tree.children.get(relay, ()))
    ordered.reverse()
    return ordered
