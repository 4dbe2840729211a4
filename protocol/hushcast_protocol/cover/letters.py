"""Letters: three nested seals, to porter, second and third, each of one size at its stage."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum

from hushcast_protocol.base.errors import AuthenticationError, DecodeError, Refusal
from hushcast_protocol.base.hashes import DIGEST, Domain, digest
from hushcast_protocol.base.roster import Relay
from hushcast_protocol.base.sealed_box import SEALED_BOX, open_box, seal_box
from hushcast_protocol.base.secrets import ParcelKey, Randomness
from hushcast_protocol.base.wire import RelayId
from hushcast_protocol.cover.cover_rules import CoverRules

LETTER = 4096  # bytes at the porter; at each stage behind it shorter by `LAYER`
# What binds it, the round in which it is due, the relay to pass it to.
_HEAD = struct.Struct(f">{DIGEST}sQ32s")
LAYER = SEALED_BOX + _HEAD.size  # bytes
_CONTENT = struct.Struct(">8sBH")  # number, kind, bytes of the body
NUMBER = 8  # random bytes that a letter is listed by
NOBODY = bytes(32)  # whom the third passes it to


class Stage(IntEnum):
    """The relays that hold a letter, in their order."""

    PORTER = 0
    SECOND = 1
    THIRD = 2


CONTENT = LETTER - len(Stage) * LAYER  # bytes inside all seals
# Bytes of a sealed message in a letter; more would show by its size.
MAX_LETTER_BODY = CONTENT - _CONTENT.size


class LetterKind(IntEnum):
    """What the third does with a letter; nobody before it can tell."""

    EMPTY = 0
    LOOP = 1  # it asks for nothing but to be listed
    DROP = 2  # it holds a message, to be dropped


@dataclass(frozen=True, slots=True)
class LetterContent:
    """What is inside all three seals."""

    number: bytes
    """8 random bytes; the third lists them once it has done what it was asked for."""
    kind: LetterKind
    body: bytes = b""

    def encoded(self) -> bytes:
        """Return `CONTENT` bytes; raise `Refusal` where the body is too large."""
        if len(self.body) > MAX_LETTER_BODY:
            raise Refusal(f"a message under cover has at most {MAX_LETTER_BODY} bytes when it is sealed")
        return (_CONTENT.pack(self.number, self.kind, len(self.body)) + self.body).ljust(CONTENT, b"\0")

    @classmethod
    def decoded(cls, content: bytes) -> LetterContent:
        """Read what the third found; raise `DecodeError`."""
        if len(content) != CONTENT:
            raise DecodeError("a letter's content is of another size")
        number, kind, size = _CONTENT.unpack_from(content)
        body, filler = content[_CONTENT.size :][:size], content[_CONTENT.size + size :]
        if kind > LetterKind.DROP or size > MAX_LETTER_BODY or any(filler):
            raise DecodeError("a letter's content is not well formed")
        if bool(body) != (kind == LetterKind.DROP):
            raise DecodeError("a letter with a message has one, and no other does")
        return cls(number, LetterKind(kind), body)


@dataclass(frozen=True, slots=True)
class OpenedLetter:
    """What a relay finds under its seal."""

    due: int
    """The round in which the porter passes it."""
    onward: RelayId
    inside: bytes
    """A letter of the next stage, or the content."""


def size_at(stage: Stage) -> int:
    """Return how many bytes a letter has that a relay of this stage is handed."""
    return LETTER - stage * LAYER


def seal_letter(
    rules: CoverRules, way: Sequence[Relay], due: int, content: LetterContent, randomness: Randomness
) -> bytes:
    """Seal a letter for the last relays of a chain: all three, or second and third, as a porter does.

    Raises `Refusal` where the body is too large.
    """
    sealed, onward = content.encoded(), NOBODY
    stages = list(Stage)[len(Stage) - len(way) :]
    for stage, relay in reversed(list(zip(stages, way, strict=True))):
        head = _HEAD.pack(_bond(rules, stage, relay.id, due), due, onward)
        sealed, onward = seal_box(relay.parcel_key, head + sealed, randomness), relay.id
    return sealed


def open_letter(
    rules: CoverRules, stage: Stage, relay: RelayId, key: ParcelKey, sealed: bytes
) -> OpenedLetter:
    """Take one seal off; raise `DecodeError` or `AuthenticationError`.

    Whether it is due, and whether `onward` is on the list, is for the caller.
    """
    if len(sealed) != size_at(stage):
        raise DecodeError("a letter is of another size than those of its stage")
    plain = open_box(key.private_key(), sealed)
    bond, due, onward = _HEAD.unpack_from(plain)
    if bond != _bond(rules, stage, relay, due):
        raise AuthenticationError("a letter is meant for another network, stage or relay")
    return OpenedLetter(due, onward, plain[_HEAD.size :])


def _bond(rules: CoverRules, stage: Stage, relay: RelayId, due: int) -> bytes:
    when = struct.pack(">BQQQ", stage, rules.round_seconds, due, rules.epoch_at(due))
    return digest(Domain.LETTER, rules.network, relay + when)
