"""Parts: a message in pieces, each inside the seal of a message of its own that has the smallest size.

What is cut is a sealed body, so that whoever joins its pieces has the very message that its author sealed:
signature, attributes and access hold for the whole, and a part shows nothing of them. The parts of a message
are signed with a key that is drawn for it alone and says who nobody is: without it nobody adds to them, and
nobody puts another piece in the place of one, not even who reads the topic.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass, field

from hushcast_protocol.base.crypto.hashes import Domain, digest
from hushcast_protocol.base.crypto.secrets import Randomness, Seed
from hushcast_protocol.base.crypto.signatures import SignaturePurpose, check, signature
from hushcast_protocol.base.errors import DecodeError, Refusal
from hushcast_protocol.content.bodies import Content
from hushcast_protocol.content.messages import HEADER, SEAL, TRAIL_SIZE, Message, message_id
from hushcast_protocol.content.payload_sizes import PADDED_SIZES

# A message goes under cover for four days at most: one until letters begin, two in which it goes anew, one
# for which it is held; and those may begin late in a day.
MAX_PART_DAYS = 5
"""Days behind the message's own on which its parts may be sealed."""
MAX_CUT = 64 * 1024  # bytes of attributes and payload of a message that is cut, padded

_HEAD = struct.Struct(">BBQ")  # number, count, day of the message
_PIECE = PADDED_SIZES[0] - _HEAD.size  # bytes, of all but the last
_KEY = 32  # bytes
_BODIES = {
    -(-(HEADER + size + SEAL) // _PIECE): HEADER + size + SEAL for size in PADDED_SIZES[1:] if size <= MAX_CUT
}  # bytes of a body by the number of its parts: 5, 17 or 65
MAX_PARTS = max(_BODIES)  # of a message


@dataclass(frozen=True, slots=True)
class Part:
    """A piece of a message."""

    whole: bytes
    """The Ed25519 key that signs all parts of the message, and no others (32 bytes)."""
    number: int
    """From 0."""
    count: int
    day: int
    """For which the message is sealed, whatever day the part is sealed for."""
    piece: bytes = field(repr=False)


def parts_of(message: Message) -> int:
    """Return how many parts a message has, 1 where it goes as it is; raise `Refusal` for a larger one."""
    size = len(message.body)
    if size <= HEADER + PADDED_SIZES[0] + SEAL:
        return 1
    for count, whole in _BODIES.items():
        if size == whole:
            return count
    raise Refusal(f"a message under cover has at most {MAX_CUT // 1024} KiB, attributes and payload together")


def part_content(secret: Seed, message: Message, number: int) -> Content:
    """Return what is sealed as a part; the same `secret`, message and number have the same."""
    count = parts_of(message)
    piece = message.body[number * _PIECE : (number + 1) * _PIECE]
    payload = _HEAD.pack(number, count, message.day) + piece
    own = Seed(digest(Domain.PART_KEY, message.id, key=secret.reveal()))
    return Content(payload, part_proof=own.public() + signature(own, SignaturePurpose.PART, payload))


def part_nonce(secret: Seed, message: Message, number: int, day: int) -> Randomness:
    """Return what draws the nonce of a part: on one day a part has one id, however often it is sealed."""
    place = number.to_bytes(1, "big") + day.to_bytes(8, "big")
    drawn = digest(Domain.PART_KEY, message.id, place, key=secret.reveal())
    return lambda size: drawn[:size]


def read_part(content: Content, day: int) -> Part:
    """Return the part in what a message of a day had inside.

    Raises `DecodeError` where its form, or the day of its message, is none that a publisher makes, and
    `AuthenticationError` where its signature does not hold.
    """
    payload, proof = content.payload, content.part_proof
    if proof is None or len(payload) <= _HEAD.size:
        raise DecodeError("a part is not well formed")
    number, count, own_day = _HEAD.unpack_from(payload)
    size = _BODIES.get(count, 0)
    if number >= count or len(payload) - _HEAD.size != min(_PIECE, size - number * _PIECE):
        raise DecodeError("a part is none of its message")
    if not own_day <= day <= own_day + MAX_PART_DAYS:
        raise DecodeError("a part is of a message of another time")
    whole = proof[:_KEY]
    check(whole, SignaturePurpose.PART, payload, proof[_KEY:])
    return Part(whole, number, count, own_day, payload[_HEAD.size :])


def join(day: int, pieces: Sequence[bytes], tokens: tuple[bytes, ...]) -> Message:
    """Return the message of all pieces in order; whether it is one of the topic's its seal tells.

    `tokens` are those by which its last part came.
    """
    body = b"".join(pieces)
    return Message(message_id(day, body), day, tokens, bytes(TRAIL_SIZE), body)
