"""Beats: the one message that each device sends an epoch, whatever has happened; its size is one of three.

A beat has a summary of what its device holds, entries that others were heard to lack, and new secrets. It is
signed by its device and sealed under the circle's secret.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable, Mapping
from typing import Annotated

import msgspec
from nacl.exceptions import CryptoError

from hushcast_protocol.base.crypto.aead import NONCE, TAG, seal, unseal
from hushcast_protocol.base.crypto.secrets import Randomness, Seed
from hushcast_protocol.base.crypto.signatures import SignaturePurpose, Signed, check, sign
from hushcast_protocol.base.errors import AuthenticationError, DecodeError
from hushcast_protocol.base.wire import Counter, PublicKey, Wire, decoder, encode
from hushcast_protocol.devices.circle_secrets import CircleSecret
from hushcast_protocol.devices.shared_entries import SharedEntry
from hushcast_protocol.devices.shared_state import Summary

MAX_BEAT = 64 * 1024  # bytes of a payload: 250 subscriptions; what more is lacking comes with the next beats
MAX_ENTRIES = 512  # entries of a beat, whose signatures are checked in steps
_SIZES = (4 * 1024, 16 * 1024, MAX_BEAT)  # bytes that beats are padded to, three of the sizes of all messages
_SECRETS = 2  # in one beat, at most
_ROOM = MAX_BEAT - 18 * 1024  # bytes of entries where a new secret and the rest need room, too
_LENGTH = 4  # bytes


class Beat(Wire, frozen=True, tag="beat/1"):
    """What a device tells once an epoch."""

    device: PublicKey
    day: Counter
    """Of which the summary is."""
    summary: Summary | None
    """`None` in a topic of before, where nothing is told but the new secret."""
    entries: Annotated[tuple[SharedEntry, ...], msgspec.Meta(max_length=MAX_ENTRIES)] = ()
    secrets: Annotated[tuple[Signed, ...], msgspec.Meta(max_length=_SECRETS)] = ()


_decode_signed: Callable[[bytes], Signed] = decoder(Signed, "beat", MAX_BEAT)
_decode: Callable[[bytes], Beat] = decoder(Beat, "beat", MAX_BEAT)


def fitting(entries: Iterable[SharedEntry], room: int = _ROOM) -> tuple[SharedEntry, ...]:
    """Return the first of these entries, as many as a beat has room for, or as fit `room` bytes of it."""
    taken: list[SharedEntry] = []
    for entry in entries:
        room -= len(entry.value) + len(entry.name) + 120  # a key, a signature, a counter and their lengths
        if room < 0 or len(taken) == MAX_ENTRIES:
            break
        taken.append(entry)
    return tuple(taken)


def by_turns(lacking: Mapping[bytes, SharedEntry], last: bytes) -> tuple[SharedEntry, ...]:
    """Return what a beat tells of what others may lack, by its stamps in order, as much as it has room for.

    Others say by parts what they lack, so what they were told stands among it until its whole part is there.
    A quarter of the room is for the first ones; the rest by turns, behind the stamp that was told `last`.
    """
    first = fitting(lacking.values(), _ROOM // 4)
    stamps = sorted(lacking.keys() - {entry.stamp for entry in first})
    turn = bisect_right(stamps, last)
    return fitting([*first, *(lacking[stamp] for stamp in stamps[turn:] + stamps[:turn])])


def seal_beat(secret: CircleSecret, seed: Seed, beat: Beat, randomness: Randomness) -> bytes:
    """Return the payload of a message that holds a beat."""
    packed = encode(sign(seed, SignaturePurpose.DEVICE_BEAT, beat))
    plain = len(packed).to_bytes(_LENGTH, "big") + packed
    size = next(size for size in _SIZES if size >= len(plain) + NONCE + TAG)
    nonce = randomness(NONCE)
    return nonce + seal(plain.ljust(size - NONCE - TAG, b"\x00"), b"", nonce, secret.seal_key())


def open_beat(secret: CircleSecret, payload: bytes) -> Beat:
    """Return the beat in a payload; raise `AuthenticationError` or `DecodeError` where there is none.

    Its device signed it; whether that is one of the circle is for who holds the shared state to say.
    """
    if len(payload) not in _SIZES:
        raise DecodeError("a beat has none of the fixed sizes")
    try:
        plain = unseal(payload[NONCE:], b"", payload[:NONCE], secret.seal_key())
    except CryptoError:
        raise AuthenticationError("a beat is not sealed under the circle's secret") from None
    signed = _decode_signed(plain[_LENGTH : _LENGTH + int.from_bytes(plain[:_LENGTH], "big")])
    beat = _decode(signed.body)
    check(beat.device, SignaturePurpose.DEVICE_BEAT, signed.body, signed.signature)
    return beat
