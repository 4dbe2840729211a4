"""Candidate lists: which relays may be keepers on a day, and where they are; of each shard one.

A list is named by its relays and the digests of their descriptors, so authorities come to its root by what
they have counted. As sent it has addresses, and what makes those digests with them: days later a relay may be
in no roster that whoever asks it holds.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Annotated

import msgspec

from hushcast_protocol.base.addresses import MAX_ADDRESS, parse_address
from hushcast_protocol.base.candidate_root import CandidateRoot
from hushcast_protocol.base.crypto.hashes import Domain, digest
from hushcast_protocol.base.errors import AuthenticationError, DecodeError
from hushcast_protocol.base.keeping_rule import MAX_KEEPERS
from hushcast_protocol.base.roster import MAX_RELAYS, guide_digest, inner_digest, read_descriptor
from hushcast_protocol.base.wire import Bytes16, Bytes32, Counter, RelayId, Wire, decoder, encode
from hushcast_protocol.shards.guides import KnownRelay
from hushcast_protocol.shards.merkle import MerkleTree, root_by
from hushcast_protocol.shards.slices import FindDescriptor, ShardNumber

MAX_CANDIDATES = MAX_RELAYS * (MAX_ADDRESS + 66) + 256  # bytes of a list; onion addresses take 270,000


class Candidate(Wire, frozen=True, tag="candidate"):
    """A relay that may be a keeper."""

    relay: RelayId
    address: Annotated[str, msgspec.Meta(max_length=MAX_ADDRESS)]
    inner: Bytes16
    """`inner_digest` of its descriptor."""


class CandidateList(Wire, frozen=True, tag="candidates/1"):
    """The relays that may be keepers on a day in one shard, and by what they are drawn."""

    day: Counter
    shard: ShardNumber
    value: Bytes32
    keepers: Annotated[int, msgspec.Meta(ge=1, le=MAX_KEEPERS)]
    """Of a trunk, by the rule of the day."""
    relays: Annotated[tuple[Candidate, ...], msgspec.Meta(max_length=MAX_RELAYS)]
    """In ascending order."""


_decode: Callable[[bytes], CandidateList] = decoder(CandidateList, "candidate list", MAX_CANDIDATES)


@dataclass(frozen=True)
class CandidateDay:
    """The candidates of a day as authorities know them."""

    day: int
    keepers: int
    seed: bytes
    """Of the values by which keepers are drawn."""
    shards: tuple[tuple[KnownRelay, ...], ...]
    """The relays of each, in ascending order."""

    @cached_property
    def tree(self) -> MerkleTree:
        """The tree whose root a head holds, and whose paths prove a list."""
        return MerkleTree(
            [
                _list_digest(self.day, shard, self._value(shard), self.keepers, known)
                for shard, known in enumerate(self.shards)
            ]
        )

    @property
    def root(self) -> CandidateRoot:
        """What a head says of the day."""
        return CandidateRoot(self.day, len(self.shards).bit_length() - 1, self.tree.root)

    def shown(self, shard: int, find: FindDescriptor) -> bytes | None:
        """Return the encoded list of a shard; `None` where a descriptor is not held."""
        found = [(relay, find(known)) for relay, known in self.shards[shard]]
        held = tuple(
            Candidate(relay, read_descriptor(signed.body).address, inner_digest(signed.body))
            for relay, signed in found
            if signed is not None
        )
        if len(held) < len(found):
            return None
        return encode(CandidateList(self.day, shard, self._value(shard), self.keepers, held))

    def _value(self, shard: int) -> bytes:
        place = self.day.to_bytes(8, "big") + shard.to_bytes(8, "big")
        return digest(Domain.KEEPER_DAY, place, self.seed)


def read_candidates(body: bytes, path: Sequence[bytes], told: CandidateRoot, shard: int) -> CandidateList:
    """Return the list of a shard that a head stands for by `told`; `DecodeError`, `AuthenticationError`."""
    if len(path) != told.bits:
        raise DecodeError("a path to a candidate list is not as long as the tree is high")
    found = _decode(body)
    known = tuple((one.relay, guide_digest(one.address, one.inner)) for one in found.relays)
    leaf = _list_digest(found.day, found.shard, found.value, found.keepers, known)
    if root_by(leaf, shard, path) != told.root:
        raise AuthenticationError("a candidate list is not the one that the authorities agreed on")
    if (found.day, found.shard) != (told.day, shard):
        raise DecodeError("a candidate list is of another day or shard")
    for one in found.relays:
        parse_address(one.address)
    return found


def _list_digest(day: int, shard: int, value: bytes, keepers: int, known: tuple[KnownRelay, ...]) -> bytes:
    return digest(Domain.CANDIDATES, encode((day, shard, value, keepers, known)))
