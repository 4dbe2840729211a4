"""Installations: a subscription's tree for one day, turned into instructions and sealed parcels."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from hushcast_protocol.addresses import Address
from hushcast_protocol.leases import (
    Extend,
    Install,
    Instruction,
    ToMailbox,
    ToRelay,
    Withdraw,
    give_consent,
    lease_id,
    lease_word,
)
from hushcast_protocol.parcels import Onward, Parcel, seal_parcel
from hushcast_protocol.profile import Profile
from hushcast_protocol.roster import Roster
from hushcast_protocol.secrets import LeaseSecret, Randomness, Seed
from hushcast_protocol.tokens import ORIGIN, element
from hushcast_protocol.tree import Tree
from hushcast_protocol.wire import RelayId


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
    """One subscription on one day: under which root, along which tree, for which tokens."""

    day: int
    root: MailboxRoot | ListedRoot
    tree: Tree
    tokens: tuple[bytes, ...]
    secret: LeaseSecret

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
        hops = (ORIGIN, *self.tree.children.get(relay, ()))
        return Install(lease, self.day, hop, self._elements(profile, relay, hops))

    def extend(self, profile: Profile, relay: RelayId, newcomers: Iterable[RelayId]) -> Extend:
        """Return the instruction for `relay` to take from newcomers, too."""
        return Extend(lease_word(self.secret, relay), self._elements(profile, relay, newcomers))

    def withdraw(self, relay: RelayId) -> Withdraw:
        """Return the instruction for `relay` to forget its lease."""
        return Withdraw(lease_word(self.secret, relay))

    def _elements(self, profile: Profile, relay: RelayId, hops: Iterable[RelayId]) -> tuple[bytes, ...]:
        # Sorted, as hashes are, so that the order tells nothing and equal installs are equal bytes.
        return tuple(sorted({element(profile, token, relay, hop) for hop in hops for token in self.tokens}))


def seal_down(
    tree: Tree,
    instructions: Mapping[RelayId, Instruction],
    roster: Roster,
    epoch: int,
    randomness: Randomness,
) -> dict[RelayId, bytes]:
    """Seal one instruction a relay layer by layer down the tree; return the parcels of the top relays.

    All relays of the tree have an instruction and stand in the roster.
    """
    sealed: dict[RelayId, bytes] = {}
    for relay in _leaves_first(tree):
        onward = tuple(Onward(child, sealed.pop(child)) for child in tree.children.get(relay, ()))
        sealed[relay] = seal_single(relay, instructions[relay], roster, epoch, randomness, onward)
    return sealed


def seal_single(
    relay: RelayId,
    instruction: Instruction,
    roster: Roster,
    epoch: int,
    randomness: Randomness,
    onward: tuple[Onward, ...] = (),
) -> bytes:
    """Seal one instruction to one relay of the roster."""
    parcel = Parcel(roster.network.id, relay, epoch, instruction, onward)
    return seal_parcel(parcel, roster.relays[relay].parcel_key, randomness)


def _leaves_first(tree: Tree) -> list[RelayId]:
    ordered: list[RelayId] = list(tree.children.get(None, ()))
    for relay in ordered:
        ordered.extend(tree.children.get(relay, ()))
    ordered.reverse()
    return ordered
