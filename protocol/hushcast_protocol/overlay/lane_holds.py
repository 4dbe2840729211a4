"""Lane holds: what the owner of a box under cover asks of its host, in a parcel and over no link."""

from __future__ import annotations

from typing import Annotated

import msgspec

from hushcast_protocol.base.cover_terms import QUARTER
from hushcast_protocol.base.crypto.hashes import LABEL, Domain, digest
from hushcast_protocol.base.crypto.secrets import Seed
from hushcast_protocol.base.crypto.signatures import SignaturePurpose, check, signature
from hushcast_protocol.base.errors import DecodeError
from hushcast_protocol.base.wire import Bytes16, Bytes32, Bytes64, Counter, PublicKey, RelayId, Wire
from hushcast_protocol.cover.cover_frames import LanePaper
from hushcast_protocol.overlay.hops import box_hop
from hushcast_protocol.overlay.leases import MAX_ELEMENTS, Lease, units

_NONE = bytes(LABEL)  # no lease, no mark and no bypass


class LaneHold(Wire, frozen=True, tag="lane-hold"):
    """Owner to host: give what comes for this box by the lane of this errand, and never over a link.

    With `elements` they lead to the box on this day under this lease, as by a `Hold`; a lane in no use has
    none. Without an `errand` it is for a box that has a lane here. A later one takes the place of the one
    before.
    """

    box: PublicKey
    errand: LanePaper | None
    day: Counter
    lease: Bytes16
    elements: Annotated[tuple[Bytes16, ...], msgspec.Meta(max_length=MAX_ELEMENTS)]
    signature: Bytes64
    """Under the box's key, for this host: nobody else turns what comes for a box to himself."""

    @property
    def held(self) -> Lease | None:
        """The lease by which its elements lead to the box; `None` without any."""
        if not self.elements:
            return None
        once = tuple(dict.fromkeys(self.elements))
        return Lease(self.lease, self.day, box_hop(self.box), None, once, _NONE, _NONE)

    @property
    def worth(self) -> int:
        """How many leases of a day it costs: an errand as one for each day of a quarter."""
        held = units(len(self.elements)) if self.elements else 0
        return held if self.errand is None else QUARTER + held


def lane_hold(
    box: Seed,
    network: Bytes32,
    host: RelayId,
    errand: bytes | None,
    day: int = 0,
    lease: bytes = _NONE,
    elements: tuple[bytes, ...] = (),
) -> LaneHold:
    """Sign what an owner asks of a host: a lane by a sealed errand, elements of a day, or both."""
    asked = LaneHold(box.public(), errand, day, lease, elements, bytes(64))
    signed = signature(box, SignaturePurpose.LANE_HOLD, _asked_of(network, host, asked))
    return msgspec.structs.replace(asked, signature=signed)


def check_lane_hold(network: Bytes32, host: RelayId, asked: LaneHold) -> None:
    """Raise `AuthenticationError` where no owner asks so of this host, `DecodeError` for what is none."""
    check(asked.box, SignaturePurpose.LANE_HOLD, _asked_of(network, host, asked), asked.signature)
    if asked.errand is None and not asked.elements:
        raise DecodeError("a lane's hold asks for nothing")


def _asked_of(network: bytes, host: RelayId, asked: LaneHold) -> bytes:
    errand = (asked.errand,) if asked.errand is not None else ()
    day = asked.day.to_bytes(8, "big")
    return digest(Domain.LANE, b"hold", network, host, asked.box, day, asked.lease, *asked.elements, *errand)
