"""Listings: which relays have a seat, since when, and which wait for one; a head stands for one listing.

Where the network is cut into shards, a listing also has the relays of the cut, the same for a whole day.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Annotated

import msgspec

from hushcast_protocol.authorities.seat_admission import SeatAdmission
from hushcast_protocol.base.crypto.hashes import Domain, digest
from hushcast_protocol.base.crypto.proof_of_work import MAX_DIFFICULTY
from hushcast_protocol.base.epochs import EPOCHS_A_DAY
from hushcast_protocol.base.roster import MAX_RELAYS, MAX_SEATED
from hushcast_protocol.base.shard_count import MAX_BITS
from hushcast_protocol.base.wire import Bytes16, Bytes32, Counter, RelayId, Wire, encode
from hushcast_protocol.shards.slices import CutRelay

MAX_WAITING = 2000  # relays that wait: as many as there can be seats; each directory draws its share of them
MAX_DRAWN = 2  # days whose shards a listing has: that of now, and that to come
MAX_LISTING = MAX_SEATED * (63 + MAX_DRAWN * 62) + MAX_WAITING * 44 + 256  # bytes of an encoded listing
AGED = 5  # the epoch of a day until which a newcomer must wait to be seated the day after

Difficulty = Annotated[int, msgspec.Meta(ge=0, le=MAX_DIFFICULTY)]
ListedRelay = tuple[RelayId, Bytes16, Difficulty]
"""A relay, the digest of its descriptor (`descriptor_digest`), and the bits of the stamps it asks for."""
Seat = tuple[RelayId, Bytes16, Difficulty, Counter]
"""A relay that is seated, as `ListedRelay`, and the epoch since which it is without a gap."""
WaitingRelay = tuple[RelayId, Counter]
"""A relay that more than half of the authorities reached and that has no seat yet, and since which epoch."""


class ListedCut(Wire, frozen=True, tag="drawn/1"):
    """A network as it is cut into shards for a day, in every listing until the day is over."""

    day: Counter
    beacon: Bytes32
    bits: Annotated[int, msgspec.Meta(ge=0, le=MAX_BITS)]
    """k for 2^k shards; 0: from this day on the network is whole again."""
    seats: Annotated[tuple[CutRelay, ...], msgspec.Meta(max_length=MAX_SEATED)]
    """Who had a seat when it was cut, in ascending order; nobody where the network is whole."""


class Listing(Wire, frozen=True, tag="listing/2"):
    """All relays that the head of an epoch stands for; seats and waiting in ascending order of relays."""

    epoch: Counter
    seats: Annotated[tuple[Seat, ...], msgspec.Meta(max_length=MAX_SEATED)]
    waiting: Annotated[tuple[WaitingRelay, ...], msgspec.Meta(max_length=MAX_WAITING)]
    shards: Annotated[tuple[ListedCut, ...], msgspec.Meta(max_length=MAX_DRAWN)] = ()
    """The cut of now and that to come, as far as the network is cut, by day."""

    @property
    def root(self) -> Bytes32:
        """32 bytes that stand for all of it in a head."""
        return listing_root(self.epoch, self.seats, self.waiting, self.shards_digest)

    @property
    def shards_digest(self) -> Bytes32:
        """32 bytes that stand for `shards` in the root: who has no need of them can do without."""
        return digest(Domain.LISTING, encode(self.shards))


def listing_root(
    epoch: int, seats: tuple[Seat, ...], waiting: tuple[WaitingRelay, ...], shards_digest: bytes
) -> Bytes32:
    """Return `Listing.root` of these relays and `Listing.shards_digest`."""
    return digest(Domain.LISTING, encode((epoch, seats, waiting)), shards_digest)


def place_in_line(drawn: bytes, relay: RelayId) -> bytes:
    """Return what 32 bytes that were drawn order relays by."""
    return digest(Domain.ADMISSION, drawn, relay)


def drawn_by_all(listed: Iterable[ListedRelay]) -> bytes:
    """Return 32 bytes that change with each relay that is listed: no name can be looked for by them.

    Whoever tries another name moves all others, too; and nobody knows all descriptors before the ballots.
    """
    return digest(Domain.ADMISSION, encode(sorted(listed)))


def turn(
    relay: RelayId, since: int, epoch: int, beacon: bytes | None, drawn: bytes
) -> tuple[bool, int, bytes]:
    """Return what those who wait are ordered by in an epoch, the first in turn least.

    First come those whose names are older than the secrets of the day's beacon, which draws among them;
    behind them who came later, in order of coming: they could look for names that the beacon favours. `drawn`
    (`drawn_by_all`) orders those who came in one epoch.
    """
    if beacon is not None and since <= aged_by(epoch):
        return False, 0, place_in_line(beacon, relay)
    return True, since, place_in_line(drawn, relay)


def aged_by(epoch: int) -> int:
    """Return the last epoch in which a name could not be chosen by the beacon of an epoch's day."""
    return epoch - epoch % EPOCHS_A_DAY - EPOCHS_A_DAY + AGED


