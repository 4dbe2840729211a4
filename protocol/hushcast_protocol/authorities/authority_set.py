"""Who the authorities of a network are, where they are reached, how many agree, and by which rules."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated, Self

import msgspec

from hushcast_protocol.authorities.network_rules import (
    MAX_RULES_SIZE,
    NetworkRules,
    admission_of,
    cover_of,
    keeping_of,
    rules_of,
    shard_size_of,
)
from hushcast_protocol.authorities.seat_admission import OPEN, SeatAdmission
from hushcast_protocol.base.addresses import MAX_ADDRESS, parse_address
from hushcast_protocol.base.cover_terms import NO_COVER, CoverTerms
from hushcast_protocol.base.errors import DecodeError
from hushcast_protocol.base.keeping_rule import NOTHING_KEPT, KeepingRule
from hushcast_protocol.base.shard_count import SHARD_SIZE
from hushcast_protocol.base.versions import wires
from hushcast_protocol.base.versions.wires import NETWORK, OtherWire, WireNumber, WireRange
from hushcast_protocol.base.wire import Lasting, PublicKey

MAX_AUTHORITIES = 9  # messages grow with the cube; more than nine operators who never meet agree on nothing
MAX_SET = MAX_AUTHORITIES * (MAX_ADDRESS + 56) + MAX_RULES_SIZE + 64  # bytes of a set with its rules

Signers = tuple[tuple[PublicKey, ...], int]
"""The keys of a set, in ascending order, and how many of them have to sign."""


class AuthorityContact(Lasting, frozen=True, tag="authority/1"):
    """One authority: its key, and its address."""

    key: PublicKey
    address: Annotated[str, msgspec.Meta(max_length=MAX_ADDRESS)]

    def __post_init__(self) -> None:
        """Raise `ValueError` if the address has none of the forms of addresses."""
        try:
            parse_address(self.address)
        except DecodeError as error:
            raise ValueError(str(error)) from None


class Authorities(Lasting, frozen=True, tag="authorities"):
    """A network's directories in ascending order of keys, the signatures a head needs, its wire and rules."""

    members: Annotated[tuple[AuthorityContact, ...], msgspec.Meta(min_length=1, max_length=MAX_AUTHORITIES)]
    quorum: Annotated[int, msgspec.Meta(ge=1, le=MAX_AUTHORITIES)]
    """More than half of the members: of two quorums one member is in both."""
    wire: WireNumber
    """What all links of the network speak, and the insides of its heads are in."""
    rules: NetworkRules

    def __post_init__(self) -> None:
        """Raise `ValueError` for keys or rules out of order, or a quorum that is no majority."""
        if list(self.keys) != sorted(set(self.keys)):
            raise ValueError("authorities are listed once each, in ascending order of their keys")
        if not len(self.members) < 2 * self.quorum <= 2 * len(self.members):
            raise ValueError("a quorum is more than half of the authorities, and no more than all of them")
        names = [name for name, _ in self.rules]
        if names != sorted(set(names)):
            raise ValueError("rules are listed once each, in ascending order of their names")

    @classmethod
    def of(
        cls,
        members: Iterable[AuthorityContact],
        quorum: int,
        admission: SeatAdmission = OPEN,
        shard_size: int = SHARD_SIZE,
        keeping: KeepingRule = NOTHING_KEPT,
        cover: CoverTerms = NO_COVER,
    ) -> Self:
        """Return the set of these members, in whatever order; raises `ValueError` as the set itself.

        `shard_size` is of relays in the mean, in shards of which there are some where there are more than
        1.41 times as many; 0: one list, for ever.
        """
        ordered = tuple(sorted(members, key=lambda member: member.key))
        rules = rules_of(admission, shard_size, keeping, cover)
        return cls(ordered, quorum, wires.spoken().highest, rules)

    def instead_of(self, now: Authorities) -> Authorities:
        """Return this set as one that follows another: with its wire, and with those rules not known here."""
        rules = rules_of(self.admission, self.shard_size, self.keeping, self.cover, now.rules)
        return msgspec.structs.replace(self, wire=now.wire, rules=rules)

    def check_spoken(self) -> None:
        """Raise `OtherWire` where its wire is not spoken here."""
        if not self.is_spoken:
            raise OtherWire(WireRange(self.wire, self.wire), NETWORK)

    @property
    def is_spoken(self) -> bool:
        """Whether this program speaks its wire."""
        return self.wire in wires.spoken()

    @property
    def admission(self) -> SeatAdmission:
        """How newcomers are seated."""
        return admission_of(dict(self.rules))

    @property
    def shard_size(self) -> int:
        """Relays of a shard in the mean; 0: one list, for ever."""
        return shard_size_of(dict(self.rules))

    @property
    def keeping(self) -> KeepingRule:
        """What relays keep of what is published."""
        return keeping_of(dict(self.rules))

    @property
    def cover(self) -> CoverTerms:
        """Whether there is cover, and by which numbers."""
        return cover_of(dict(self.rules))

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
