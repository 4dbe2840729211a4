"""What authorities say to each other: echoes of ballots, assents, heads, and questions for them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated

import msgspec

from hushcast_protocol.authorities.ballots import MAX_BALLOT
from hushcast_protocol.authorities.head_questions import MAX_HEADS_ANSWER, AskHeads, Heads
from hushcast_protocol.authorities.heads import MAX_SIGNATURES, IndexedSignatures
from hushcast_protocol.authorities.listing import MAX_LISTING, Listing
from hushcast_protocol.base.wire import Bytes32, Bytes64, Counter, PublicKey, Wire, decoder

MAX_ECHO = MAX_BALLOT + MAX_SIGNATURES + 256  # bytes
MAX_PEER_FRAME = MAX_LISTING + 64  # bytes; a listing is the largest


class Echo(Wire, frozen=True, tag="echo"):
    """A ballot's digest with the signatures of who holds it; the ballot from its author, or for who asked."""

    epoch: Counter
    author: PublicKey
    ballot: Bytes32
    marks: IndexedSignatures
    body: Annotated[bytes, msgspec.Meta(max_length=MAX_BALLOT)] | None


class AskBallot(Wire, frozen=True, tag="ask-ballot"):
    """Ask for a ballot, which the other end has said that it holds."""

    epoch: Counter
    ballot: Bytes32


class Assent(Wire, frozen=True, tag="assent"):
    """Agree to a head, once an epoch."""

    epoch: Counter
    head: Bytes32
    signature: Bytes64


class AskListing(Wire, frozen=True, tag="ask-listing"):
    """Ask for the listing that a head stands for, by its root."""

    root: Bytes32


AuthorityFrame = Echo | AskBallot | Assent | AskHeads | Heads | AskListing | Listing

decode_frame: Callable[[bytes], AuthorityFrame] = decoder(
    AuthorityFrame, "frame between authorities", MAX_PEER_FRAME
)
assert max(MAX_HEADS_ANSWER, MAX_ECHO) < MAX_PEER_FRAME
