"""The roster: the signed list of relays for one epoch, chained by hash to the one before."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Annotated

import msgspec
from nacl.bindings import crypto_scalarmult
from nacl.exceptions import CryptoError

from hushcast_protocol.base.addresses import Address, parse_address
from hushcast_protocol.base.candidate_root import CandidateRoot
from hushcast_protocol.base.cover_terms import NO_COVER, CoverDraw, CoverTerms
from hushcast_protocol.base.crypto.hashes import Domain, digest
from hushcast_protocol.base.crypto.proof_of_work import MAX_DIFFICULTY
from hushcast_protocol.base.crypto.secrets import Seed
from hushcast_protocol.base.crypto.signatures import SignaturePurpose, Signed, check, sign
from hushcast_protocol.base.epochs import MAX_EPOCH, MIN_EPOCH, Calendar
from hushcast_protocol.base.errors import AuthenticationError, DecodeError
from hushcast_protocol.base.keeping_rule import NOTHING_KEPT, KeepingRule
from hushcast_protocol.base.sharding import Sharding
from hushcast_protocol.base.versions.wires import FIRST, WireRange
from hushcast_protocol.base.wire import Bytes32, Counter, PublicKey, RelayId, Wire, decoder, encode

MAX_RELAYS = 2000  # threat model, row 12: beyond it a full mesh of onion links breaks, and shards are needed
MAX_SEATED = 16_384  # relays with a seat on a day that the network is cut: a ballot of them has 1 MB
MAX_DESCRIPTOR = 512  # bytes; a descriptor has about 300
MAX_ROSTER = MAX_RELAYS * (MAX_DESCRIPTOR + 32)  # bytes
_ANY_SCALAR = b"\x01" * 32

GENESIS = bytes(32)
"""The digest before a network's first roster."""


class Network(Wire, frozen=True, tag="network"):
    """What all daemons of a network share."""

    name: Annotated[str, msgspec.Meta(min_length=1, max_length=64)]
    profile: Annotated[str, msgspec.Meta(max_length=16)]
    epoch_seconds: Annotated[int, msgspec.Meta(ge=MIN_EPOCH, le=MAX_EPOCH)]

    @property
    def id(self) -> bytes:
        """32 bytes that salt topic keys and open every handshake."""
        return _network_id(self)

    @property
    def calendar(self) -> Calendar:
        """The network's epochs and days."""
        return Calendar(self.epoch_seconds)


@functools.lru_cache(maxsize=16)  # a daemon has one, which each parcel and each descriptor is compared with
def _network_id(network: Network) -> bytes:
    return digest(Domain.NETWORK, encode(network))


class Descriptor(Wire, frozen=True, tag="descriptor/1"):
    """What a relay says of itself, signed by its identity key."""

    network: Bytes32
    relay: RelayId
    address: Annotated[str, msgspec.Meta(max_length=80)]
    parcel_key: PublicKey
    issued: Counter  # Unix seconds
    expires: Counter  # Unix seconds
    difficulty: Annotated[int, msgspec.Meta(ge=0, le=MAX_DIFFICULTY)]  # bits of the stamps it asks for
    speaks: WireRange = FIRST


class RosterEntry(Wire, frozen=True, tag="entry"):
    """A relay's signed descriptor and the epoch since which the roster has listed it without a gap."""

    descriptor: Signed
    since: Counter


class RosterBody(Wire, frozen=True, tag="roster/1"):
    """What the directory signs."""

    network: Network
    epoch: Counter
    previous: Bytes32
    entries: Annotated[tuple[RosterEntry, ...], msgspec.Meta(max_length=MAX_RELAYS)]


@dataclass(frozen=True, slots=True)
class Relay:
    """A relay as the roster lists it."""

    id: RelayId
    address: Address
    parcel_key: PublicKey
    since: int
    difficulty: int = 0
    """Bits of the stamps that strangers need there."""


@dataclass(frozen=True)
class Roster:
    """The relays of an epoch, whoever signs for them; all signatures were checked."""

    network: Network
    epoch: int
    previous: bytes
    digest: bytes
    """Hash of what was signed: the next names it, and who holds another one sees so."""
    relays: dict[RelayId, Relay]
    """None where the network is cut: each shard has those of its own."""
    shards: tuple[Sharding, ...] = field(default=(), kw_only=True)
    """Of the days that the epoch's head tells of, where the network is cut."""
    keeping: KeepingRule = field(default=NOTHING_KEPT, kw_only=True)
    """What its relays keep of what is published, by the rules of the epoch's head."""
    candidates: tuple[CandidateRoot, ...] = field(default=(), kw_only=True)
    """Who may be a keeper on the epoch's day and on those before, in ascending order."""

    cover: CoverTerms = field(default=NO_COVER, kw_only=True)
    """Whether daemons may have cover, by the rules of the epoch's head."""
    cover_draw: CoverDraw | None = field(default=None, kw_only=True)
    """What the quarter's lists are drawn by, where there is cover."""

    @property
    def origins(self) -> list[RelayId]:
        """The relays to drop publications at: listed in their second epoch, or since the first roster."""
        if self.previous == GENESIS:
            return list(self.relays)
        return [relay.id for relay in self.relays.values() if relay.since < self.epoch]


