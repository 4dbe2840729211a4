"""Ballots: what one authority says of an epoch, and the short statement by which it and others sign it.

A signature is over the statement (`Cast`), which names network, epoch, author and the ballot's digest. So two
statements of one author with different digests prove, without either ballot, that it said two things.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Annotated

import msgspec

from hushcast_protocol.authorities.authority_set import MAX_SET, Authorities
from hushcast_protocol.authorities.heads import MAX_CERTIFIED, CertifiedHead
from hushcast_protocol.authorities.listing import MAX_WAITING, ListedRelay
from hushcast_protocol.base.crypto.hashes import Domain, digest
from hushcast_protocol.base.errors import DecodeError
from hushcast_protocol.base.roster import MAX_SEATED
from hushcast_protocol.base.wire import Bytes32, Counter, PublicKey, Wire, decoder, encode

LISTED = 54  # bytes of a relay, its descriptor's digest and its stamps
MAX_LISTED = MAX_SEATED + MAX_WAITING  # relays on a ballot: those with a seat, and newcomers
MAX_BALLOT = MAX_LISTED * LISTED + MAX_CERTIFIED + MAX_SET + 512  # bytes


class Ballot(Wire, frozen=True, tag="ballot/2"):
    """What one authority would have in the head of an epoch."""

    network: Bytes32
    epoch: Counter
    author: PublicKey
    previous: CertifiedHead | None
    """The newest head that it holds, with the signatures: whoever lacks it has it then."""
    listed: Annotated[tuple[ListedRelay, ...], msgspec.Meta(max_length=MAX_LISTED)]
    """In ascending order of relays, each once."""
    commit: Bytes32 | None
    reveal: Bytes32 | None
    next: Authorities | None
    """Who should be the authorities, where not those of now."""


class Cast(Wire, frozen=True, tag="cast/1"):
    """What is signed for `BALLOT`: by the author, that this is its ballot; by others, that they hold it."""

    network: Bytes32
    epoch: Counter
    author: PublicKey
    ballot: Bytes32


_decode: Callable[[bytes], Ballot] = decoder(Ballot, "ballot", MAX_BALLOT)


def ballot_digest(body: bytes) -> bytes:
    """Return the 32 bytes that an encoded ballot is named by."""
    return digest(Domain.BALLOT, body)


def read_ballot(body: bytes, cast: Cast) -> Ballot:
    """Return the ballot that a statement names; raise `DecodeError` if this is not it, or says nonsense.

    Whether `previous` was certified is for the caller, who knows the authorities.
    """
    if ballot_digest(body) != cast.ballot:
        raise DecodeError("a ballot is not the one that was asked for")
    ballot = _decode(body)
    if encode(ballot) != body:
        raise DecodeError("a ballot is not encoded in the one way")
    if (ballot.network, ballot.epoch, ballot.author) != (cast.network, cast.epoch, cast.author):
        raise DecodeError("a ballot is of another network, epoch or author than its statement")
    relays = [relay for relay, *_ in ballot.listed]
    if any(one >= other for one, other in pairwise(relays)):
        raise DecodeError("a ballot does not list relays once each, in ascending order")
    return ballot
