"""Candidate days: of which relays keepers are drawn on a day, by the first head of that day.

    a day that is whole    those with a seat since before it began; all where there are none, as when a
                           network begins. The seed is of the head before and of the relays of this one.
    a day that is cut      those of the cut, of each shard its own. The seed is the beacon.

So names are older than what orders them, but on a network's first day. Heads tell of these lists for as long
as what was published on their days is kept: who comes later needs no head of that time.
"""

from __future__ import annotations

from hushcast_protocol.authorities.beacon import day_of
from hushcast_protocol.authorities.head_inside import HeadInside
from hushcast_protocol.authorities.listing import Listing
from hushcast_protocol.authorities.shard_draw import cut_of
from hushcast_protocol.base.candidate_root import CandidateRoot
from hushcast_protocol.base.crypto.hashes import Domain, digest
from hushcast_protocol.base.epochs import EPOCHS_A_DAY
from hushcast_protocol.base.keeping_rule import KeepingRule
from hushcast_protocol.shards.candidates import CandidateDay


def candidate_day(network: bytes, previous: bytes, listing: Listing, keepers: int) -> CandidateDay:
    """Return the candidates of a day by the listing of its first head, and by the digest of the head before.

    `network` is its id. It takes some 0.1 s for 16,384 relays.
    """
    day = day_of(listing.epoch)
    drawn = next((one for one in reversed(listing.shards) if one.day <= day and one.bits), None)
    if drawn is not None:
        shards = tuple(
            tuple((relay, known) for relay, known, _ in shard) for shard in cut_of(network, drawn).shards
        )
        return CandidateDay(day, keepers, drawn.beacon, shards)
    begins = day * EPOCHS_A_DAY
    known = tuple((relay, known) for relay, known, _, since in listing.seats if since < begins)
    known = known or tuple((relay, known) for relay, known, *_ in listing.seats)
    return CandidateDay(day, keepers, digest(Domain.KEEPER_DAY, previous, listing.root), (known,))


def candidate_roots(
    network: bytes,
    last: tuple[int, HeadInside] | None,
    previous: bytes,
    listing: Listing,
    keeping: KeepingRule,
) -> tuple[CandidateRoot, ...]:
    """Return what the head of a listing says of candidates; `last` is the head before, its epoch first."""
    day = day_of(listing.epoch)
    told = () if last is None else last[1].candidates
    if keeping.keepers and (last is None or day_of(last[0]) < day):
        told = (*told, candidate_day(network, previous, listing, keeping.keepers).root)
    return tuple(one for one in told if one.day >= day - keeping.days)
