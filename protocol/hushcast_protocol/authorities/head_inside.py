"""The inside of a head: what authorities agreed on for an epoch, in the wire of that epoch.

Who does not speak that wire reads the outside (`heads.py`) and passes this over.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated

import msgspec

from hushcast_protocol.authorities.authority_set import MAX_AUTHORITIES
from hushcast_protocol.authorities.heads import MAX_HEAD, Head
from hushcast_protocol.authorities.listing import MAX_DRAWN
from hushcast_protocol.base.candidate_root import CandidateRoots
from hushcast_protocol.base.cover_terms import CoverDraw
from hushcast_protocol.base.roster import MAX_SEATED
from hushcast_protocol.base.sharding import Sharding
from hushcast_protocol.base.versions import wires
from hushcast_protocol.base.wire import Bytes32, Counter, PublicKey, Wire, decoder, encode


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


class HeadInside(Wire, frozen=True, tag="inside"):
    """What a head says beyond who its authorities are."""

    root: Bytes32
    """`Listing.root` of the relays."""
    count: Annotated[int, msgspec.Meta(ge=0, le=MAX_SEATED)]
    """How many relays have a seat."""
    draw: BeaconState
    faults: AuthorityKeys
    """Who cast two ballots for this epoch."""
    shards: Annotated[tuple[Sharding, ...], msgspec.Meta(max_length=MAX_DRAWN)] = ()
    """The shards of now and those to come, as far as the network is cut, by day."""
    candidates: CandidateRoots = ()
    """Who may be a keeper on this day and on those before, as far as what was published on them is kept."""
    cover: CoverDraw | None = None
    """What the lists of the quarter are drawn by, where the network has cover."""


_decode: Callable[[bytes], HeadInside] = decoder(HeadInside, "head's inside", MAX_HEAD)


def inside_of(head: Head) -> HeadInside:
    """Return what a head says; raise `OtherWire` where that is in a wire not spoken here, `DecodeError`."""
    head.authorities.check_spoken()
    said = wires.table().translation(head.authorities.wire).up(head.inside)
    return _decode(said or b"")


def encode_inside(inside: HeadInside, wire: int) -> bytes:
    """Return what a head says, as it is said in a wire that is spoken here."""
    return encode(wires.table().translation(wire).down(inside))


def root_of(head: Head | None) -> bytes | None:
    """Return the root of a head that a chain holds; `None` without one, or where it is not read here."""
    return None if head is None or not head.authorities.is_spoken else inside_of(head).root
