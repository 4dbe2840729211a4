"""Who the authorities of a network are, and how many of them have to agree."""

from __future__ import annotations

from typing import Annotated

import msgspec

from hushcast_protocol.base.hashes import Domain, digest
from hushcast_protocol.base.wire import PublicKey, Wire, encode

MAX_AUTHORITIES = 9  # messages grow with the cube; more than nine operators who never meet agree on nothing


class Authorities(Wire, frozen=True, tag="authorities/1"):
    """The keys of a network's directories, in ascending order, and how many signatures a head needs."""

    keys: Annotated[tuple[PublicKey, ...], msgspec.Meta(min_length=1, max_length=MAX_AUTHORITIES)]
    quorum: Annotated[int, msgspec.Meta(ge=1, le=MAX_AUTHORITIES)]
    """More than half of the keys: of two quorums one member is in both."""

    def __post_init__(self) -> None:
        """Raise `ValueError` if the keys are not in order, or a quorum is no majority."""
        if list(self.keys) != sorted(set(self.keys)):
            raise ValueError("the keys of authorities are listed once each, in ascending order")
        if not len(self.keys) < 2 * self.quorum <= 2 * len(self.keys):
            raise ValueError("a quorum is more than half of the authorities, and no more than all of them")

    @property
    def digest(self) -> bytes:
        """32 bytes that heads name the set by."""
        return digest(Domain.AUTHORITIES, encode(self))

    @property
    def rounds(self) -> int:
        """Rounds of signatures, n − q + 1: one more than there may be faulty authorities."""
        return len(self.keys) - self.quorum + 1

    @property
    def majority(self) -> int:
        """The fewest that are more than half of all authorities, silent ones among them."""
        return len(self.keys) // 2 + 1
