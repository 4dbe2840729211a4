"""Frames: everything that two daemons of an overlay say over a link."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Literal

import msgspec

from hushcast_protocol.base.crypto.hashes import Domain, digest
from hushcast_protocol.base.crypto.proof_of_work import ProofOfWork
from hushcast_protocol.base.link.hop_link import MAX_UNROUTED
from hushcast_protocol.base.wire import Bytes16, Counter, Wire, decoder
from hushcast_protocol.content.kept_shares import MAX_KEPT_IDS
from hushcast_protocol.content.messages import MAX_BODY, Message
from hushcast_protocol.cover.cover_frames import (
    MARKED_AT_ONCE,
    CoverBill,
    CoverBills,
    CoverBlocks,
    CoverGiven,
    CoverHanded,
    CoverLetters,
    CoverList,
    CoverListed,
    CoverMarked,
    CoverPassed,
    CoverPlace,
    CoverPlaced,
    CoverWaybill,
)
from hushcast_protocol.cover.letter_contents import CONTENT
from hushcast_protocol.overlay.confirmations import MAX_CONFIRMATIONS
from hushcast_protocol.overlay.keeper_frames import MAX_SHOWN, HandIn, KeeperAnswer, KeeperRequest
from hushcast_protocol.overlay.parcels import MAX_PARCEL
from hushcast_protocol.shards.shard_requests import MAX_SHARD_ANSWER, ShardAnswer, ShardRequest

MAX_OVERLAY_FRAME = MAX_PARCEL + 4096  # bytes; the largest is a parcel, a message has at most 264 KiB
assert MAX_BODY + 4096 <= MAX_OVERLAY_FRAME
assert MAX_SHARD_ANSWER <= MAX_OVERLAY_FRAME
assert 34 * MAX_KEPT_IDS + 32 <= MAX_OVERLAY_FRAME
assert MAX_BODY + MAX_SHOWN * 160 <= MAX_OVERLAY_FRAME
assert MARKED_AT_ONCE * (CONTENT + 64) + 64 <= MAX_OVERLAY_FRAME

RefusalReason = Literal["form", "day", "quota", "stamp", "withdrawn"]


class Forward(Wire, frozen=True, tag="forward"):
    """Relay to relay, or host to owner: a message on its way. Its number is its place on the link, from 1."""

    message: Message


class Ack(Wire, frozen=True, tag="ack"):
    """The answer: all forwards up to this number are in the spool or inbox of this end.

    But for those `unrouted` among them: this end knows no such element from that previous hop.
    """

    number: Counter
    unrouted: Annotated[tuple[Counter, ...], msgspec.Meta(max_length=MAX_UNROUTED)]


class Ping(Wire, frozen=True, tag="ping"):
    """Relay to next hop, over a link on which nothing was said for a while: answered with an `Ack`."""


class Drop(Wire, frozen=True, tag="drop"):
    """A publisher, whom the link does not name, to an origin."""

    message: Message
    stamp: ProofOfWork | None


class Receipt(Wire, frozen=True, tag="receipt"):
    """An origin's answer, given before any look-up: it says nothing of who subscribes."""

    verdict: Literal["accepted", "form", "day", "quota", "stamp"]


class ParcelFrame(Wire, frozen=True, tag="parcel"):
    """A sealed parcel, from a relay or dropped by a subscriber whom the link does not name."""

    number: Counter
    sealed: Annotated[bytes, msgspec.Meta(max_length=MAX_PARCEL)]
    stamp: ProofOfWork | None  # a relay under its own name needs none


class ParcelAnswer(Wire, frozen=True, tag="parcel-answer"):
    """What became of a parcel: why it was `refused` here, or what confirms it, among random values."""

    number: Counter
    refused: RefusalReason | None
    confirmations: Annotated[tuple[Bytes16, ...], msgspec.Meta(max_length=MAX_CONFIRMATIONS)]


OverlayFrame = (
    Forward
    | Ack
    | Ping
    | Drop
    | Receipt
    | ParcelFrame
    | ParcelAnswer
    | ShardRequest
    | ShardAnswer
    | HandIn
    | KeeperRequest
    | KeeperAnswer
    | CoverPlace
    | CoverPlaced
    | CoverLetters
    | CoverBlocks
    | CoverWaybill
    | CoverPassed
    | CoverMarked
    | CoverList
    | CoverListed
    | CoverBills
    | CoverBill
    | CoverGiven
    | CoverHanded
)
"""Requests for shards, to keepers and for places come from strangers alone: named links refuse them."""


def handed_in(frame: Drop | ParcelFrame) -> bytes:
    """Return the digest (32 bytes) of what a stranger hands in, which its stamp is bound to.

    A message is taken by its id, before that was checked: a stamp is spent with the first that claims it.
    """
    if isinstance(frame, Drop):
        return digest(Domain.STAMP, b"drop", frame.message.id, *frame.message.tokens)
    return digest(Domain.STAMP, b"parcel", frame.sealed)


decode_overlay: Callable[[bytes], OverlayFrame] = decoder(OverlayFrame, "frame", MAX_OVERLAY_FRAME)
