"""The set that the operator of a directory configures: those that it agrees with, or that it is alone."""

from __future__ import annotations

from dataclasses import dataclass

import msgspec

from hushcast_protocol.authorities.authority_set import Authorities, AuthorityContact
from hushcast_protocol.base.addresses import Address, parse_address
from hushcast_protocol.base.wire import PublicKey


@dataclass(frozen=True)
class ConfiguredSet:
    """What the operator of an authority says of the others."""

    authorities: Authorities
    """Those of now; once heads were agreed on, what they say counts."""
    following: Authorities | None = None
    """Whom this one votes for instead."""
    first: int = 1
    """Relays that must be known before a first head is voted for."""
    wire: int | None = None
    """What the network should speak; `None`: what it does."""

    def at(self, key: PublicKey, address: Address) -> Authorities:
        """Return the authorities of now, wherever this one is."""
        return self.authorities

    def voted(self, now: Authorities, own: Authorities) -> Authorities | None:
        """Return whom to vote for instead of those of now, and what they speak; `None`: no others."""
        following = None if self.following is None else self.following.instead_of(now)
        return _towards(self.wire, now, following)

    def address_of(self, key: PublicKey) -> Address | None:
        """Return where the others look for the authority with this key."""
        sets = (self.authorities, self.following)
        members = (member for one in sets if one is not None for member in one.members)
        return next((parse_address(member.address) for member in members if member.key == key), None)


@dataclass(frozen=True)
class SetOfOne:
    """A directory that agrees with nobody: a set of one, wherever it is, whose network is never cut."""

    first: int = 1
    """Relays that must be known before the first head."""
    wire: int | None = None
    """What the network should speak; `None`: what it does."""

    def at(self, key: PublicKey, address: Address) -> Authorities:
        """Return the set of one with this key and address."""
        return Authorities.of([AuthorityContact(key, address)], 1, shard_size=0)

    def voted(self, now: Authorities, own: Authorities) -> Authorities | None:
        """Return the same set with its address of now (`own`), and what it speaks; `None` if that is so."""
        is_elsewhere = now.keys == own.keys and now.members != own.members
        moved = msgspec.structs.replace(now, members=own.members) if is_elsewhere else None
        return _towards(self.wire, now, moved)

    def address_of(self, key: PublicKey) -> Address | None:
        """Return nothing: it is wherever its key leads."""
        return None


def _towards(wire: int | None, now: Authorities, following: Authorities | None) -> Authorities | None:
    """Return what is voted for with the next wire on the way to one: a day has one, and the next is near."""
    if wire is None or wire == now.wire:
        return following
    step = 1 if wire > now.wire else -1
    return msgspec.structs.replace(following or now, wire=now.wire + step)