def settle(
    listed: Iterable[ListedRelay],
    last: Listing | None,
    epoch: int,
    admission: SeatAdmission,
    beacon: bytes | None,
    most: int = MAX_RELAYS,
) -> Listing:
    """Return who is seated in an epoch, of the relays that more than half of the authorities list.

    `last` is the listing before, `None` for the first, which seats all; `beacon` is that of the epoch's day.
    Who had a seat keeps it, up to `most` relays, those who have it for longest. Newcomers come in `turn`, as
    many as are let in a day. Shards are for the caller.
    """
    listed = tuple(listed)
    drawn = drawn_by_all(listed)
    known = {relay: (named, bits) for relay, named, bits in listed}
    seats = _kept(last, known, drawn, most)
    waited = {} if last is None else dict(last.waiting)
    line = sorted(
        known.keys() - seats.keys(),
        key=lambda relay: turn(relay, waited.get(relay, epoch), epoch, beacon, drawn),
    )
    if last is None:
        fresh = line[:most]
    else:
        entitled = line
        if admission.age:
            entitled = [relay for relay in line if _is_aged(waited.get(relay), last, epoch, beacon)]
        today = epoch - epoch % EPOCHS_A_DAY
        # A newcomer that is gone gives its place back: what is bounded is how many of the seats are new.
        begun = sum(since < today for since in seats.values())
        let_in = admission.cap(begun) - (len(seats) - begun)
        fresh = entitled[: max(0, min(let_in, most - len(seats)))]
    seats |= dict.fromkeys(fresh, epoch)
    waiting = [relay for relay in line if relay not in seats][:MAX_WAITING]
    return Listing(
        epoch,
        tuple((relay, *known[relay], seats[relay]) for relay in sorted(seats)),
        tuple((relay, waited.get(relay, epoch)) for relay in sorted(waiting)),
    )


def _kept(last: Listing | None, known: Collection[RelayId], drawn: bytes, most: int) -> dict[RelayId, int]:
    """Return who of those known had a seat, and since when; where they are too many, the eldest."""
    held = () if last is None else last.seats
    kept = [(since, relay) for relay, _, _, since in held if relay in known]
    if len(kept) > most:
        kept = sorted(kept, key=lambda one: (one[0], place_in_line(drawn, one[1])))[:most]
    return {relay: since for since, relay in kept}


def first_chance(since: int, epoch: int, admission: SeatAdmission, seated: Iterable[int]) -> int:
    """Return the first epoch in which a relay that waits may be seated, if it is drawn then.

    It waits `since` an epoch by the listing of `epoch`, whose seats are `seated` since these epochs.
    """
    today = epoch - epoch % EPOCHS_A_DAY
    if admission.age:
        aged = -(-(since - AGED) // EPOCHS_A_DAY) * EPOCHS_A_DAY + EPOCHS_A_DAY
        return max(aged, today + EPOCHS_A_DAY)
    begun = list(seated)
    fresh = sum(since >= today for since in begun)
    if fresh < admission.cap(len(begun) - fresh):
        return epoch + 1
    return today + EPOCHS_A_DAY


def _is_aged(since: int | None, last: Listing, epoch: int, beacon: bytes | None) -> bool:
    """Tell whether a relay has waited since before the day's beacon was revealed, and a day begins.

    Without a beacon nobody is seated: an order that can be foreseen could be forced, and names ground for it.
    """
    today = epoch - epoch % EPOCHS_A_DAY
    return beacon is not None and last.epoch < today and since is not None and since <= aged_by(epoch)
