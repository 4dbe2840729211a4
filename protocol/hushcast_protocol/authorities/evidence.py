"""Evidence: two signatures of one authority that no honest one gives; anybody can check it."""

from __future__ import annotations

from collections.abc import Callable

from hushcast_protocol.authorities.authority_set import Authorities
from hushcast_protocol.authorities.ballots import Cast
from hushcast_protocol.authorities.heads import AssentBody, CertifiedHead, Head, check_certified, head_digest
from hushcast_protocol.base.crypto.signatures import SignaturePurpose, Signed, check
from hushcast_protocol.base.errors import DecodeError
from hushcast_protocol.base.wire import Lasting, PublicKey, Wire, decoder, encode

MAX_STATEMENT = 256  # bytes; a `Cast` has some 115


class Evidence(Wire, frozen=True, tag="evidence/1"):
    """Two statements that one authority signed: two ballots, or assent to two heads, for one epoch."""

    accused: PublicKey
    first: Signed
    second: Signed


class Fork(Lasting, frozen=True, tag="fork/1"):
    """Two heads of one epoch, each with the signatures of a quorum."""

    first: CertifiedHead
    second: CertifiedHead


_decode: Callable[[bytes], Cast | AssentBody] = decoder(Cast | AssentBody, "statement", MAX_STATEMENT)


def check_evidence(evidence: Evidence, network: bytes) -> int:
    """Return for which epoch the accused said two things; `DecodeError`, `AuthenticationError` if it did not.

    Whether the accused is one of the authorities is for the caller.
    """
    first, second = _decode(evidence.first.body), _decode(evidence.second.body)
    if (first.network, second.network) != (network, network):
        raise DecodeError("evidence is of another network")
    if type(first) is not type(second) or first.epoch != second.epoch or first == second:
        raise DecodeError("two statements do not contradict each other")
    purpose = SignaturePurpose.ASSENT
    if isinstance(first, Cast) and isinstance(second, Cast):
        purpose = SignaturePurpose.BALLOT
        if (first.author, second.author) != (evidence.accused, evidence.accused):
            # To sign what several others cast is what an authority is for.
            raise DecodeError("evidence is of ballots that are not the accused's own")
    for signed in (evidence.first, evidence.second):
        check(evidence.accused, purpose, signed.body, signed.signature)
    return first.epoch


def check_fork(fork: Fork, network: bytes, authorities: Authorities) -> Head:
    """Return the first of two heads; `DecodeError`, `AuthenticationError` if this is no fork."""
    heads = [check_certified(one, network, authorities) for one in (fork.first, fork.second)]
    if heads[0].epoch != heads[1].epoch or fork.first.head == fork.second.head:
        raise DecodeError("two heads do not contradict each other")
    return heads[0]


def who_forked(fork: Fork, network: bytes, authorities: Authorities) -> list[Evidence]:
    """Return evidence against each authority that signed both heads of a checked fork, 2q − n at least."""
    epoch = check_fork(fork, network, authorities).epoch
    first, second = ({mark.place: mark.signature for mark in one.marks} for one in (fork.first, fork.second))
    bodies = [encode(AssentBody(network, epoch, head_digest(one.head))) for one in (fork.first, fork.second)]
    return [
        Evidence(authorities.keys[place], Signed(bodies[0], first[place]), Signed(bodies[1], second[place]))
        for place in sorted(first.keys() & second.keys())
    ]
