"""Slices and leaves: the relays of one shard for a day, and how they stand in an epoch of it.

A slice is fixed for its day, so it is fetched once. A leaf names it, and says of each of its relays which
stamps it asks for, or that it is away; the leaves of all shards are below one root, which a head holds.

A slice is named by the digests of its descriptors: so whoever has the list of relays comes to the root, also
without the descriptors, which are needed to send a slice, and are what a receiver makes the digests of.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Annotated

import msgspec

from hushcast_protocol.base.addresses import parse_address
from hushcast_protocol.base.crypto.hashes import Domain, digest
from hushcast_protocol.base.crypto.proof_of_work import MAX_DIFFICULTY
from hushcast_protocol.base.crypto.signatures import Signed
from hushcast_protocol.base.errors import AuthenticationError, DecodeError
from hushcast_protocol.base.roster import (
    MAX_DESCRIPTOR,
    Network,
    Relay,
    RosterEntry,
    check_descriptor,
    descriptor_digest,
    read_descriptor,
)
from hushcast_protocol.base.shard_count import MAX_BITS
from hushcast_protocol.base.sharding import Sharding
from hushcast_protocol.base.wire import Bytes16, Bytes32, Counter, RelayId, Wire, decoder, encode
from hushcast_protocol.shards.assignment import shard_of_relay
from hushcast_protocol.shards.merkle import root_by

MAX_SEATS = 1000  # relays of a shard: 707 in the mean at most, and eleven deviations of the draw
# Bytes, so that a link carries it. Relays take 309 each at most; padded as far as a descriptor may be, 604.
MAX_SLICE = MAX_SEATS * MAX_DESCRIPTOR
MAX_LEAF = MAX_SEATS + 128  # bytes
AWAY = 255
"""How a relay stands that was not reached; everything below is bits of the stamps that it asks for."""

assert MAX_DIFFICULTY < AWAY

ShardNumber = Annotated[int, msgspec.Meta(ge=0, lt=2**MAX_BITS)]
CutRelay = tuple[RelayId, Bytes16, Counter]
"""A relay of a cut, the digest of its descriptor (`descriptor_digest`), and since when it has a seat."""
FindDescriptor = Callable[[bytes], Signed | None]
"""Finds a signed descriptor by its digest; `None` if it is not held."""


class Slice(Wire, frozen=True, tag="slice/1"):
    """The relays that have a seat in one shard for a day."""

    network: Bytes32
    day: Counter
    shard: ShardNumber
    entries: Annotated[tuple[RosterEntry, ...], msgspec.Meta(max_length=MAX_SEATS)]
    """In ascending order of relays."""


class Leaf(Wire, frozen=True, tag="leaf/1"):
    """A shard in one epoch: its slice, and how each relay of it stands."""

    day: Counter
    shard: ShardNumber
    slice: Bytes32
    standing: Annotated[bytes, msgspec.Meta(max_length=MAX_SEATS)]
    """A byte a relay, in the slice's order."""


@dataclass(frozen=True)
class Shard:
    """A shard whose slice and leaf were checked."""

    number: int
    relays: dict[RelayId, Relay]
    """All that have a seat, in ascending order."""
    away: frozenset[RelayId]
    """Those of them that authorities do not reach now."""


decode_slice: Callable[[bytes], Slice] = decoder(Slice, "slice", MAX_SLICE)
decode_leaf: Callable[[bytes], Leaf] = decoder(Leaf, "leaf", MAX_LEAF)


def slice_digest(network: bytes, day: int, shard: int, relays: tuple[CutRelay, ...]) -> bytes:
    """Return the 32 bytes that a leaf names a slice by; relays are in ascending order."""
    return digest(Domain.SLICE, encode((network, day, shard, relays)))


def leaf_digest(body: bytes) -> bytes:
    """Return the 32 bytes that stand for an encoded leaf in the tree of a head."""
    return digest(Domain.LEAF, body)


def make_leaf(day: int, shard: int, named: bytes, standing: Iterable[int]) -> bytes:
    """Return the encoded leaf of the slice with a digest, and how each of its relays stands, in its order."""
    return encode(Leaf(day, shard, named, bytes(standing)))


def make_slice(
    network: bytes, day: int, shard: int, relays: Iterable[CutRelay], find: FindDescriptor
) -> bytes | None:
    """Return an encoded slice with the descriptors of its relays; `None` where one is not held."""
    entries = []
    for _, known, since in relays:
        signed = find(known)
        if signed is None:
            return None
        entries.append(RosterEntry(signed, since))
    return encode(Slice(network, day, shard, tuple(entries)))


def read_leaf(body: bytes, path: Sequence[bytes], sharding: Sharding, shard: int) -> Leaf:
    """Return the leaf of a shard that a head stands for; `DecodeError`, `AuthenticationError`."""
    if len(path) != sharding.bits:
        raise DecodeError("a path to a leaf is not as long as the tree is high")
    if root_by(leaf_digest(body), shard, path) != sharding.root:
        raise AuthenticationError("a leaf is not the one that the authorities agreed on")
    leaf = decode_leaf(body)
    if (leaf.day, leaf.shard) != (sharding.day, shard):
        raise DecodeError("a leaf is of another day or shard than its place")
    return leaf


def read_slice(body: bytes, leaf: Leaf, sharding: Sharding, network: Network) -> Shard:
    """Return the relays of a shard, by a leaf that was checked.

    Every descriptor is checked, which takes some 0.1 s for 500; and that each relay belongs here by the day's
    beacon. Raises `DecodeError` or `AuthenticationError`.
    """
    held = decode_slice(body)
    if slice_digest(held.network, held.day, held.shard, tuple(map(_named, held.entries))) != leaf.slice:
        raise AuthenticationError("a slice is not the one that the authorities agreed on")
    if (held.network, held.day, held.shard) != (network.id, leaf.day, leaf.shard):
        raise DecodeError("a slice is of another network, day or shard than its leaf")
    if len(held.entries) != len(leaf.standing):
        raise DecodeError("a leaf does not say of each relay of its slice how it stands")
    relays: dict[RelayId, Relay] = {}
    away: set[RelayId] = set()
    for entry, standing in zip(held.entries, leaf.standing, strict=True):
        relay = _relay(entry, network, standing)
        if shard_of_relay(sharding.beacon, relay.id, sharding.bits) != held.shard:
            raise DecodeError("a slice lists a relay of another shard")
        if standing == AWAY:
            away.add(relay.id)
        relays[relay.id] = relay
    if any(one >= other for one, other in pairwise(relays)) or len(relays) != len(held.entries):
        raise DecodeError("a slice does not list relays once each, in ascending order")
    return Shard(held.shard, relays, frozenset(away))


def _named(entry: RosterEntry) -> CutRelay:
    body = entry.descriptor.body
    return read_descriptor(body).relay, descriptor_digest(body), entry.since


def _relay(entry: RosterEntry, network: Network, standing: int) -> Relay:
    """Return a relay of a slice; the stamps it asks for are those of the leaf, which is newer."""
    if standing > MAX_DIFFICULTY and standing != AWAY:
        raise DecodeError("a leaf says of a relay what none can be")
    held = check_descriptor(entry.descriptor, network)
    bits = 0 if standing == AWAY else standing
    return Relay(held.relay, parse_address(held.address), held.parcel_key, entry.since, bits)
