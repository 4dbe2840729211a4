"""Who the authorities of a network are, where they are reached, and how many of them have to agree."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated, Self

import msgspec

from hushcast_protocol.authorities.seat_admission import OPEN, SeatAdmission
from hushcast_protocol.base.addresses import MAX_ADDRESS, parse_address
from hushcast_protocol.base.errors import DecodeError
from hushcast_protocol.base.shard_count import MIN_SHARD_SIZE, SHARD_SIZE
from hushcast_protocol.base.wire import PublicKey, Wire

MAX_AUTHORITIES = 9  # messages grow with the cube; more than nine operators who never meet agree on nothing
MAX_SET = MAX_AUTHORITIES * (MAX_ADDRESS + 56) + 64  # bytes of a set with its rules

Signers = tuple[tuple[PublicKey, ...], int]
"""The keys of a set, in ascending order, and how many of them have to sign."""


class AuthorityContact(Wire, frozen=True, tag="authority/1"):
    """One authority: its key, and its address."""

    key: PublicKey
    address: Annotated[str, msgspec.Meta(max_length=MAX_ADDRESS)]

    def __post_init__(self) -> None:
        """Raise `ValueError` if the address has none of the forms of addresses."""
        try:
            parse_address(self.address)
        except DecodeError as error:
            raise ValueError(str(error)) from None


class Authorities(Wire, frozen=True, tag="authorities/2"):
    """A network's directories, in ascending order of keys, the signatures a head needs, and who is seated."""

    members: Annotated[tuple[AuthorityContact, ...], msgspec.Meta(min_length=1, max_length=MAX_AUTHORITIES)]
    quorum: Annotated[int, msgspec.Meta(ge=1, le=MAX_AUTHORITIES)]
    """More than half of the members: of two quorums one member is in both."""
    admission: SeatAdmission = OPEN
    shard_size: Annotated[int, msgspec.Meta(ge=0, le=SHARD_SIZE)] = SHARD_SIZE
    """Relays of a shard in the mean, where there are more than 1.41 times as many; 0: one list, for ever."""

    def __post_init__(self) -> None:
        """Raise `ValueError` for keys out of order, a quorum that is no majority, or too small shards."""
        if list(self.keys) != sorted(set(self.keys)):
            raise ValueError("authorities are listed once each, in ascending order of their keys")
        if not len(self.members) < 2 * self.quorum <= 2 * len(self.members):
            raise ValueError("a quorum is more than half of the authorities, and no more than all of them")
        if 0 < self.shard_size < MIN_SHARD_SIZE:
            raise ValueError(f"a shard has {MIN_SHARD_SIZE} relays in the mean, or more")

    @classmethod
    def of(
        cls,
        members: Iterable[AuthorityContact],
        quorum: int,
        admission: SeatAdmission = OPEN,
        shard_size: int = SHARD_SIZE,
    ) -> Self:
        """Return the set of these members, in whatever order; raises `ValueError` as the set itself."""
        return cls(tuple(sorted(members, key=lambda member: member.key)), quorum, admission, shard_size)

    @property
    def keys(self) -> tuple[PublicKey, ...]:
        """The keys, in ascending order."""
        return tuple(member.key for member in self.members)

    @property
    def signers(self) -> Signers:
        """Who signs, and how many have to: what is known from elsewhere of a set that a head shows."""
        return self.keys, self.quorum

    @property
    def rounds(self) -> int:
        """Rounds of signatures, n − q + 1: one more than there may be faulty authorities."""
        return len(self.members) - self.quorum + 1

    @property
    def majority(self) -> int:
        """The fewest that are more than half of all authorities, silent ones among them."""
        return len(self.members) // 2 + 1
