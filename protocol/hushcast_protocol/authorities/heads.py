"""Heads: what the authorities of a network agreed on for one epoch, with the signatures of a quorum.

A head has an outside, which every release reads, of whatever wire it is: who the authorities are, who follows
them, and which wire is in force. So who was away, or was not upgraded, can follow a network and learn what it
speaks. The inside (`head_inside.py`) is in the wire of the head's epoch. Signed are the bytes that came.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated

import msgspec

from hushcast_protocol.authorities.authority_set import MAX_AUTHORITIES, Authorities
from hushcast_protocol.base.crypto.hashes import Domain, digest
from hushcast_protocol.base.crypto.secrets import Seed
from hushcast_protocol.base.crypto.signatures import SignaturePurpose, check, signature
from hushcast_protocol.base.errors import AuthenticationError, DecodeError
from hushcast_protocol.base.wire import Bytes32, Counter, Lasting, decoder, encode

MAX_HEAD = 64 * 1024
"""Bytes of a head of any wire, also of one to come; one of nine authorities, all at fault, has some 6 kB."""
MAX_SIGNATURE = 8 * 1024  # bytes of one by a key of any kind, also one that withstands quantum computers
MAX_SIGNATURES = MAX_AUTHORITIES * (MAX_SIGNATURE + 16)  # bytes of those under a head or a ballot
MAX_CERTIFIED = MAX_HEAD + MAX_SIGNATURES + 64  # bytes
HEADS_KEPT = 48
"""How many a directory serves: two days, as rosters. A daemon away for longer starts with the newest."""

AuthorityIndex = Annotated[int, msgspec.Meta(ge=0, lt=MAX_AUTHORITIES)]
"""Which of the set of authorities, counted from 0."""


class IndexedSignature(Lasting, frozen=True, tag="mark"):
    """A signature, and whose it is."""

    place: AuthorityIndex
    signature: Annotated[bytes, msgspec.Meta(max_length=MAX_SIGNATURE)]
    """Of 64 bytes where the authority's key is an Ed25519 key, as all are that are known here."""


IndexedSignatures = Annotated[
    tuple[IndexedSignature, ...], msgspec.Meta(min_length=1, max_length=MAX_AUTHORITIES)
]


class AuthorityChange(Lasting, frozen=True, tag="change"):
    """Who the authorities are from an epoch on."""

    epoch: Counter
    authorities: Authorities


class Head(Lasting, frozen=True, tag="head"):
    """The outside of what authorities agreed on for an epoch."""

    network: Bytes32
    epoch: Counter
    previous: Bytes32
    """Digest of the head before; for the first 32 zero bytes, or the digest of the last roster before it."""
    authorities: Authorities
    """The set whose quorum signs, with its addresses, its wire and its rules."""
    change: AuthorityChange | None
    """The set that follows, in every head until it takes over."""
    inside: bytes
    """A `HeadInside` of the wire in force."""


class CertifiedHead(Lasting, frozen=True, tag="certified"):
    """An encoded head and signatures of its authorities."""

    head: bytes
    marks: IndexedSignatures


class AssentBody(Lasting, frozen=True, tag="accord/1"):
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

    Of `authorities` the keys and the quorum count; the head shows the rest. Its inside is not looked at.
    A signature that does not hold, or an authority that signs twice, spoils all: nobody honest sends such.
    """
    head = decode_head(certified.head)
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

    Everybody comes to the same by the bytes alone, whatever wires they speak. Whether that set was ever in
    charge is another question.
    """
    return check_certified(certified, network, decode_head(certified.head).authorities)
