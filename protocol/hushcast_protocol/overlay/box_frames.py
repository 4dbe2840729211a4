"""Frames between the owner of a box and its host, over the link that the box's key has opened."""

from __future__ import annotations

from typing import Annotated

import msgspec

from hushcast_protocol.base.crypto.hashes import LABEL, Domain, digest
from hushcast_protocol.base.crypto.proof_of_work import MAX_DIFFICULTY, ProofOfWork, inside
from hushcast_protocol.base.errors import DecodeError, Refusal
from hushcast_protocol.base.keeping_rule import MAX_DAYS_KEPT
from hushcast_protocol.base.wire import Bytes16, Bytes32, Counter, PublicKey, RelayId, Wire
from hushcast_protocol.overlay.frames import RefusalReason
from hushcast_protocol.overlay.hops import box_hop
from hushcast_protocol.overlay.host_cards import HostCard
from hushcast_protocol.overlay.leases import MAX_BOX_LEASES, MAX_ELEMENTS, Elements, Lease, units

_NONE = bytes(LABEL)  # no mark and no bypass: nothing goes around a box

SOUGHT_DAYS = MAX_DAYS_KEPT + 1  # days before and after the host's own that may be sought: clocks may differ
MAX_SOUGHT = 2 * SOUGHT_DAYS + 1  # trunks of one box, one a day: two weeks that are over, and two to come
MAX_TOP_COPIES = 512  # copies of one frame, and those that wait for the next: some 36 KB


class BoxStanding(Wire, frozen=True, tag="box-standing"):
    """Host to owner, first on every link: which leases lead to the box, and how many messages gave way.

    `gave_way` counts since the box was made, and never falls; a host that lost its disk begins anew. The rest
    is of the host itself: its card, for top relays, the key of parcels for it, the stamps that it asks for.
    """

    leases: Annotated[tuple[Bytes16, ...], msgspec.Meta(max_length=MAX_BOX_LEASES)]
    gave_way: Counter
    card: HostCard
    parcel_key: PublicKey
    difficulty: Annotated[int, msgspec.Meta(ge=0, le=MAX_DIFFICULTY)]  # bits
    sought: Counter | None = None
    """The last day for which the host has a trunk to ask keepers for; nil without any."""


class Hold(Wire, frozen=True, tag="hold"):
    """Owner to host: on this day these elements lead to the box, under this lease id.

    It is a lease without a next hop elsewhere. To hold again under the same id replaces what was held. The
    host lets in the `children`, too, where no roster lists them there: no more than there are elements.
    """

    number: Counter
    lease: Bytes16
    day: Counter
    elements: Elements
    children: Annotated[tuple[RelayId, ...], msgspec.Meta(max_length=MAX_ELEMENTS)]
    stamp: ProofOfWork | None


class SoughtTrunk(Wire, frozen=True, tag="sought"):
    """A trunk of a day; `is_whole`, if what came before is wanted, too, and not from now on alone."""

    day: Counter
    trunk: Bytes16
    is_whole: bool


class Seek(Wire, frozen=True, tag="seek"):
    """Owner to host: on these days have keepers asked for what the box lacks of these trunks.

    A box has one trunk a day, for good. What it has of such a day it keeps for as long as keepers do.
    """

    number: Counter
    trunks: Annotated[tuple[SoughtTrunk, ...], msgspec.Meta(min_length=1, max_length=MAX_SOUGHT)]
    stamp: ProofOfWork | None


class Forget(Wire, frozen=True, tag="forget"):
    """Owner to host: the box is done with. What waits is deleted; what still comes is dropped."""

    number: Counter


class HoldAnswer(Wire, frozen=True, tag="hold-answer"):
    """What became of the `Hold`, `Seek` or `Forget` with this number: on disk, unless `refused`."""

    number: Counter
    refused: RefusalReason | None


class MessageCopy(Wire, frozen=True, tag="copy"):
    """A message, and a relay that brought a copy of it."""

    message: Bytes32
    relay: RelayId


class TopCopies(Wire, frozen=True, tag="top-copies"):
    """Host to owner: which relays brought copies of messages for the box, repeats too, since it said so last.

    By them the owner judges the ways of its probes. `is_whole` unless there were more than it could tell.
    """

    copies: Annotated[tuple[MessageCopy, ...], msgspec.Meta(max_length=MAX_TOP_COPIES)]
    is_whole: bool


def box_lease(box: bytes, hold: Hold) -> Lease:
    """Return the lease that a hold asks for, for the box with this key; `DecodeError` for what is none."""
    if len(hold.children) > len(hold.elements):
        raise DecodeError("a box has more children than elements")
    elements, children = (tuple(dict.fromkeys(all_)) for all_ in (hold.elements, hold.children))
    return Lease(hold.lease, hold.day, box_hop(box), None, elements, _NONE, _NONE, children=children)


def check_sought(seek: Seek, today: int) -> None:
    """Raise `DecodeError` for a seek that is none, and `Refusal` where a day is too far off."""
    days = {one.day for one in seek.trunks}
    if len(days) < len(seek.trunks):
        raise DecodeError("a box has two trunks on one day")
    if not all(today - SOUGHT_DAYS <= day <= today + SOUGHT_DAYS for day in days):
        raise Refusal("day")


def held_out(frame: Hold | Seek) -> bytes:
    """Return the digest (32 bytes) of a hold or seek, which its stamp is bound to."""
    if isinstance(frame, Seek):
        trunks = [one.day.to_bytes(8, "big") + bytes([one.is_whole]) + one.trunk for one in frame.trunks]
        return digest(Domain.STAMP, b"seek", *trunks)
    day = frame.day.to_bytes(8, "big")
    return digest(Domain.STAMP, b"hold", frame.lease, day, *frame.elements, *frame.children)


def hold_price(frame: Hold | Seek, difficulty: int) -> int:
    """Return the bits of the stamp of a hold or seek at a host that advertises a difficulty (bits).

    It is a stranger's frame, and a hold is a lease as one inside a parcel is: the dearer of the two counts.
    Each day for which a trunk is left costs as a lease of one day does.
    """
    worth = units(len(frame.elements)) if isinstance(frame, Hold) else len(frame.trunks)
    return max(difficulty, inside(difficulty, worth))
