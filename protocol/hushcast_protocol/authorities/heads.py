"""Heads: what the authorities of a network agreed on for one epoch, with the signatures of a quorum."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated

import msgspec

from hushcast_protocol.authorities.authority_set import MAX_AUTHORITIES, MAX_SET, Authorities
from hushcast_protocol.authorities.listing import MAX_DRAWN
from hushcast_protocol.base.errors import AuthenticationError, DecodeError
from hushcast_protocol.base.hashes import Domain, digest
from hushcast_protocol.base.roster import MAX_SEATED
from hushcast_protocol.base.secrets import Seed
from hushcast_protocol.base.sharding import MAX_SHARDING, Sharding
from hushcast_protocol.base.signatures import SignaturePurpose, check, signature
from hushcast_protocol.base.wire import Bytes32, Bytes64, Counter, PublicKey, Wire, decoder, encode

MAX_HEAD = 3072 + 2 * MAX_SET + MAX_DRAWN * MAX_SHARDING
"""Bytes; nine authorities that all committed, revealed and were at fault."""
MAX_CERTIFIED = MAX_HEAD + 80 * MAX_AUTHORITIES + 64  # bytes
HEADS_KEPT = 48
"""How many a directory serves: two days, as rosters. A daemon away for longer starts with the newest."""

AuthorityIndex = Annotated[int, msgspec.Meta(ge=0, lt=MAX_AUTHORITIES)]
"""Which of the set of authorities, counted from 0."""


class IndexedSignature(Wire, frozen=True, tag="mark"):
    """A signature, and whose it is."""

    place: AuthorityIndex
    signature: Bytes64


IndexedSignatures = Annotated[
    tuple[IndexedSignature, ...], msgspec.Meta(min_length=1, max_length=MAX_AUTHORITIES)
]


class BeaconShare(Wire, frozen=True, tag="share"):
    """What one authority adds to a beacon: first a commitment, later the secret behind it."""

    author: PublicKey
    value: Bytes32


BeaconShares = Annotated[tuple[BeaconShare, ...], msgspec.Meta(max_length=MAX_AUTHORITIES)]
AuthorityKeys = Annotated[tuple[PublicKey, ...], msgspec.Meta(max_length=MAX_AUTHORITIES)]


class Beacon(Wire, frozen=True, tag="beacon"):
    """A value that nobody could foresee, for one day."""

    day: Counter
    value: Bytes32


class BeaconState(Wire, frozen=True, tag="draw"):
    """The beacons, and how far the next one is."""

    today: Beacon | None
    """Of the newest day up to this one that has one."""
    tomorrow: Beacon | None
    commits: BeaconShares
    reveals: BeaconShares
    left_out: AuthorityKeys
    """Who committed and did not reveal when tomorrow's was drawn, or today's while it is not: for a day."""


class AuthorityChange(Wire, frozen=True, tag="change"):
    """Who the authorities are from an epoch on."""

    epoch: Counter
    authorities: Authorities


class Head(Wire, frozen=True, tag="head/2"):
    """What authorities agreed on for an epoch."""

    network: Bytes32
    epoch: Counter
    previous: Bytes32
    """Digest of the head before; for the first 32 zero bytes, or the digest of the last roster before it."""
    authorities: Authorities
    """The set whose quorum signs, with its addresses and rules of admission."""
    root: Bytes32
    """`Listing.root` of the relays."""
    count: Annotated[int, msgspec.Meta(ge=0, le=MAX_SEATED)]
    """How many relays have a seat."""
    draw: BeaconState
    faults: AuthorityKeys
    """Who cast two ballots for this epoch."""
    change: AuthorityChange | None
    """The set that follows, in every head until it takes over."""
    shards: Annotated[tuple[Sharding, ...], msgspec.Meta(max_length=MAX_DRAWN)] = ()
    """The shards of now and those to come, as far as the network is cut, by day."""


class CertifiedHead(Wire, frozen=True, tag="certified"):
    """An encoded head and signatures of its authorities."""

    head: bytes
    marks: IndexedSignatures


class AssentBody(Wire, frozen=True, tag="accord/1"):
    """What is signed for `ASSENT`, at most once an epoch."""

    network: Bytes32
    epoch: Counter
    head: Bytes32


decode_head: Callable[[bytes], Head] = decoder(Head, "head", MAX_HEAD)


def head_digest(head: bytes) -> bytes:
    """Return the 32 bytes that an encoded head is named by."""
    return digest(Domain.HEAD, head)


def assent_to(seed: Seed, accord: AssentBody) -> bytes:
    """Return the signature of an authority that agrees."""
    return signature(seed, SignaturePurpose.ASSENT, encode(accord))


def check_certified(certified: CertifiedHead, network: bytes, authorities: Authorities) -> Head:
    """Return a head that a quorum of these authorities signed; `DecodeError`, `AuthenticationError`.

    Of `authorities` the keys and the quorum count; the head shows the rest.
    A signature that does not hold, or an authority that signs twice, spoils all: nobody honest sends such.
    """
    head = decode_head(certified.head)
    if encode(head) != certified.head:
        raise DecodeError("a head is not encoded in the one way")
    if head.network != network:
        raise DecodeError("a head is of another network")
    if head.authorities.signers != authorities.signers:
        raise AuthenticationError("a head is of other authorities")
    places = {mark.place for mark in certified.marks}
    if len(places) != len(certified.marks) or max(places) >= len(authorities.keys):
        raise DecodeError("a head is signed twice by one authority, or by none of them")
    if len(places) < authorities.quorum:
        raise AuthenticationError("a head has too few signatures")
    accord = encode(AssentBody(network, head.epoch, head_digest(certified.head)))
    for mark in certified.marks:
        check(authorities.keys[mark.place], SignaturePurpose.ASSENT, accord, mark.signature)
    return head


def check_shown(certified: CertifiedHead, network: bytes) -> Head:
    """Return a head that a quorum of the very set signed that it names; raise as `check_certified` does.

    Everybody comes to the same by the bytes alone. Whether that set was ever in charge is another question.
    """
    return check_certified(certified, network, decode_head(certified.head).authorities)