@dataclass(frozen=True)
class SignedRoster(Roster):
    """A roster as a single directory signed it."""

    signed: Signed


_decode_descriptor: Callable[[bytes], Descriptor] = decoder(Descriptor, "descriptor", MAX_DESCRIPTOR)
_decode_roster: Callable[[bytes], RosterBody] = decoder(RosterBody, "roster", MAX_ROSTER)


def read_descriptor(body: bytes) -> Descriptor:
    """Return what a relay says of itself (`Signed.body`), whoever signed it; `DecodeError`."""
    return _decode_descriptor(body)


def sign_descriptor(seed: Seed, descriptor: Descriptor) -> Signed:
    """Sign a descriptor with the identity seed of its relay."""
    return sign(seed, SignaturePurpose.DESCRIPTOR, descriptor)


def check_descriptor(signed: Signed, network: Network) -> Descriptor:
    """Return the descriptor if it is well formed, of this network and signed by its relay.

    Raises `DecodeError` or `AuthenticationError`. Whether it has expired is for the caller, who has a clock.
    """
    descriptor = _decode_descriptor(signed.body)
    if descriptor.network != network.id:
        raise DecodeError("a descriptor is of another network")
    if descriptor.relay == bytes(32):
        raise DecodeError("a descriptor names no key")
    try:
        crypto_scalarmult(_ANY_SCALAR, descriptor.parcel_key)
    except (CryptoError, RuntimeError):
        raise DecodeError("a descriptor's parcel key is not one that anything can be sealed to") from None
    parse_address(descriptor.address)
    check(descriptor.relay, SignaturePurpose.DESCRIPTOR, signed.body, signed.signature)
    return descriptor


def inner_digest(body: bytes) -> bytes:
    """Return the 16 bytes that stand for a signed descriptor (`Signed.body`) beside its address."""
    return digest(Domain.LISTING, body, size=16)


def guide_digest(address: str, inner: bytes) -> bytes:
    """Return the 16 bytes of `descriptor_digest`, by a descriptor's address and `inner_digest`."""
    return digest(Domain.LISTING, address.encode(), inner, size=16)


def descriptor_digest(body: bytes) -> bytes:
    """Return the 16 bytes that authorities name a relay's signed descriptor by (`Signed.body`).

    It is made in two steps, so that an address is authentic without the rest. `DecodeError` for what is none.
    """
    return guide_digest(_decode_descriptor(body).address, inner_digest(body))


def sign_roster(seed: Seed, body: RosterBody) -> Signed:
    """Sign a roster with the directory's seed."""
    return sign(seed, SignaturePurpose.ROSTER, body)


def roster_digest(body: bytes) -> bytes:
    """Return the 32 bytes that a signed roster is named by (`Signed.body`)."""
    return digest(Domain.ROSTER, body)


def check_roster(signed: Signed, directory: PublicKey, network: Network) -> SignedRoster:
    """Return the roster if directory and relays signed it and it is of this network.

    Raises `DecodeError` or `AuthenticationError`.
    """
    check(directory, SignaturePurpose.ROSTER, signed.body, signed.signature)
    body = _decode_roster(signed.body)
    if body.network != network:
        raise DecodeError("a roster is of another network, profile or epoch length")
    relays = checked_relays(body.entries, network, body.epoch)
    return SignedRoster(body.network, body.epoch, body.previous, roster_digest(signed.body), relays, signed)


def checked_relays(entries: Iterable[RosterEntry], network: Network, epoch: int) -> dict[RelayId, Relay]:
    """Return the relays that are listed in an epoch, in the order given, each by a descriptor that it signed.

    Raises `DecodeError` or `AuthenticationError`.
    """
    relays: dict[RelayId, Relay] = {}
    for entry in entries:
        descriptor = check_descriptor(entry.descriptor, network)
        if descriptor.relay in relays:
            raise DecodeError("a roster lists a relay twice")
        if entry.since > epoch:
            raise DecodeError("a roster lists a relay since an epoch to come")
        relays[descriptor.relay] = Relay(
            descriptor.relay,
            parse_address(descriptor.address),
            descriptor.parcel_key,
            entry.since,
            descriptor.difficulty,
        )
    return relays


def listed_descriptors(roster: SignedRoster) -> list[Signed]:
    """Return the descriptors of the relays of a checked roster, as they signed them."""
    return [entry.descriptor for entry in _decode_roster(roster.signed.body).entries]


def check_successor(roster: Roster, last: Roster | None) -> None:
    """Raise `AuthenticationError` unless `roster` follows `last` in the chain (anything follows none)."""
    if last is None:
        return
    if roster.epoch <= last.epoch or roster.previous != last.digest:
        raise AuthenticationError("a roster does not follow the one held: the directory's chain forked")


class RosterView(Wire, frozen=True, tag="view"):
    """The newest roster that one end of a link holds; both ends compare what they can."""

    epoch: Counter
    digest: Bytes32
