"""Bodies: the plaintext inside a message's seal: payload, attributes, perhaps an author; in five sizes.

A *reseal* is a message that nobody took on its day, sealed for a later one: it says which id it had first, so
that who gets both shows one. A *part* has a piece of another message inside. The encoding is canonical: one
content has one plaintext, and one body under a nonce; padding is zero and minimal. So a reader who can open a
signed body cannot make another body that carries the same signature. Probes, which nobody signs, are padded
to any of the sizes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from nacl.bindings import (
    crypto_aead_xchacha20poly1305_ietf_decrypt as aead_open,
)
from nacl.bindings import (
    crypto_aead_xchacha20poly1305_ietf_encrypt as aead_seal,
)
from nacl.exceptions import CryptoError

from hushcast_protocol.base.crypto.hashes import LABEL, Domain, digest
from hushcast_protocol.base.crypto.secrets import Randomness, Seed, TopicKey
from hushcast_protocol.base.crypto.signatures import SignaturePurpose, check, signature
from hushcast_protocol.base.errors import AuthenticationError, DecodeError, Refusal
from hushcast_protocol.base.wire import decoder, encode
from hushcast_protocol.content.attributes import Value, Values
from hushcast_protocol.content.messages import HEADER, NONCE, TRAIL_SIZE, Message, message_id
from hushcast_protocol.content.payload_sizes import MAX_PAYLOAD, PADDED_SIZES

MAX_VALUES = 4096  # bytes of a message's attributes; eight of the longest take about 900

_MESSAGE, _PROBE, _RESEAL, _PART = 1, 2, 3, 4  # the first byte inside the seal
_KEY, _SIGNATURE = 32, 64  # bytes of an author's; in the place of a key, a reseal has its first id
_NOBODY = bytes(_KEY + _SIGNATURE)
_LENGTHS = 7  # bytes: kind, length of the payload, length of the attributes

_decode_values: Callable[[bytes], dict[str, Value]] = decoder(dict[str, Value], "body", MAX_VALUES)


@dataclass(frozen=True)
class Content:
    """What a publisher seals and a subscriber finds; `author` is an Ed25519 key whose signature holds."""

    payload: bytes = field(repr=False)
    values: Values = field(default_factory=dict, repr=False)
    author: bytes | None = field(default=None, repr=False)
    probe: bool = False
    """It is for the daemons of subscribers alone (`coverage`, `digests`), never for an application."""
    first_id: bytes | None = field(default=None, repr=False)
    """Of a reseal: the id that the message had when it was sealed first, on an earlier day."""
    part_proof: bytes | None = field(default=None, repr=False)
    """Of a part: the key of its message's parts and the signature (96 bytes), which `parts` checks."""


def fingerprint(author: bytes) -> str:
    """Return the 32 hexadecimal digits by which people know an author's key."""
    return digest(Domain.FINGERPRINT, author, size=LABEL).hex()


def compose(
    key: TopicKey,
    day: int,
    tokens: tuple[bytes, ...],
    content: Content,
    randomness: Randomness,
    author: Seed | None = None,
    size: int | None = None,
) -> Message:
    """Seal content under the topic's key for `day`, padded, with an empty trail.

    Payload and attributes have 256 KiB at most together, else `Refusal`. With the seed of an author the
    content is signed; without one, nothing in it tells who wrote it. Probes, reseals and parts have no
    author.
    Probes may be padded to a `size` of `PADDED_SIZES` that holds them; else `ValueError`.
    """
    kind = _kind(content)
    if author is not None and kind != _MESSAGE:
        raise ValueError("none but a message is signed")
    values = packed_values(content.values)
    inner = values + content.payload
    if len(inner) > MAX_PAYLOAD or len(values) > MAX_VALUES:
        raise Refusal(f"payload and attributes have {len(inner)} bytes: at most {MAX_PAYLOAD} are possible")
    size = size or _padded(len(inner))
    if size not in _sizes(content.probe, len(inner)):
        raise ValueError(f"{len(inner)} bytes are not padded to {size}")
    nonce = randomness(NONCE)
    proof = _NOBODY
    if author is not None:
        signed = _signed(key, day, nonce, values, content.payload)
        proof = author.public() + signature(author, SignaturePurpose.AUTHOR, signed)
    elif content.first_id is not None:
        proof = content.first_id + bytes(_SIGNATURE)
    elif content.part_proof is not None:
        proof = content.part_proof
    lengths = bytes([kind]) + len(content.payload).to_bytes(4, "big") + len(values).to_bytes(2, "big")
    plain = lengths + proof + inner.ljust(size, b"\x00")
    sealed = nonce + aead_seal(plain, _associated(day), nonce, _body_key(key))
    return Message(message_id(day, sealed), day, tokens, bytes(TRAIL_SIZE), sealed)


