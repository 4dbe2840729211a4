"""Cover's draw: the value that the lists of a quarter are drawn by, told by each head of that quarter."""

from __future__ import annotations

from hushcast_protocol.authorities.beacon import day_of
from hushcast_protocol.authorities.head_inside import HeadInside
from hushcast_protocol.authorities.listing import Listing
from hushcast_protocol.base.cover_terms import QUARTER, CoverDraw, CoverTerms
from hushcast_protocol.base.crypto.hashes import Domain, digest


def cover_draw(
    last: tuple[int, HeadInside] | None,
    previous: bytes,
    listing: Listing,
    terms: CoverTerms,
    beacon: bytes | None,
) -> CoverDraw | None:
    """Return what the head of a listing says of cover's lists; `None` without cover.

    `last` is the head before, its epoch first, `previous` its digest. The first head of a quarter, or with
    cover, draws the value: of the day's beacon, or without one of the head before and the relays of this one.
    It says in which epoch: whoever was listed for long enough then was there before anybody knew the value.
    """
    if not terms:
        return None
    quarter = day_of(listing.epoch) // QUARTER
    if last is not None and last[1].cover is not None and last[1].cover.quarter == quarter:
        return last[1].cover
    drawn = beacon if beacon is not None else previous + listing.root
    value = digest(Domain.COVER_DRAW, quarter.to_bytes(8, "big"), drawn)
    return CoverDraw(quarter, listing.epoch, value)
