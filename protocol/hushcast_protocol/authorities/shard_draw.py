"""The draw of shards: when a network is cut into shards, and what a head says of them.

    head                                       shards of its listing
    the first, of enough relays                those of its own day, under a beacon that can be foreseen
    the first that has tomorrow's beacon       those of now, and those of tomorrow, of all that had a seat
                                               before its secrets were shown and have it still
    the same, of too few relays                those of now, and that tomorrow has none
    later ones until tomorrow is over          the same
    of a day for which there is no beacon      those of the newest day before it

So a cut stands before its day begins, and stays as it is for the day; who is seated later is in no shard
until the next, as it could choose its name by the beacon. Names that are older cannot be chosen, but who has
thousands can let those go that fell elsewhere: so no shard takes more than it has room for. Everybody comes
to the same by the head before, its listing, and the ballots that count.
"""

from __future__ import annotations

from hushcast_protocol.authorities.beacon import day_of
from hushcast_protocol.authorities.head_inside import Beacon
from hushcast_protocol.authorities.listing import AGED, ListedCut, Listing, Seat, place_in_line
from hushcast_protocol.base.crypto.hashes import Domain, digest
from hushcast_protocol.base.epochs import EPOCHS_A_DAY
from hushcast_protocol.base.roster import MAX_RELAYS, MAX_SEATED
from hushcast_protocol.base.shard_count import bits_for
from hushcast_protocol.base.sharding import Sharding
from hushcast_protocol.base.wire import encode
from hushcast_protocol.shards.assignment import shard_of_relay
from hushcast_protocol.shards.shard_cut import Cut, Leaves, cut
from hushcast_protocol.shards.slices import MAX_SEATS, CutRelay

_NOTHING = bytes(32)


def most_seated(last: Listing | None, epoch: int, shard_size: int) -> int:
    """Return how many relays may have a seat in an epoch, by the listing before it.

    Those of a network that is not cut are all on one list that everybody fetches.
    """
    if not shard_size:
        return MAX_RELAYS
    if last is None:
        return MAX_SEATED  # it is cut at once
    held = _held(last, epoch)
    is_cut = any(one.day <= day_of(epoch) for one in held) and all(one.bits for one in held)
    return MAX_SEATED if is_cut else MAX_RELAYS


def drawn_by(
    network: bytes,
    last: Listing | None,
    epoch: int,
    seats: tuple[Seat, ...],
    fresh: Beacon | None,
    shard_size: int,
) -> tuple[ListedCut, ...]:
    """Return the shards of now and of tomorrow, as far as the network is cut.

    `last` is the listing before, `None` for the first; `seats` are those of this epoch; `fresh` is tomorrow's
    beacon where this head is the first that has it.
    """
    today = day_of(epoch)
    if last is None:
        first = _drawn(today, first_beacon(network, today, seats), seats, shard_size)
        held = [first] if first.bits else []
    else:
        held = _held(last, epoch)
    if fresh is not None:
        shown = (fresh.day - 1) * EPOCHS_A_DAY + AGED
        drawn = _drawn(fresh.day, fresh.value, tuple(seat for seat in seats if seat[3] <= shown), shard_size)
        held += [drawn] if drawn.bits or held else []
    return tuple(held)


def first_beacon(network: bytes, day: int, seats: tuple[Seat, ...]) -> bytes:
    """Return what stands for the beacon of a network's first day (32 bytes); it can be foreseen."""
    return digest(Domain.BEACON, network + encode(day), digest(Domain.LISTING, encode(seats)))


def cut_of(network: bytes, drawn: ListedCut) -> Cut:
    """Return the shards of a day as relays; it takes some 0.1 s for 16,384."""
    return cut(network, drawn.day, drawn.beacon, drawn.bits, drawn.seats)


def leaves_of(made: Cut, seats: tuple[Seat, ...]) -> Leaves:
    """Return the leaves of an epoch in which relays have these seats: who has none is away."""
    return made.leaves({relay: bits for relay, _, bits, _ in seats})


def shardings_of(network: bytes, listing: Listing) -> tuple[Sharding, ...]:
    """Return what a head says of the shards of its listing."""
    found = []
    for drawn in listing.shards:
        if drawn.bits:
            made = cut_of(network, drawn)
            found.append(made.sharding(leaves_of(made, listing.seats)))
        else:
            found.append(Sharding(drawn.day, drawn.beacon, 0, _NOTHING, _NOTHING, 0))
    return tuple(found)


def _held(last: Listing, epoch: int) -> list[ListedCut]:
    """Return the cut in force when an epoch begins, and that of tomorrow if it was drawn already."""
    today = day_of(epoch)
    begun = [one for one in last.shards if one.day <= today][-1:]
    return [one for one in begun if one.bits] + [one for one in last.shards if one.day > today]


def _drawn(day: int, beacon: bytes, seats: tuple[Seat, ...], shard_size: int) -> ListedCut:
    """Cut these relays; where a shard has too many, the eldest of them are in it, and the others in none."""
    bits = bits_for(len(seats), shard_size) if shard_size else 0
    room = [MAX_SEATS] * 2**bits
    named: list[CutRelay] = []
    for relay, known, _, since in sorted(seats, key=lambda seat: (seat[3], place_in_line(beacon, seat[0]))):
        shard = shard_of_relay(beacon, relay, bits)
        if room[shard]:
            room[shard] -= 1
            named.append((relay, known, since))
    return ListedCut(day, beacon, bits, tuple(sorted(named)) if bits else ())