def open_body(key: TopicKey, message: Message) -> Content:
    """Return the content; raise `AuthenticationError` or `DecodeError` if it is not the topic's."""
    nonce, sealed = message.body[:NONCE], message.body[NONCE:]
    try:
        plain = aead_open(sealed, _associated(message.day), nonce, _body_key(key))
    except (CryptoError, ValueError):
        raise AuthenticationError("a message's body is not sealed under the topic's key") from None
    if len(plain) < HEADER or plain[0] not in (_MESSAGE, _PROBE, _RESEAL, _PART):
        raise DecodeError("a message's body is of an unknown kind")
    payload_size = int.from_bytes(plain[1:5], "big")
    values_size = int.from_bytes(plain[5:_LENGTHS], "big")
    end = HEADER + values_size + payload_size
    if end > len(plain):
        raise DecodeError("a message's body states a wrong length")
    # Otherwise a reader could re-encode a signed body with another id, and it would be shown again.
    sizes = _sizes(plain[0] == _PROBE, end - HEADER)
    if len(plain) - HEADER not in sizes or plain[end:] != bytes(len(plain) - end):
        raise DecodeError("a message's body is not padded as it must be")
    proof, values = plain[_LENGTHS:HEADER], plain[HEADER : HEADER + values_size]
    payload = plain[HEADER + values_size : end]
    author = first_id = part_proof = None
    if plain[0] == _RESEAL:
        first_id = proof[:_KEY]
        if any(proof[_KEY:]):
            raise DecodeError("a message that was sealed anew is signed")
    elif plain[0] == _PART:
        part_proof = proof
        if values:
            raise DecodeError("a part has attributes of its own")
    elif proof != _NOBODY:
        if plain[0] != _MESSAGE:
            raise DecodeError("a probe is signed")
        author = proof[:_KEY]
        signed = _signed(key, message.day, nonce, values, payload)
        check(author, SignaturePurpose.AUTHOR, signed, proof[_KEY:])
    decoded = _decode_values(values) if values else {}
    return Content(payload, decoded, author, plain[0] == _PROBE, first_id, part_proof)


def reseal_label(first_id: bytes, content: Content) -> bytes:
    """Return the 32 bytes that a message and its reseals have in common.

    Its content is in them: whoever seals something else under a message's id keeps nobody from that message.
    """
    return digest(Domain.RESEAL, first_id, packed_values(content.values), content.payload)


def packed_values(values: Values) -> bytes:
    """Return a message's attributes as they are sealed."""
    return encode(dict(values)) if values else b""


def _signed(key: TopicKey, day: int, nonce: bytes, values: bytes, payload: bytes) -> bytes:
    # Bound to topic, day and this seal: a signature cannot be moved to another message. All other sealed
    # fields (kind, lengths, padding) follow from the signed ones: the same signature means the same id.
    return digest(Domain.AUTHOR, day.to_bytes(8, "big"), nonce, values, payload, key=key.reveal())


def _kind(content: Content) -> int:
    if content.part_proof is not None:
        return _PART
    return _RESEAL if content.first_id is not None else _PROBE if content.probe else _MESSAGE


def _padded(size: int) -> int:
    """Return the bytes that attributes and payload take when padded; they have 256 KiB at most."""
    return next(padded for padded in PADDED_SIZES if padded >= size)


def _sizes(is_probe: bool, size: int) -> Sequence[int]:
    """Return the sizes that attributes and payload of so many bytes may be padded to."""
    holding = [padded for padded in PADDED_SIZES if padded >= size]
    return holding if is_probe else holding[:1]


def _body_key(key: TopicKey) -> bytes:
    return digest(Domain.BODY_KEY, key=key.reveal())


def _associated(day: int) -> bytes:
    return b"hushcast body 1\x00" + day.to_bytes(8, "big")
