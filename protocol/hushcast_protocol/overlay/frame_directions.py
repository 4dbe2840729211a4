"""Directions of frames: which frames each end of an overlay's link may say, by who it is and to whom.

An end decodes what the other may say, and nothing else: what is said by somebody else is malformed to it.
"""

from __future__ import annotations

from collections.abc import Callable

from hushcast_protocol.base.wire import decoder
from hushcast_protocol.cover.cover_frames import (
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
from hushcast_protocol.overlay.box_frames import BoxStanding, Forget, Hold, HoldAnswer, Seek, TopCopies
from hushcast_protocol.overlay.frames import (
    MAX_OVERLAY_FRAME,
    Ack,
    Drop,
    Forward,
    ParcelAnswer,
    ParcelFrame,
    Ping,
    Receipt,
)
from hushcast_protocol.overlay.keeper_frames import HandIn, KeeperAnswer, KeeperRequest
from hushcast_protocol.shards.shard_requests import ShardRequest

FromStranger = Drop | ParcelFrame | ShardRequest | KeeperRequest | CoverPlace
"""An unnamed initiator to a relay, which answers one of them: with the answer to that frame alone."""

FromCovered = CoverLetters | CoverBills
"""An unnamed initiator to its porter, once it has its place."""

ToCovered = CoverPlaced | CoverBlocks
"""A porter to whoever has, or asks for, a place."""

BetweenLanes = CoverBill | CoverGiven | CoverHanded
"""Porter to second, host to second, second to porter: the way down of one box's blocks."""

BetweenCover = CoverWaybill | CoverPassed | CoverMarked | CoverList | CoverListed | BetweenLanes
"""Porter, second, third and hosts to each other."""

FromRelay = Forward | Ack | Ping | ParcelFrame | ParcelAnswer | HandIn | BetweenCover
"""A relay to a relay."""

FromChild = Forward | Ping
"""A relay to a host whose roster does not list it: as the child of a box there."""

ToChild = Ack
"""These to the relay, which dialled whatever a stranger's lease names: they may answer, and ask nothing."""

FromOwner = Ack | Hold | Seek | Forget | ParcelFrame
"""The owner of a box to its host, under the box's key; to whoever holds no box there, it is a stranger."""

ToOwner = BoxStanding | Forward | Ping | HoldAnswer | ParcelAnswer | TopCopies
"""A host to the owner of a box."""

decode_from_stranger: Callable[[bytes], FromStranger] = decoder(
    FromStranger, "stranger's frame", MAX_OVERLAY_FRAME
)
decode_from_relay: Callable[[bytes], FromRelay] = decoder(FromRelay, "relay's frame", MAX_OVERLAY_FRAME)
decode_from_child: Callable[[bytes], FromChild] = decoder(FromChild, "child's frame", MAX_OVERLAY_FRAME)
decode_to_child: Callable[[bytes], ToChild] = decoder(ToChild, "frame to a child", MAX_OVERLAY_FRAME)
decode_receipt: Callable[[bytes], Receipt] = decoder(Receipt, "answer to a drop", MAX_OVERLAY_FRAME)
decode_parcel_answer: Callable[[bytes], ParcelAnswer] = decoder(
    ParcelAnswer, "answer to a parcel", MAX_OVERLAY_FRAME
)
decode_keeper_answer: Callable[[bytes], KeeperAnswer] = decoder(
    KeeperAnswer, "answer of a keeper", MAX_OVERLAY_FRAME
)
decode_from_owner: Callable[[bytes], FromOwner] = decoder(FromOwner, "owner's frame", MAX_OVERLAY_FRAME)
decode_to_owner: Callable[[bytes], ToOwner] = decoder(ToOwner, "host's frame to an owner", MAX_OVERLAY_FRAME)
decode_from_covered: Callable[[bytes], FromCovered] = decoder(
    FromCovered, "frame to a porter", MAX_OVERLAY_FRAME
)
decode_to_covered: Callable[[bytes], ToCovered] = decoder(ToCovered, "porter's frame", MAX_OVERLAY_FRAME)
