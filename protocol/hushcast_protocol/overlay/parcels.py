"""Parcels: an instruction for one relay, sealed to it, around sealed parcels for it to pass on (VB §4.2)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated

import msgspec

from hushcast_protocol.base.crypto.hashes import Domain, digest
from hushcast_protocol.base.crypto.proof_of_work import FIRST_DIFFICULTY, NEEDED_FROM, ProofOfWork, inside
from hushcast_protocol.base.crypto.sealed_box import open_box, seal_box
from hushcast_protocol.base.crypto.secrets import ParcelKey, Randomness
from hushcast_protocol.base.errors import AuthenticationError, DecodeError, Refusal
from hushcast_protocol.base.versions import wires
from hushcast_protocol.base.versions.translations import UNCHANGED, Translation
from hushcast_protocol.base.wire import Bytes16, Bytes32, Counter, RelayId, Wire, decoder, encode
from hushcast_protocol.overlay.lane_holds import LaneHold
from hushcast_protocol.overlay.leases import Install, Instruction, units

MAX_PARCEL = 512 * 1024  # bytes; the top parcels of 2,000 relays stay well below
MAX_FANOUT = 256  # parcels that one relay passes on; 45 are needed for 2,000 relays at depth 2
MAX_PARCELS_REMEMBERED = 50_000  # within three epochs; 3 MB; half of them without a stamp inside
MAX_PATIENCE = 100  # seconds; 20 for each level below the top of the deepest tree
NEAR = 1  # epochs that a parcel may be early or late


class OnwardParcel(Wire, frozen=True, tag="onward"):
    """A parcel to pass on, and to whom."""

    relay: RelayId
    sealed: Annotated[bytes, msgspec.Meta(max_length=MAX_PARCEL)]


class Parcel(Wire, frozen=True, tag="parcel/2"):
    """What a relay finds inside its seal. Its own key and the epoch bind it to one reader and time."""

    network: Bytes32
    relay: RelayId
    epoch: Counter
    instruction: Instruction | LaneHold | None  # none where all that it has to do is to pass on
    patience: Annotated[int, msgspec.Meta(ge=0, le=MAX_PATIENCE)]  # seconds to await answers from below
    onward: Annotated[tuple[OnwardParcel, ...], msgspec.Meta(max_length=MAX_FANOUT)]
    word: Bytes16  # fresh for each parcel; what the relay confirms by
    stamp: ProofOfWork | None = None  # for the room that the instruction takes; needed when that is short


_decode_parcel: Callable[[bytes], Parcel] = decoder(Parcel, "parcel", MAX_PARCEL)


def instructed(instruction: Instruction | LaneHold | None) -> bytes:
    """Return the digest (32 bytes) of an instruction, or none, which the stamp in a parcel is bound to."""
    return digest(Domain.STAMP, b"instruction", encode(instruction))


def price(instruction: Instruction | LaneHold | None, difficulty: int) -> int:
    """Return the bits of the stamp for an instruction at a relay that advertises a difficulty (bits).

    Whatever it says, the digest of its parcel takes room. A lane, for a quarter, costs from the first on.
    """
    worth = 1
    if isinstance(instruction, LaneHold):
        worth = instruction.worth
        if instruction.errand is not None:
            difficulty = max(difficulty, FIRST_DIFFICULTY)
    elif isinstance(instruction, Install):
        worth = units(len(instruction.elements))
    return inside(difficulty, worth)


def seal_parcel(
    parcel: Parcel, parcel_key: bytes, randomness: Randomness, by: Translation = UNCHANGED
) -> bytes:
    """Seal a parcel to a relay's public parcel key (32 bytes), as the wire that `by` is of says it.

    Raises `Refusal` if it grew too large, or has no words there.
    """
    if (said := by.down(parcel)) is None:
        raise Refusal("the wire that the network speaks has no words for a parcel")
    sealed = seal_box(parcel_key, encode(said), randomness)
    if len(sealed) > MAX_PARCEL:
        raise Refusal("a parcel would be larger than relays accept: use a deeper tree")
    return sealed


def open_parcel(sealed: bytes, key: ParcelKey, network: bytes, relay: RelayId, epoch: int) -> Parcel:
    """Open a parcel sealed to `relay`; raise a `PeerError`, or `Refusal` ("day") if untimely."""
    if len(sealed) > MAX_PARCEL:
        raise AuthenticationError("a parcel is over the limit")
    said = wires.table().opened(open_box(key.private_key(), sealed))
    if said is None:
        raise DecodeError("a parcel of another wire tells nothing")
    parcel = _decode_parcel(said)
    if parcel.network != network or parcel.relay != relay:
        raise AuthenticationError("a parcel is meant for another relay or network")
    if parcel.instruction is None and not parcel.onward:
        raise DecodeError("a parcel tells nothing, and passes on nothing")
    below = {onward.relay for onward in parcel.onward}
    if len(below) < len(parcel.onward) or relay in below:
        raise DecodeError("a parcel passes on to a relay twice, or to the one that opens it")
    if abs(parcel.epoch - epoch) > NEAR:
        raise Refusal("day")
    return parcel


class ParcelMemory:
    """Digests of the parcels opened lately: a replay cache."""

    def __init__(self) -> None:
        self._seen: dict[bytes, int] = {}

    def __len__(self) -> int:
        """Return how many parcels are remembered."""
        return len(self._seen)

    def fullness(self) -> float:
        """Return the share (0 to 1) of the room for digests that is taken."""
        return len(self._seen) / MAX_PARCELS_REMEMBERED

    def note(self, sealed: bytes, epoch: int, paid: bool) -> tuple[bytes, int]:
        """Remember a parcel until it is too old to be accepted; return the digest and its last epoch.

        It is `paid` for if the stamp inside holds; others may fill `NEEDED_FROM` of the room. Raises
        `AuthenticationError` if it was seen before, `Refusal` ("quota") if too many came lately: room is made
        by `forget` alone, whose caller has them on disk.
        """
        name = digest(Domain.PARCEL, sealed)
        if name in self._seen:
            raise AuthenticationError("a parcel was seen before")
        if len(self._seen) >= MAX_PARCELS_REMEMBERED * (1.0 if paid else NEEDED_FROM):
            raise Refusal("quota")
        last = epoch + 2 * NEAR
        self._seen[name] = last
        return name, last

    def restore(self, name: bytes, last: int) -> None:
        """Take back what was remembered before a restart."""
        self._seen[name] = last

    def forget(self, epoch: int) -> list[bytes]:
        """Forget the parcels that have become too old to be accepted; return their digests."""
        old = [name for name, last in self._seen.items() if last < epoch]
        for name in old:
            del self._seen[name]
        return old
