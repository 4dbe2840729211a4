"""The work for a name: what a relay's name costs, so that a thousand names cost a thousand times as much.

A relay looks for a nonce for which Argon2id over network, name and a day's beacon begins with as many zero
bits as the authorities ask for (Back, "Hashcash", 2002; RFC 9106). It is of one name and of one beacon, which
nobody foresees, so it cannot be made in store or passed on, and it holds for `VALID` days. A try has no
memory: a search that is interrupted, or goes on with the beacon of the next day, has lost nothing.

Argon2id fills memory, which a graphics card has little of for each of its cores; so a check costs as much as
a try, and authorities check a name's work once, one after the other.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated

import msgspec
from nacl.pwhash import argon2id

from hushcast_protocol.authorities.beacon import day_of
from hushcast_protocol.authorities.head_inside import Beacon, BeaconState
from hushcast_protocol.base.crypto.hashes import Domain, digest
from hushcast_protocol.base.crypto.secrets import Randomness
from hushcast_protocol.base.errors import Refusal
from hushcast_protocol.base.wire import RelayId, Wire, encode

WORK_OPERATIONS = 4  # passes over the memory: 0.085 s of one core measured, of 0.1 s aimed at
WORK_MEMORY = 64 << 20  # bytes: a machine of half a gigabyte can be a relay
VALID = 30  # days, counted from that of the beacon
RENEWED = 25  # days after which a relay looks for other work: at the highest price it takes days
MAX_KNOWN = VALID + 2  # days whose beacons an authority remembers: those that work may be of
NO_BEACON = bytes(32)
"""Stands for the beacon before a network's first one; work with it can be made in store."""

_NONCE = 8  # bytes
_OUTPUT = 32  # bytes


class NameWork(Wire, frozen=True, tag="work/1"):
    """The beacon that work is of, and the number that was found."""

    beacon: Beacon
    nonce: Annotated[bytes, msgspec.Meta(min_length=_NONCE, max_length=_NONCE)]


def beacon_for(draw: BeaconState | None, epoch: int) -> Beacon:
    """Return the beacon that work begun in an epoch is of, by the newest head's draw."""
    if draw is None or draw.today is None:
        return Beacon(day_of(epoch), NO_BEACON)
    return draw.today


def attempt(
    network: bytes, relay: RelayId, beacon: Beacon, bits: int, randomness: Randomness
) -> NameWork | None:
    """Try one number for work of `bits` bits (0 to `MAX_WORK`): one of 2^bits tries succeeds.

    It takes 0.1 s and 64 MiB: call it from a worker thread.
    """
    work = NameWork(beacon, randomness(_NONCE))
    return work if is_worth(work, network, relay, bits) else None


def is_worth(work: NameWork, network: bytes, relay: RelayId, bits: int) -> bool:
    """Tell whether work is a relay's, of `bits` bits; takes as long as a try."""
    salt = digest(Domain.WORK, network, encode(work.beacon), size=argon2id.SALTBYTES)
    found = argon2id.kdf(_OUTPUT, relay + work.nonce, salt, opslimit=WORK_OPERATIONS, memlimit=WORK_MEMORY)
    return int.from_bytes(found, "big") >> (8 * _OUTPUT - bits) == 0


def has_ended(work: NameWork, epoch: int) -> bool:
    """Tell whether work holds no more."""
    return work.beacon.day + VALID < day_of(epoch)


def is_to_be_renewed(beacon: Beacon, epoch: int) -> bool:
    """Tell whether a relay should look for work of a newer beacon."""
    return day_of(epoch) >= beacon.day + RENEWED


def remember(known: Mapping[int, bytes], beacon: Beacon | None) -> dict[int, bytes]:
    """Return the beacons known, by day, with one more; the oldest are forgotten."""
    if beacon is None:
        return dict(known)
    held = {**known, beacon.day: beacon.value}
    return {day: held[day] for day in sorted(held)[-MAX_KNOWN:]}


def check_beacon(work: NameWork, known: Mapping[int, bytes], epoch: int, seated: bool) -> None:
    """Raise `Refusal`, with the way out, unless work is of a beacon of the last `VALID` days.

    `known` are the beacons by day. An authority that was not there yet, or was away, lacks some: a relay
    that has a seat keeps it by work whose beacon is not known, a newcomer must have one that is.
    """
    day, today = work.beacon.day, day_of(epoch)
    if day > today + 1:  # clocks differ, and a day's first head comes before the day
        raise Refusal("the work is of a day to come: check the relay's clock")
    if has_ended(work, epoch):
        raise Refusal(f"the work is older than {VALID} days: the relay looks for other work by itself")
    is_first = work.beacon.value == NO_BEACON and day < min(known, default=today + 2)
    if is_first or known.get(day) == work.beacon.value or (seated and day not in known):
        return
    raise Refusal("the work is of no beacon of this network: the relay looks for other work by itself")
