"""The proof of work that strangers pay at a relay under load; its tag on the wire is `stamp`.

A stamp is a nonce: its hash together with what it is bound to must begin with as many zero bits as the
relay's difficulty says (Back, "Hashcash", 2002). It is bound to one relay, one epoch and the content handed
in, and a relay accepts it once. Without load the difficulty is 0, and nobody makes or checks stamps.

Relays pass on strangers' parcels without a stamp on the frame. But the scarce resource of a relay is the
storage that it commits for days. So a parcel has a stamp inside, which the relay requires when that storage
gets short.
"""

from __future__ import annotations

import hashlib
import math
from collections import OrderedDict
from typing import Annotated

import msgspec

from hushcast_protocol.base.crypto.hashes import Domain, digest
from hushcast_protocol.base.crypto.secrets import Randomness
from hushcast_protocol.base.wire import Counter, RelayId, Wire

MAX_DIFFICULTY = 19  # bits; half a million tries: two origins cost a publication half a second to one
FIRST_DIFFICULTY = 10  # bits; below, a stamp costs less than the connection that it comes over
BITS_A_DOUBLING = 4  # for each doubling of the load: five times the capacity gives the highest difficulty
FALL = 1  # bits that a difficulty falls by in an epoch, so that a flood that pauses does not reset it

MAX_INSIDE = 16  # bits of a stamp inside a parcel, for a lease of usual size: a subscription makes thousands
NEEDED_FROM = 0.5  # share of a relay's room taken above which a stamp is needed: the rest is reserved
PRICED_FROM = 0.25  # share above which a stamp is advertised, early enough to be known before one is needed

CAPACITY = 20.0  # anonymous frames a second that a relay serves at ease, with its tor on one core
LOAD_WINDOW = 60.0  # seconds over which load is averaged: a burst is not a flood

MAX_SPENT = 65_536  # spent stamps remembered, some 8 MB: an hour at capacity, which is the usual epoch
NEAR = 1  # epochs that a stamp may be early or late

_NONCE = 8  # bytes
_NONCES = 2 ** (8 * _NONCE)
_WORK = 16  # bytes; remembered as the name of a spent stamp


class ProofOfWork(Wire, frozen=True, tag="stamp"):
    """The epoch for which a stamp was made, and the number that was found."""

    epoch: Counter
    nonce: Annotated[bytes, msgspec.Meta(min_length=_NONCE, max_length=_NONCE)]


def mint(relay: RelayId, epoch: int, content: bytes, difficulty: int, randomness: Randomness) -> ProofOfWork:
    """Find a stamp of `difficulty` bits (0 to `MAX_DIFFICULTY`) for a digest of what is handed in.

    Takes 2^difficulty hashes on average, half a microsecond each: call it from a worker thread. The search
    starts at a random number, so that the same content can be handed in again, at the same price.
    """
    work = _work(relay, epoch, content)
    limit = _limit(difficulty)
    number = int.from_bytes(randomness(_NONCE), "big")
    while True:
        found = work.copy()
        nonce = number.to_bytes(_NONCE, "big")
        found.update(nonce)
        if found.digest() < limit:
            return ProofOfWork(epoch, nonce)
        number = (number + 1) % _NONCES


class ProofOfWorkCheck:
    """A relay's check of stamps, and its memory of spent ones against replay."""

    __slots__ = ("_relay", "_spent")

    def __init__(self, relay: RelayId) -> None:
        self._relay = relay
        self._spent: OrderedDict[bytes, None] = OrderedDict()

    def __len__(self) -> int:
        """Return how many stamps are remembered."""
        return len(self._spent)

    def spend(self, stamp: ProofOfWork | None, content: bytes, epoch: int, difficulty: int) -> bool:
        """Take a stamp for a digest of what is handed in during `epoch`; tell whether it holds.

        At difficulty 0 anything does. The oldest of `MAX_SPENT` spent stamps is forgotten and would be taken
        again in its epoch: a flood at such a rate finds its price halved, not gone.
        """
        if difficulty == 0:
            return True
        if stamp is None or abs(stamp.epoch - epoch) > NEAR:
            return False
        work = _work(self._relay, stamp.epoch, content)
        work.update(stamp.nonce)
        spent = work.digest()
        if spent >= _limit(difficulty) or spent in self._spent:
            return False
        if len(self._spent) >= MAX_SPENT:
            self._spent.popitem(last=False)
        self._spent[spent] = None
        return True


class Load:
    """The rate of anonymous frames that a relay accepts: a moving average, and its peak."""

    def __init__(self, now: float) -> None:
        self._rate = 0.0
        self._peak = 0.0
        self._noted = now

    def note(self, now: float) -> None:
        """Count one frame."""
        self._age(now)
        self._rate += 1 / LOAD_WINDOW
        self._peak = max(self._peak, self._rate)

    def peak(self, now: float) -> float:
        """Return the highest rate since this was last asked."""
        self._age(now)
        peak, self._peak = max(self._peak, self._rate), self._rate
        return peak

    def _age(self, now: float) -> None:
        self._rate *= math.exp(-max(0.0, now - self._noted) / LOAD_WINDOW)
        self._noted = now


def next_difficulty(rate: float, last: int) -> int:
    """Return the difficulty to advertise, from the load in frames a second and what was advertised last.

    0 up to `CAPACITY`, then `FIRST_DIFFICULTY` plus `BITS_A_DOUBLING` for each doubling, at most
    `MAX_DIFFICULTY`. From one registration to the next it falls by `FALL` at most, and from the first to 0.
    """
    asked = 0
    if rate > CAPACITY:
        asked = FIRST_DIFFICULTY + math.ceil(BITS_A_DOUBLING * math.log2(rate / CAPACITY))
    fallen = last - FALL if last > FIRST_DIFFICULTY else 0
    return min(MAX_DIFFICULTY, max(asked, fallen))


def difficulty_of(fullness: float) -> int:
    """Return the difficulty to advertise where this share (0 to 1) of the storage for days is taken.

    0 below `PRICED_FROM`, then from `FIRST_DIFFICULTY` linearly up to `MAX_INSIDE` at `NEEDED_FROM`.
    """
    if fullness < PRICED_FROM:
        return 0
    risen = (fullness - PRICED_FROM) / (NEEDED_FROM - PRICED_FROM)
    return FIRST_DIFFICULTY + int((MAX_INSIDE - FIRST_DIFFICULTY) * min(1.0, risen))


def inside(difficulty: int, worth: int) -> int:
    """Return the bits of the stamp inside a parcel for room worth so many leases (1 or more).

    `difficulty` is what the relay advertises; 0 asks for none.
    """
    return min(difficulty, MAX_INSIDE) + (worth - 1).bit_length() if difficulty else 0


def _work(relay: RelayId, epoch: int, content: bytes) -> hashlib.blake2b:
    challenge = digest(Domain.STAMP, relay, epoch.to_bytes(8, "big"), content)
    return hashlib.blake2b(challenge, person=Domain.STAMP_WORK.value, digest_size=_WORK)


def _limit(difficulty: int) -> bytes:
    """Return the bytes below which are the hashes that begin with so many zero bits."""
    largest: int = 2 ** (8 * _WORK - difficulty) - 1
    return largest.to_bytes(_WORK, "big") + b"\0"
