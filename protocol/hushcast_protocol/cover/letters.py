"""Letters: sealed to porter and second around what the third opens, each of one size at its stage."""

from __future__ import annotations

import struct
from dataclasses import dataclass
from enum import IntEnum

from hushcast_protocol.base.crypto.hashes import DIGEST, Domain, digest
from hushcast_protocol.base.crypto.sealed_box import SEALED_BOX, open_box, seal_box
from hushcast_protocol.base.crypto.secrets import ParcelKey, Randomness
from hushcast_protocol.base.errors import AuthenticationError, DecodeError
from hushcast_protocol.base.roster import Relay
from hushcast_protocol.base.wire import RelayId
from hushcast_protocol.cover.cover_rules import CoverRules
from hushcast_protocol.cover.letter_contents import CONTENT, LetterReceipt, blank_content, seal_content
from hushcast_protocol.cover.waybills import SERIAL, Waybill

# What binds it, the round in which it is due, where it goes on.
_HEAD = struct.Struct(f">{DIGEST}sQ32s")
LAYER = SEALED_BOX + _HEAD.size  # bytes
LAST_ROUND = 2**48  # none of so high a number ever ends
LETTER = CONTENT + 2 * LAYER  # bytes at the porter: 4,096; at each stage behind it shorter by `LAYER`


class Stage(IntEnum):
    """The relays that hold a letter, in their order."""

    PORTER = 0
    SECOND = 1
    THIRD = 2


@dataclass(frozen=True, slots=True)
class LetterRelays:
    """A daemon's relays and its waybill."""

    porter: Relay
    second: Relay
    third: Relay
    waybill: Waybill


@dataclass(frozen=True, slots=True)
class SealedLetter:
    """A letter as a daemon hands it in, and what it will be listed by."""

    due: int
    sealed: bytes
    receipt: LetterReceipt


@dataclass(frozen=True, slots=True)
class OpenedLetter:
    """What a porter or second finds under its seal."""

    due: int
    """The round in which the porter passes it."""
    onward: bytes
    """32 bytes: the second, for a porter; a waybill's name and a serial, for a second."""
    inside: bytes
    """A letter of the next stage."""


def size_at(stage: Stage) -> int:
    """Return how many bytes a letter has that a relay of this stage is handed."""
    return LETTER - stage * LAYER


def bond_of(rules: CoverRules, stage: Stage, relay: RelayId, due: int) -> bytes:
    """Return what a letter holds for at a stage: network, relay, round; 32 bytes."""
    when = struct.pack(">BQQQ", stage, rules.round_seconds, due, rules.epoch_at(due))
    return digest(Domain.LETTER, rules.network, relay + when)


def seal_letter(
    rules: CoverRules, relays: LetterRelays, due: int, body: bytes | None, randomness: Randomness
) -> SealedLetter:
    """Seal a daemon's letter with a message, or without; raise `Refusal` where that has no room in it."""
    serial = randomness(SERIAL)
    bond = bond_of(rules, Stage.THIRD, relays.third.id, due)
    mark = relays.waybill.mark(due, serial)
    content, receipt = seal_content(relays.third.parcel_key, bond, mark, body, randomness)
    onward = relays.waybill.name + serial
    inside = _sealed(rules, Stage.SECOND, relays.second, due, onward, content, randomness)
    sealed = _sealed(rules, Stage.PORTER, relays.porter, due, relays.second.id, inside, randomness)
    return SealedLetter(due, sealed, receipt)


def empty_letter(rules: CoverRules, second: Relay, waybill: bytes, due: int, randomness: Randomness) -> bytes:
    """Make a letter for a second, as a porter does that knows no more of the way than a waybill's name."""
    onward = waybill + randomness(SERIAL)
    return _sealed(rules, Stage.SECOND, second, due, onward, blank_content(randomness), randomness)


def open_letter(
    rules: CoverRules, stage: Stage, relay: RelayId, key: ParcelKey, sealed: bytes
) -> OpenedLetter:
    """Take the seal of a porter or second off; raise `DecodeError` or `AuthenticationError`.

    Whether it is due, and where it goes on, is for the caller.
    """
    if len(sealed) != size_at(stage):
        raise DecodeError("a letter is of another size than those of its stage")
    plain = open_box(key.private_key(), sealed)
    bond, due, onward = _HEAD.unpack_from(plain)
    if due > LAST_ROUND:
        raise DecodeError("a letter is due in a round that never comes")
    if bond != bond_of(rules, stage, relay, due):
        raise AuthenticationError("a letter is meant for another network, stage or relay")
    return OpenedLetter(due, onward, plain[_HEAD.size :])


def _sealed(
    rules: CoverRules,
    stage: Stage,
    relay: Relay,
    due: int,
    onward: bytes,
    inside: bytes,
    randomness: Randomness,
) -> bytes:
    head = _HEAD.pack(bond_of(rules, stage, relay.id, due), due, onward)
    return seal_box(relay.parcel_key, head + inside, randomness)
