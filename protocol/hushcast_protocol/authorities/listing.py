"""Listings: which relays have a seat, since when, and which wait for one; a head stands for one listing."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated

import msgspec

from hushcast_protocol.authorities.admission import Admission
from hushcast_protocol.base.epochs import EPOCHS_A_DAY
from hushcast_protocol.base.hashes import Domain, digest
from hushcast_protocol.base.roster import MAX_RELAYS
from hushcast_protocol.base.wire import Bytes16, Bytes32, Counter, RelayId, Wire, encode

MAX_WAITING = 2000  # relays that wait: as many as there can be seats; drawn each day, where more come
MAX_LISTING = MAX_RELAYS * 62 + MAX_WAITING * 44 + 64  # bytes of an encoded listing
AGED = 5  # the epoch of a day until which a newcomer must wait to be seated the day after

Listed = tuple[RelayId, Bytes16]
"""A relay and the digest of its descriptor (`descriptor_digest`)."""
Seat = tuple[RelayId, Bytes16, Counter]
"""A relay that is seated, the digest of its descriptor, and the epoch since which it is without a gap."""
Waiting = tuple[RelayId, Counter]
"""A relay that more than half of the authorities reached and that has no seat yet, and since which epoch."""


class Listing(Wire, frozen=True, tag="listing/1"):
    """All relays that the head of an epoch stands for; both in ascending order of relays."""

    epoch: Counter
    seats: Annotated[tuple[Seat, ...], msgspec.Meta(max_length=MAX_RELAYS)]
    waiting: Annotated[tuple[Waiting, ...], msgspec.Meta(max_length=MAX_WAITING)]

    @property
    def root(self) -> Bytes32:
        """32 bytes that stand for all of it in a head."""
        return digest(Domain.LISTING, encode(self))


def place_in_line(beacon: bytes | None, relay: RelayId) -> bytes:
    """Return what newcomers are ordered by: drawn anew with each day's beacon (32 bytes), if there is one."""
    return digest(Domain.ADMISSION, beacon or bytes(32), relay)


def settle(
    listed: Iterable[Listed], last: Listing | None, epoch: int, admission: Admission, beacon: bytes | None
) -> Listing:
    """Return who is seated in an epoch, of the relays that more than half of the authorities list.

    `last` is the listing before, `None` for the first, which seats all; `beacon` is that of the epoch's day.
    Who had a seat keeps it. Newcomers come in an order that the beacon draws, as many as are let in a day.
    """
    digests = dict(listed)
    held = {} if last is None else {relay: since for relay, _, since in last.seats}
    line = sorted(digests.keys() - held.keys(), key=lambda relay: place_in_line(beacon, relay))
    seats = {relay: since for relay, since in held.items() if relay in digests}
    waited = {} if last is None else dict(last.waiting)
    if last is None:
        fresh = line[:MAX_RELAYS]
    else:
        entitled = line
        if admission.age:
            entitled = [relay for relay in line if _is_aged(waited.get(relay), last, epoch, beacon)]
        today = epoch - epoch % EPOCHS_A_DAY
        # A newcomer that is gone gives its place back: what is bounded is how many of the seats are new.
        begun = sum(since < today for since in seats.values())
        let_in = admission.cap(begun) - (len(seats) - begun)
        fresh = entitled[: max(0, min(let_in, MAX_RELAYS - len(seats)))]
    seats |= dict.fromkeys(fresh, epoch)
    waiting = [relay for relay in line if relay not in seats][:MAX_WAITING]
    return Listing(
        epoch,
        tuple((relay, digests[relay], seats[relay]) for relay in sorted(seats)),
        tuple((relay, waited.get(relay, epoch)) for relay in sorted(waiting)),
    )


def first_chance(since: int, epoch: int, admission: Admission, seated: Iterable[int]) -> int:
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
    return (
        beacon is not None
        and last.epoch < today
        and since is not None
        and since <= today - EPOCHS_A_DAY + AGED
    )
